"""Attention of long texts in blocks, compared with all weights at once."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from transduce.attention import blocked
from transduce.attention.blocked import attend_text
from transduce.attention.scaled_dot_product import attend_with_weights
from transduce.attention.sparse import CausalPattern, causal_mask
from transduce.core.padded import Padded
from transduce.data.columns import ColumnSpec, Specs
from transduce.models.transformer_decoder import TransformerDecoder, TransformerDecoderConfig


@pytest.fixture(autouse=True)
def _short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked, "QUERIES", 5)
    monkeypatch.setattr(blocked, "LONG", 8)


def drawn(*sizes: int, seed: int = 1) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).requires_grad_()


def text(groups: int = 2, length: int = 17) -> tuple[Tensor, Tensor, Tensor]:
    return drawn(2, 4, length, 3), drawn(2, groups, length, 3, seed=2), drawn(2, groups, length, 6, seed=3)


def causal(pattern: Any, stride: int, length: int) -> CausalPattern:
    return CausalPattern(pattern, stride, length, torch.device("cpu"))


def in_blocks(*given: Any) -> Tensor:
    found: Tensor = blocked._InBlocks.apply(*given)  # type: ignore[no-untyped-call]
    return found


@pytest.mark.parametrize("pattern", ["full", "local", "strided", "fixed"])
@pytest.mark.parametrize("groups", [1, 4])
def test_a_pattern_is_its_mask(pattern: Any, groups: int) -> None:
    parts = text(groups)
    expected, _ = attend_with_weights(*parts, causal_mask(pattern, 3, 17))
    got = in_blocks(*parts, causal(pattern, 3, 17), 0.0)
    torch.testing.assert_close(got, expected)
    weights = drawn(*got.shape, seed=4).detach()
    ours, theirs = (torch.autograd.grad((each * weights).sum(), parts) for each in (got, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("shape", [None, (2, 1, 1, 17), (2, 4, 17, 17)])
def test_masks_are_cut_into_blocks(shape: tuple[int, ...] | None) -> None:
    parts = text()
    mask = None if shape is None else drawn(*shape, seed=5) > -0.5
    if mask is not None:
        mask[..., 0] = True
    expected, _ = attend_with_weights(*parts, mask)
    torch.testing.assert_close(in_blocks(*parts, mask, 0.0), expected)


def test_a_window_looks_at_no_key_outside_it() -> None:
    """So its cost grows as the length does."""
    seen = [high - low for _, _, low, high, _ in blocked._blocks(400, 400, causal("local", 4, 400))]
    assert max(seen) <= blocked.QUERIES + 2 * 4
    assert len(seen) == 400 / blocked.QUERIES


def derivative(output: Callable[[], Tensor], part: Tensor, along: Tensor) -> float:
    step = 1e-6
    with torch.no_grad():
        part += step * along
        above = output()
        part -= 2 * step * along
        below = output()
        part += step * along
    return float((above - below) / (2 * step))


@pytest.mark.parametrize("pattern", ["full", "local"])
def test_dropout_is_the_same_in_the_backward_pass(pattern: Any) -> None:
    parts, weights = text(), drawn(2, 4, 17, 6, seed=4).detach()

    def output() -> Tensor:
        torch.manual_seed(11)
        return (in_blocks(*parts, causal(pattern, 3, 17), 0.4) * weights).sum()

    loss = output()
    assert not torch.isclose(loss, (in_blocks(*parts, causal(pattern, 3, 17), 0.0) * weights).sum())
    torch.manual_seed(5)  # what was drawn in between changes nothing
    before = torch.get_rng_state()
    found = torch.autograd.grad(loss, parts)
    assert before.equal(torch.get_rng_state())
    for place, part in enumerate(parts):
        along = drawn(*part.shape, seed=6 + place).detach()
        assert float((found[place] * along).sum()) == pytest.approx(derivative(output, part, along), rel=1e-5)


def test_both_passes_have_one_precision() -> None:
    """Of numbers in fp32, where products are computed in bf16."""
    parts = [each.detach().float().requires_grad_() for each in text()]
    with torch.autocast("cpu", torch.bfloat16):
        got = in_blocks(*parts, causal("full", 3, 17), 0.0)
        expected, _ = attend_with_weights(*parts, causal_mask("full", 3, 17))
    assert got.dtype is expected.dtype is torch.bfloat16
    ours, theirs = (torch.autograd.grad(each.float().square().sum(), parts) for each in (got, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0.05, atol=0.05)


def test_dropout_keeps_the_mean() -> None:
    parts = text(length=9)
    torch.manual_seed(0)
    drawn_often = torch.stack([attend_text(*parts, causal("full", 2, 9), 0.25).detach() for _ in range(3000)])
    expected, _ = attend_with_weights(*parts, causal_mask("full", 2, 9))
    error = drawn_often.std(0) / 3000**0.5
    assert ((drawn_often.mean(0) - expected).abs() < 5 * error + 1e-9).all()


@pytest.mark.parametrize("positions", ["rotary", "alibi", "sinusoidal"])
@pytest.mark.parametrize("pattern", ["full", "local"])
def test_a_decoder_reads_long_texts_as_short_ones(
    positions: str, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transduce.layers import stack

    torch.manual_seed(0)
    settings = {"d_model": 16, "heads": 2, "layers": 2, "feed_forward": 16, "pattern": pattern, "stride": 4}
    config = TransformerDecoderConfig.model_validate({**settings, "positions": positions, "dropout": 0.0})
    model = TransformerDecoder(config, Specs(None, ColumnSpec("tokens", 11))).eval()
    batch = Padded(torch.randint(0, 11, (2, 23)), torch.tensor([23, 20]))
    short = model(None, batch)
    monkeypatch.setattr(stack, "LONG", 8)
    torch.testing.assert_close(model(None, batch)[0], short[0])
    torch.testing.assert_close(model(None, batch)[1, :20], short[1, :20])
