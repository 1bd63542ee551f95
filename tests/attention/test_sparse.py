"""Sparse patterns: the paper's sets, counted out; FlexAttention equal to the exact mask."""

import pytest
import torch
from slow_attention import slow_attention
from torch import Tensor

from transduce.attention import MultiHeadAttention, masks
from transduce.attention.blocked import attend_sparsely
from transduce.attention.sparse import Pattern, causal_mask, flex_attend

PATTERNS: list[Pattern] = ["full", "local", "strided", "fixed"]
SPARSE = PATTERNS[1:]
every_pattern = pytest.mark.parametrize("pattern", PATTERNS)


def papers_set(pattern: str, stride: int, i: int) -> set[int]:
    """What position i looks at, as Child et al. 2019 write it in section 4.3 (c = 1); local and full in words."""
    back = set(range(i + 1))
    if pattern == "strided":
        return set(range(max(0, i - stride), i + 1)) | {j for j in back if (i - j) % stride == 0}
    if pattern == "fixed":
        return {j for j in back if j // stride == i // stride} | {j for j in back if j % stride == stride - 1}
    return {j for j in back if i // stride - j // stride in (0, 1)} if pattern == "local" else back


@every_pattern
@pytest.mark.parametrize("stride", [1, 3, 4, 30])
def test_masks_are_the_papers_sets(pattern: Pattern, stride: int) -> None:
    mask_TS = causal_mask(pattern, stride, 23)[0, 0]
    for i, row in enumerate(mask_TS):
        assert set(row.nonzero().flatten().tolist()) == papers_set(pattern, stride, i)


@every_pattern
def test_later_positions_have_the_same_rows(pattern: Pattern) -> None:
    whole = causal_mask(pattern, 4, 23)
    for past in (1, 7, 22):
        assert torch.equal(causal_mask(pattern, 4, 23 - past, past), whole[:, :, past:])


@pytest.mark.parametrize("pattern", ["strided", "fixed"])
def test_two_layers_reach_everything_before(pattern: Pattern) -> None:
    mask_TS = causal_mask(pattern, 8, 64)[0, 0].float()
    assert torch.equal(mask_TS @ mask_TS > 0, masks.causal(64)[0, 0])


@pytest.mark.parametrize("pattern", SPARSE)
def test_rows_grow_slower_than_the_sequence(pattern: Pattern) -> None:
    for length in (64, 256, 1024):
        stride = round(length**0.5)
        assert int(causal_mask(pattern, stride, length).sum(-1).max()) <= 2 * stride


def drawn(length: int = 40) -> list[Tensor]:
    torch.manual_seed(0)
    return [torch.randn(2, 2, length, 16) for _ in range(3)]


@every_pattern
def test_attention_by_a_pattern_equals_the_slow_loop(pattern: Pattern) -> None:
    query, key, value = drawn(11)
    expected, _ = slow_attention(query, key, value, causal_mask(pattern, 3, 11).expand(2, 2, 11, 11))
    torch.testing.assert_close(attend_sparsely(query, key, value, pattern, 3).double(), expected, rtol=1e-5, atol=1e-5)


@every_pattern
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention_equals_the_exact_mask(pattern: Pattern) -> None:
    query, key, value = drawn(200)  # more than one of FlexAttention's blocks of 128
    found = flex_attend(query, key, value, pattern, 16)
    torch.testing.assert_close(found, attend_sparsely(query, key, value, pattern, 16), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="FlexAttention has gradients on CUDA only")
@every_pattern
def test_flex_attentions_gradients_equal_the_masks(pattern: Pattern) -> None:
    inputs = [each.cuda().requires_grad_() for each in drawn(200)]
    mask = causal_mask(pattern, 16, 200, device=inputs[0].device)
    exact = torch.nn.functional.scaled_dot_product_attention(*inputs, mask)
    wanted = torch.autograd.grad(exact.square().sum(), inputs)
    found = torch.autograd.grad(attend_sparsely(*inputs, pattern, 16).square().sum(), inputs)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


@every_pattern
def test_heads_with_a_pattern_step_by_step_equal_the_full_pass(pattern: Pattern) -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2)
    x_BTD = torch.randn(2, 19, 8)
    whole_BTD = attention(x_BTD, attention.keys_values(x_BTD), causal_mask(pattern, 4, 19))
    seen = attention.empty(2)
    for t in range(19):
        seen = seen.append(attention.keys_values(x_BTD[:, t : t + 1]))
        step_B1D = attention(x_BTD[:, t : t + 1], seen, causal_mask(pattern, 4, 1, t))
        torch.testing.assert_close(step_B1D, whole_BTD[:, t : t + 1], rtol=1e-5, atol=1e-5)
