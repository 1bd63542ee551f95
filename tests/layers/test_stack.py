"""Stacks: their settings, and growing step by step."""

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from transduce.attention.relative import Relative
from transduce.attention.scores import Dot
from transduce.core.registry import known
from transduce.core.trust import allow_code
from transduce.layers.stack import ADDED, Stack, StackConfig

POSITIONS = [*ADDED, *known("attention.relative")]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"d_model": 10, "heads": 4}, r"d_model \(10\) must be a multiple of heads \(4\)"),
        ({"d_model": 9, "heads": 3}, "sinusoidal positions need an even d_model, not 9"),
        ({"d_model": 6, "heads": 2, "positions": "rotary"}, "rotary positions need an even width per head, not 3"),
        ({"dropout": 1.0}, "dropout"),
        ({"norm": "middle"}, "norm"),
        ({"head": 4}, "head"),
        ({"heads": 4, "key_value_heads": 3}, r"heads \(4\) must be a multiple of key_value_heads \(3\)"),
        ({"positions": "alibbi"}, 'there is no "alibbi". Did you mean "alibi"'),
        ({"norm_kind": "group"}, "norm_kind"),
        ({"activation": "tanh"}, "activation"),
        ({"score": "scaled"}, 'there is no "scaled". Did you mean "scaled_dot"'),
        ({"normalizer": "no_such_file:Weighing"}, "is code outside Transduce"),
        ({"score": "location_aware"}, '(?s)"location_aware" needs the weights of the previous query.*kind = "rnn"'),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        StackConfig.model_validate(settings)


@pytest.mark.parametrize("positions", POSITIONS)
def test_growing_in_any_pieces_equals_all_at_once(positions: str) -> None:
    torch.manual_seed(0)
    config = StackConfig.model_validate({"d_model": 8, "heads": 2, "feed_forward": 8, "positions": positions})
    stack = Stack(config, layers=2, causal=True).eval().double()
    for parameter in stack.parameters():
        nn.init.normal_(parameter, std=0.3)
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
    for positions in POSITIONS:
        torch.manual_seed(0)
        config = StackConfig.model_validate({"d_model": 8, "heads": 2, "feed_forward": 8, "positions": positions})
        stack = Stack(config, layers=1).eval().double()
        for parameter in stack.parameters():
            nn.init.normal_(parameter, std=0.3)
        same = torch.allclose(stack(x_BTD[:, order], None), stack(x_BTD, None)[:, order])
        assert same == (positions == "none")


def test_the_blocks_of_a_stack_share_t5s_table_and_have_their_own_of_shaws() -> None:
    for positions, tables in (("t5", 1), ("shaw", 2 * 3)):
        config = StackConfig(d_model=8, heads=2, feed_forward=8, positions=positions)
        named = [name for name, _ in Stack(config, layers=3).named_parameters() if "positions" in name]
        assert len(named) == tables


def test_cross_attention_knows_no_distances() -> None:
    stack = Stack(StackConfig(d_model=8, heads=2, feed_forward=8, positions="alibi"), layers=1, cross=True)
    (block,) = stack.blocks
    assert block.self_attention.positions is not None
    assert block.cross_attention is not None
    assert block.cross_attention.positions is None


class Halved(Dot):
    """A user's own score."""

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        return super().forward(query_BHTE, keys) / 2


class Near(Relative):
    """A user's own positions: nothing farther than 1 away, all but."""

    def bias(self, query_BHTE: Tensor, keys: int, offset: int) -> Tensor:
        away_TS = torch.arange(keys) - torch.arange(offset, offset + query_BHTE.shape[2])[:, None]
        return -100.0 * (away_TS.abs() > 1)


def test_your_own_score_and_positions() -> None:
    torch.manual_seed(0)
    table = {
        "d_model": 8,
        "heads": 2,
        "feed_forward": 8,
        "positions": f"{__name__}:Near",
        "score": f"{__name__}:Halved",
    }
    allow_code(table)
    stack = Stack(StackConfig.model_validate(table), layers=1).eval()
    x_BTD = torch.randn(1, 5, 8)
    others_BTD = x_BTD.clone()
    others_BTD[:, 3:] = torch.randn(1, 2, 8)
    found, other = stack(x_BTD, None), stack(others_BTD, None)
    torch.testing.assert_close(found[:, :2], other[:, :2])
    assert not torch.allclose(found[:, 2], other[:, 2])


def test_grouped_heads_keep_a_smaller_cache() -> None:
    config = StackConfig(d_model=8, heads=4, key_value_heads=2, feed_forward=8)
    stack = Stack(config, layers=1).eval()
    _, state = stack.extend_causally(torch.randn(3, 5, 8), stack.empty(3))
    assert state[0].key.shape == state[0].value.shape == (3, 2, 5, 2)


@pytest.mark.parametrize("cross", [False, True])
def test_blocks_that_begin_at_zero_pass_their_input_on(cross: bool) -> None:
    config = StackConfig(d_model=8, heads=2, feed_forward=12, positions="none", norm="pre", zero_init=True)
    stack = Stack(config, layers=3, cross=cross, causal=True)
    x_BTD, source_BSD = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
    sources = stack.keys_values(source_BSD) if cross else None
    torch.testing.assert_close(stack.eval().extend_causally(x_BTD, None, sources)[0], stack.norm(x_BTD))


def test_only_the_last_matrices_begin_at_zero_and_all_of_them_learn() -> None:
    settings = {"d_model": 8, "heads": 2, "feed_forward": 12, "dropout": 0.0}
    stacks = []
    for zero in (False, True):
        torch.manual_seed(0)
        stacks.append(Stack(StackConfig.model_validate({**settings, "zero_init": zero}), layers=2))
    drawn, stack = stacks
    before = {name: weight.clone() for name, weight in stack.named_parameters()}
    zeros = {name for name in before if name.endswith(("attention.output.weight", "feed_forward.outer.weight"))}
    assert len(zeros) == 4
    for name, weight in drawn.named_parameters():
        assert torch.equal(before[name], torch.zeros_like(weight) if name in zeros else weight), name
    x_BTD, wanted_BTD = torch.randn(4, 5, 8), torch.randn(4, 5, 8)
    optimizer = torch.optim.SGD(stack.parameters(), lr=0.1)
    for _ in range(2):  # the first update moves what is last, the second what is behind it
        optimizer.zero_grad()
        (stack(x_BTD, None) - wanted_BTD).square().mean().backward()
        optimizer.step()
    for name, weight in stack.named_parameters():
        assert not torch.equal(weight, before[name]), name
