"""Scores, masks, weights, read-out: against the paper's sums in slow loops, and the kernels against each other."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_attention import random_mask, slow_attention
from torch import Tensor

from transduce.attention import attend, attend_with_weights, attention_weights, masks, scaled_dot_product
from transduce.attention.normalizers import Softmax
from transduce.attention.scaled_dot_product import attend_by
from transduce.attention.scores import ScaledDot
from transduce.core.registry import resolve


def random_qkv(
    batch: int, heads: int, queries: int, keys: int, width: int = 4, values: int = 3
) -> tuple[Tensor, Tensor, Tensor]:
    return (
        torch.randn(batch, heads, queries, width, dtype=torch.float64),
        torch.randn(batch, heads, keys, width, dtype=torch.float64),
        torch.randn(batch, heads, keys, values, dtype=torch.float64),
    )


@pytest.fixture(params=["explicit", "fused"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each of the two kernels, made to run whatever the size."""
    monkeypatch.setattr(scaled_dot_product, "FUSED_FROM_KEYS", 0 if request.param == "fused" else 10**9)
    return str(request.param)


def test_golden_scores_112_and_96() -> None:
    # Of width 64: divided by 8 the scores are 14 and 12.
    query = torch.zeros(1, 1, 1, 64, dtype=torch.float64)
    key = torch.zeros(1, 1, 2, 64, dtype=torch.float64)
    query[..., :2] = torch.tensor([8.0, 4.0])
    key[0, 0, :, :2] = torch.tensor([[12.0, 4.0], [8.0, 8.0]])
    scores = (query @ key.mT).flatten().tolist()
    assert scores == [112, 96]
    assert [score / 8 for score in scores] == [14, 12]
    alpha = attention_weights(query, key).flatten().tolist()
    assert [round(weight, 6) for weight in alpha] == [0.880797, 0.119203]
    # What the scale is for: without it, the softmax is saturated.
    unscaled = attention_weights(query * 8, key).flatten().tolist()
    assert [round(unscaled[0], 8), round(unscaled[1], 8)] == [0.99999989, 0.00000011]


WEATHER = [[0.6, 0.2, 0.8], [0.2, 0.3, 0.1], [0.9, 0.1, 0.8], [0.4, 0.1, 0.4], [0.4, 0.1, 0.6]]


def the_weather_is_nice_today() -> tuple[Tensor, Tensor]:
    """The query of the first word, (1, 1, 1, 3), and the keys of all five, which are their values, (1, 1, 5, 3)."""
    key = torch.tensor([[WEATHER]], dtype=torch.float64)
    return key[:, :, :1], key


def test_golden_the_weather_is_nice_today(kernel: str) -> None:
    query, key = the_weather_is_nice_today()
    dot, softmax = resolve("attention.scores", "dot")(3, 3), resolve("attention.normalizers", "softmax")(3)
    scores = dot(query, key)
    assert scores.flatten().tolist() == pytest.approx([1.04, 0.26, 1.20, 0.58, 0.74])
    output, alpha = attend_by(dot, softmax, query, dot.keys(key), key, None, torch.zeros(1, 1, dtype=torch.int64))
    assert [round(weight, 3) for weight in alpha.flatten().tolist()] == [0.250, 0.114, 0.293, 0.158, 0.185]
    assert [round(value, 3) for value in output.flatten().tolist()] == [0.574, 0.148, 0.620]
    # the example does not divide by the root of the width; the kernels do
    torch.testing.assert_close(attend(query * 3**0.5, key, key), output)


def test_an_output_is_a_weighted_mean_of_the_values_and_no_larger_than_the_largest() -> None:
    """So that 1.8, 2.3, 0.4, which a slide prints for the weather, cannot be: no value there is above 0.9."""
    query, key = the_weather_is_nice_today()
    generator = torch.Generator().manual_seed(1)
    for scale in (0.1, 1.0, 10.0, 100.0):
        asked = torch.cat([query, torch.randn(1, 1, 50, 3, dtype=torch.float64, generator=generator)], 2) * scale
        output = attend(asked, key, key)
        assert (output <= key.amax(2, keepdim=True) + 1e-12).all()
        assert (output >= key.amin(2, keepdim=True) - 1e-12).all()


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.integers(0, 999)
)
def test_explicit_equals_the_slow_loop(batch: int, heads: int, queries: int, keys: int, width: int, seed: int) -> None:
    torch.manual_seed(seed)
    query, key, value = random_qkv(batch, heads, queries, keys, width)
    allowed = random_mask(batch, heads, queries, keys)
    slow_output, slow_alpha = slow_attention(query, key, value, allowed)
    output, alpha = attend_with_weights(query, key, value, allowed)
    torch.testing.assert_close(output, slow_output)
    torch.testing.assert_close(alpha, slow_alpha)
    assert (alpha[~allowed] == 0).all()


def test_both_kernels_equal_the_slow_loop(kernel: str) -> None:
    torch.manual_seed(0)
    query, key, value = random_qkv(2, 3, 4, 5)
    allowed = random_mask(2, 3, 4, 5)
    torch.testing.assert_close(attend(query, key, value, allowed), slow_attention(query, key, value, allowed)[0])
    everything = torch.ones_like(allowed)
    torch.testing.assert_close(attend(query, key, value), slow_attention(query, key, value, everything)[0])


@pytest.mark.parametrize("keys", [255, 256, 257])
def test_nothing_changes_where_the_kernel_changes(keys: int) -> None:
    torch.manual_seed(0)
    query, key, value = (each.float() for each in random_qkv(2, 2, 3, keys))
    allowed = masks.padding(torch.arange(keys) < torch.tensor([[keys], [keys - 9]]))
    output = attend(query, key, value, allowed)
    torch.testing.assert_close(output, F.scaled_dot_product_attention(query, key, value, allowed))
    torch.testing.assert_close(output, attend_with_weights(query, key, value, allowed)[0])


def test_the_fused_kernel_starts_at_its_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *args: used.append(args[1].shape[2]) or args[2])
    for keys in (scaled_dot_product.FUSED_FROM_KEYS - 1, scaled_dot_product.FUSED_FROM_KEYS):
        attend(*random_qkv(1, 1, 1, keys))
    assert used == [scaled_dot_product.FUSED_FROM_KEYS]


def test_gradients_are_right(kernel: str) -> None:
    torch.manual_seed(0)
    query, key, value = (each.requires_grad_() for each in random_qkv(2, 1, 3, 4))
    allowed = random_mask(2, 1, 3, 4)
    assert torch.autograd.gradcheck(lambda q, k, v: attend(q, k, v, allowed), (query, key, value))


def test_gradients_of_the_weights_are_right() -> None:
    torch.manual_seed(0)
    query, key, value = (each.requires_grad_() for each in random_qkv(1, 2, 3, 4))
    allowed = random_mask(1, 2, 3, 4)
    assert torch.autograd.gradcheck(lambda q, k, v: attend_with_weights(q, k, v, allowed), (query, key, value))


def test_a_forbidden_key_gets_no_gradient(kernel: str) -> None:
    torch.manual_seed(0)
    query, key, value = (each.requires_grad_() for each in random_qkv(1, 2, 3, 5))
    allowed = masks.padding(torch.tensor([[True, True, True, False, False]]))
    attend(query, key, value, allowed).square().sum().backward()
    for leaf in (key, value):
        assert leaf.grad is not None
        assert (leaf.grad[:, :, 3:] == 0).all()
        assert (leaf.grad[:, :, :3] != 0).any()


def test_the_softmax_of_bf16_scores_is_taken_in_fp32() -> None:
    torch.manual_seed(0)
    query, key, value = (each.bfloat16() for each in random_qkv(1, 1, 4, 64))
    output, alpha = attend_with_weights(query, key, value)
    assert (output.dtype, alpha.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(alpha.sum(-1), torch.ones(1, 1, 4))


def test_huge_scores_stay_finite(kernel: str) -> None:
    query, key = torch.full((1, 1, 1, 4), 1e4), torch.full((1, 1, 3, 4), 1e4)
    key[0, 0, 1] *= -1
    value = torch.tensor([1.0, 2.0, 3.0]).view(1, 1, 3, 1)
    assert attend(query, key, value).item() == 2.0  # halfway between the first and the last


def test_dropout_falls_on_the_weights_and_leaves_the_reported_ones_whole() -> None:
    torch.manual_seed(0)
    query, key, _ = random_qkv(1, 1, 50, 40)
    identity_SS = torch.eye(40, dtype=torch.float64)[None, None]
    output, alpha = attend_with_weights(query, key, identity_SS, dropout_rate=0.5)
    torch.testing.assert_close(alpha, attention_weights(query, key))
    ratio = output / alpha  # values are the identity: the output is the weights that were used
    torch.testing.assert_close(ratio[ratio != 0], torch.full_like(ratio[ratio != 0], 2.0))
    assert (ratio == 0).double().mean().item() == pytest.approx(0.5, abs=0.05)


def test_what_is_read_besides_the_values_is_read_with_the_same_weights() -> None:
    torch.manual_seed(0)
    query, key, _ = random_qkv(1, 1, 8, 6)
    value = torch.cat((torch.eye(6), torch.zeros(6, 6)), 1)[None, None]  # the weights themselves

    def also(alpha: Tensor) -> Tensor:
        return torch.cat((torch.zeros_like(alpha), 3 * alpha), -1).double()

    for rate in (0.0, 0.5):
        position = torch.arange(8)[None]
        given = ScaledDot(4, 4), Softmax(4), query, key, value, None, position
        output, alpha = attend_by(*given, dropout_rate=rate, also=also)
        assert output.dtype is torch.float32  # the values' own
        torch.testing.assert_close(output[..., 6:], 3 * output[..., :6])
        torch.testing.assert_close(alpha, attention_weights(query, key))
        assert bool((output == 0).any()) == (rate > 0)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_biases_and_shared_heads_in_the_slow_loop(kernel: str, groups: int) -> None:
    # A bias is one more feature of keys; shared heads are repeated ones.
    torch.manual_seed(0)
    query, key, value = random_qkv(2, 4, 3, 5)
    allowed, bias = random_mask(2, 4, 3, 5), torch.randn(4, 3, 5, dtype=torch.float64)
    key, value = key[:, :groups], value[:, :groups]
    repeated = [each.repeat_interleave(4 // groups, 1) for each in (key, value)]
    output, alpha = attend_with_weights(query, key, value, allowed, bias=bias)
    torch.testing.assert_close(attend(query, key, value, allowed, bias=bias), output)
    for t in range(3):  # q . (k, bias_t) with q = (q, sqrt(width))
        wider = torch.cat((query[:, :, t : t + 1], torch.full((2, 4, 1, 1), 2.0).double()), -1) * (5 / 4) ** 0.5
        longer = torch.cat((repeated[0], bias[:, t, :, None].expand(2, -1, -1, -1)), -1)
        slow_output, slow_alpha = slow_attention(wider, longer, repeated[1], allowed[:, :, t : t + 1])
        torch.testing.assert_close(output[:, :, t : t + 1], slow_output)
        torch.testing.assert_close(alpha[:, :, t : t + 1], slow_alpha)


def test_a_bias_has_the_same_gradient_through_both_kernels(kernel: str) -> None:
    torch.manual_seed(0)
    query, key, value = random_qkv(1, 2, 3, 4)
    bias = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    allowed = random_mask(1, 2, 3, 4)
    assert torch.autograd.gradcheck(lambda b: attend(query, key[:, :1], value[:, :1], allowed, bias=b), (bias,))
