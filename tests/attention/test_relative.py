"""Positions that know distances, each against a slow loop from its paper."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from transduce.attention import MultiHeadAttention, capture, masks, scaled_dot_product
from transduce.attention.relative import T5, Alibi, Relative, Rotary, Shaw, buckets, distances, slopes
from transduce.core.registry import known, resolve

HEADS, WIDTH, LENGTH = 3, 4, 7
KINDS = known("attention.relative")


@pytest.fixture(params=["explicit", "fused"])
def _kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaled_dot_product, "FUSED_FROM_KEYS", 0 if request.param == "fused" else 10**9)


def make(name: str, causal: bool) -> Relative:
    """Small enough that distances are clipped and share buckets within a few positions; parameters are random."""
    torch.manual_seed(1)
    less = {"shaw": {"clip": 2}, "t5": {"count": 8, "far": 6}}
    made: Relative = resolve("attention.relative", name)(HEADS, WIDTH, causal, **less.get(name, {}))
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made


# ---- slow loops ----------------------------------------------------------------------------------------------

Vector = list[float]


def dot(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def turned(x: Vector, position: int) -> Vector:
    """Su et al. 2021, equation 15: each pair of features turned by m theta_i, theta_i = 10000^(-2 i / d)."""
    found = []
    for i in range(len(x) // 2):
        angle = position * 10000 ** (-2 * i / len(x))
        a, b = x[2 * i], x[2 * i + 1]
        found += [a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle)]
    return found


def slow_rotary(positions: Relative, head: int, q: Vector, k: Vector, t: int, s: int) -> float:
    return dot(turned(q, t), turned(k, s)) / math.sqrt(WIDTH)


def slow_alibi(positions: Relative, head: int, q: Vector, k: Vector, t: int, s: int) -> float:
    slope = [2**-4, 2**-8, 2**-2][head]  # of 2 heads, and the first of 4
    return dot(q, k) / math.sqrt(WIDTH) - slope * abs(t - s)


def slow_shaw(positions: Relative, head: int, q: Vector, k: Vector, t: int, s: int) -> float:
    """Shaw et al. 2018, equation 4: q (k + a^K_ts) / sqrt(d)."""
    assert isinstance(positions, Shaw)
    a = positions.key_KE[max(-2, min(2, s - t)) + 2].tolist()
    return dot(q, [x + y for x, y in zip(k, a, strict=True)]) / math.sqrt(WIDTH)


def slow_t5(positions: Relative, head: int, q: Vector, k: Vector, t: int, s: int) -> float:
    assert isinstance(positions, T5)
    ahead, behind = {0: 0, 1: 5, 2: 6}, {0: 0, 1: 1, 2: 2}  # 4 buckets a side: 0, 1, [2, sqrt(12)), the rest
    place = ahead.get(s - t, 6 if s - t == 3 else 7) if s > t else behind.get(t - s, 2 if t - s == 3 else 3)
    return dot(q, k) / math.sqrt(WIDTH) + positions.bias_KH[place, head].item()


SLOW: dict[str, Callable[[Relative, int, Vector, Vector, int, int], float]] = {
    "rotary": slow_rotary,
    "alibi": slow_alibi,
    "shaw": slow_shaw,
    "t5": slow_t5,
}


def slow_attention(attention: MultiHeadAttention, name: str, x_TD: Tensor, allowed_TS: Tensor) -> Tensor:
    """(T, D): one sentence, one query and one key at a time."""
    positions = attention.positions
    assert positions is not None
    q, k, v = attention.query(x_TD), *attention.key_value(x_TD).chunk(2, -1)
    read_THE = torch.zeros(len(x_TD), HEADS, WIDTH, dtype=x_TD.dtype)
    for h in range(HEADS):
        own = slice(h * WIDTH, (h + 1) * WIDTH)
        for t in range(len(x_TD)):
            keys = [s for s in range(len(x_TD)) if allowed_TS[t, s]]
            scores = [SLOW[name](positions, h, q[t, own].tolist(), k[s, own].tolist(), t, s) for s in keys]
            total = sum(math.exp(score) for score in scores)
            for s, score in zip(keys, scores, strict=True):
                value_E = v[s, own]
                if isinstance(positions, Shaw):  # equation 3: x W^V + a^V_ts
                    value_E = value_E + positions.value_KE[max(-2, min(2, s - t)) + 2]
                read_THE[t, h] += math.exp(score) / total * value_E
    projected: Tensor = attention.output(read_THE.flatten(1))
    return projected


@torch.no_grad()
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.usefixtures("_kernel")
def test_equals_the_slow_loop(name: str) -> None:
    attention = MultiHeadAttention(HEADS * WIDTH, HEADS, positions=make(name, causal=False))
    x_BTD = torch.randn(2, LENGTH, HEADS * WIDTH)
    real_BS = torch.arange(LENGTH) < torch.tensor([[LENGTH], [LENGTH - 2]])
    output_BTD = attention(x_BTD, attention.keys_values(x_BTD), masks.padding(real_BS))
    with capture(attention):
        openly_BTD = attention(x_BTD, attention.keys_values(x_BTD), masks.padding(real_BS))
    for b in range(2):
        expected_TD = slow_attention(attention, name, x_BTD[b], real_BS[b].expand(LENGTH, -1))
        torch.testing.assert_close(output_BTD[b], expected_TD, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(openly_BTD[b], expected_TD, rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("name", ["rotary", "alibi", "shaw"])  # T5 shares its buckets out differently
@pytest.mark.usefixtures("_kernel")
def test_causal_ones_equal_the_slow_loop(name: str) -> None:
    positions = make(name, causal=True)
    attention = MultiHeadAttention(HEADS * WIDTH, HEADS, positions=positions)
    x_BTD = torch.randn(1, LENGTH, HEADS * WIDTH)
    output_BTD = attention(x_BTD, attention.keys_values(x_BTD), masks.causal(LENGTH))
    expected_TD = slow_attention(attention, name, x_BTD[0], masks.causal(LENGTH)[0, 0])
    torch.testing.assert_close(output_BTD[0], expected_TD, rtol=1e-5, atol=1e-5)
    if isinstance(positions, Shaw):
        assert len(positions.key_KE) == len(positions.value_KE) == 3  # nothing is kept for what is never seen


# ---- what each promises --------------------------------------------------------------------------------------


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_only_distances_count(name: str, causal: bool) -> None:
    # Two sentences of equal words, one of them with others before it: their scores are the same.
    attention = MultiHeadAttention(HEADS * WIDTH, HEADS, positions=make(name, causal)).double()
    x_BTD = torch.randn(1, LENGTH, HEADS * WIDTH, dtype=torch.float64)
    whole = attention(x_BTD, attention.keys_values(x_BTD), masks.causal(LENGTH) if causal else None)
    before = torch.randn(1, 5, HEADS * WIDTH, dtype=torch.float64)
    memory = attention.keys_values(torch.cat((before, x_BTD), 1))
    seen = torch.arange(LENGTH + 5) >= 5
    allowed = seen & masks.causal(LENGTH, 5) if causal else seen[None, None, None]
    torch.testing.assert_close(attention(x_BTD, memory, allowed, offset=5), whole)


@pytest.mark.parametrize("name", KINDS)
def test_gradients_are_right(name: str) -> None:
    positions = make(name, causal=False).double()
    query = torch.randn(1, HEADS, 3, WIDTH, dtype=torch.float64, requires_grad=True)
    alpha = torch.rand(1, HEADS, 3, 4, dtype=torch.float64, requires_grad=True)

    def uses(query: Tensor, alpha: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        found = (positions.turn(query, 1), positions.bias(query, 4, 1))
        read = positions.read(alpha, 1) if positions.reads else None
        return tuple(each for each in (*found, read) if each is not None and each.requires_grad)

    assert torch.autograd.gradcheck(uses, (query, alpha, *positions.parameters()))


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.usefixtures("_kernel")
def test_gradients_through_either_kernel_are_the_same(name: str) -> None:
    attention = MultiHeadAttention(HEADS * WIDTH, HEADS, positions=make(name, causal=True)).double()
    x_BTD = torch.randn(2, 4, HEADS * WIDTH, dtype=torch.float64)
    attention(x_BTD, attention.keys_values(x_BTD), masks.causal(4)).square().sum().backward()
    found = [parameter.grad.clone() for parameter in attention.parameters() if parameter.grad is not None]
    attention.zero_grad()
    with capture(attention):  # openly
        attention(x_BTD, attention.keys_values(x_BTD), masks.causal(4)).square().sum().backward()
    expected = [parameter.grad for parameter in attention.parameters()]
    torch.testing.assert_close(found, expected)


def test_distances_are_seen_from_the_query() -> None:
    assert distances(2, 4, offset=2).tolist() == [[-2, -1, 0, 1], [-3, -2, -1, 0]]


def test_a_kind_by_itself_does_nothing() -> None:
    nothing, x_BHTE = Relative(2, 4, causal=False), torch.randn(1, 2, 3, 4)
    assert nothing.turn(x_BHTE, 5) is x_BHTE
    assert nothing.bias(x_BHTE, 3, 0) is None
    assert not nothing.reads


def test_rotary_wants_pairs() -> None:
    with pytest.raises(ValueError, match="an even width per head, not 3"):
        Rotary(2, 3, causal=False)


# ---- golden values -------------------------------------------------------------------------------------------


def test_slopes_of_the_paper() -> None:
    assert slopes(8).tolist() == [2**-i for i in range(1, 9)]
    assert slopes(16).tolist() == pytest.approx([2 ** (-i / 2) for i in range(1, 17)])
    assert slopes(1).tolist() == [2**-8]


def test_slopes_where_heads_are_no_power_of_2() -> None:
    # Those of 8, then the first, third, .. of 16; equal to transformers 4.57.6, Bloom's build_alibi_tensor.
    printed = [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]
    printed += [0.7071067690849304, 0.3535533845424652, 0.1767766773700714, 0.0883883386850357]
    assert Alibi(12, 4, causal=True).slope_H.tolist() == pytest.approx(printed, rel=1e-6)


# The first distance of each bucket, from transformers 4.57.6, T5Attention._relative_position_bucket.
BEHIND_CAUSAL = [*range(17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]
BEHIND = [*range(8), 8, 12, 16, 23, 32, 46, 64, 91]


def test_buckets_that_look_back() -> None:
    expected = [max(b for b, first in enumerate(BEHIND_CAUSAL) if away >= first) for away in range(5000)]
    assert buckets(-torch.arange(5000), causal=True).tolist() == expected
    assert (buckets(torch.arange(50), causal=True) == 0).all()


def test_buckets_that_look_both_ways() -> None:
    expected = [max(b for b, first in enumerate(BEHIND) if away >= first) for away in range(5000)]
    assert buckets(-torch.arange(5000), causal=False).tolist() == expected
    assert buckets(torch.arange(1, 5000), causal=False).tolist() == [16 + bucket for bucket in expected[1:]]


def test_shaw_clips() -> None:
    positions = Shaw(1, 2, causal=False, clip=1)
    assert len(positions.key_KE) == 3
    query = torch.randn(1, 1, 1, 2)
    bias = positions.bias(query, 7, 3)[0, 0, 0]
    assert (bias[:3] == bias[2]).all()
    assert (bias[4:] == bias[4]).all()
    assert len(set(bias.tolist())) == 3


def test_only_t5_is_shared_by_the_blocks() -> None:
    assert [name for name in KINDS if resolve("attention.relative", name).shared] == ["t5"]
