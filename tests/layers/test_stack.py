"""Stacks: their settings, and growing step by step."""

import pytest
import torch
from pydantic import ValidationError

from transduce.layers.stack import Stack, StackConfig


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"d_model": 10, "heads": 4}, r"d_model \(10\) must be a multiple of heads \(4\)"),
        ({"d_model": 9, "heads": 3}, "sinusoidal positions need an even d_model, not 9"),
        ({"d_model": 6, "heads": 2, "positions": "rotary"}, "rotary positions need an even width per head, not 3"),
        ({"dropout": 1.0}, "dropout"),
        ({"norm": "middle"}, "norm"),
        ({"head": 4}, "head"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        StackConfig.model_validate(settings)


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned", "rotary"])
def test_growing_in_any_pieces_equals_all_at_once(positions: str) -> None:
    torch.manual_seed(0)
    config = StackConfig.model_validate({"d_model": 8, "heads": 2, "feed_forward": 8, "positions": positions})
    stack = Stack(config, layers=2).eval().double()
    x_BTD = torch.randn(2, 7, 8, dtype=torch.float64)
    whole_BTD, whole_state = stack.extend_causally(x_BTD, None)
    for pieces in ((7,), (1,) * 7, (3, 1, 3), (1, 6)):
        state, outputs = stack.empty(2), []
        for piece in x_BTD.split(pieces, 1):
            output_BTD, state = stack.extend_causally(piece, state)
            outputs.append(output_BTD)
        torch.testing.assert_close(torch.cat(outputs, 1), whole_BTD)
        for grown, at_once in zip(state, whole_state, strict=True):
            torch.testing.assert_close(grown.key, at_once.key)
            torch.testing.assert_close(grown.value, at_once.value)


def test_the_state_before_is_left_as_it_was() -> None:
    torch.manual_seed(0)
    config = StackConfig(d_model=8, heads=2, feed_forward=8)
    stack = Stack(config, layers=1).eval()
    _, state = stack.extend_causally(torch.randn(1, 2, 8), None)
    before = state[0].key.clone()
    stack.extend_causally(torch.randn(1, 1, 8), state)
    assert torch.equal(state[0].key, before)
    assert state[0].length == 2


def test_order_matters_with_positions_and_only_then() -> None:
    x_BTD = torch.randn(1, 5, 8, dtype=torch.float64)
    order = torch.tensor([2, 0, 4, 1, 3])
    for positions in ("none", "sinusoidal", "learned", "rotary"):
        torch.manual_seed(0)
        config = StackConfig.model_validate({"d_model": 8, "heads": 2, "feed_forward": 8, "positions": positions})
        stack = Stack(config, layers=1).eval().double()
        same = torch.allclose(stack(x_BTD[:, order], None), stack(x_BTD, None)[:, order])
        assert same == (positions == "none")
