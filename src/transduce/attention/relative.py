"""Relative positions: how self-attention uses the distance between a query and a key.

    rotary   e_ts = score(R_t q_t, R_s k_s),   R_t the rotation by the angles of t               (Su et al. 2021)
    alibi    e_ts = score(q_t, k_s) - m_h |t - s|,   m_h a slope of head h                       (Press et al. 2022)
    shaw     e_ts = score(q_t, k_s) + q_t . a_(s-t) / sqrt(E),   output_t + sum_s alpha_ts w_(s-t)  (Shaw et al. 2018)
    t5       e_ts = score(q_t, k_s) + b_h[bucket(s - t)]                                         (Raffel et al. 2020)

A recipe names one of these in `model.positions`, or your own subclass of `Relative` as `my_file:MyPositions`. Each
works with any score and normalizer. Positions on two-dimensional grids are in `transduce.attention.convolution`.

Shapes: B batch, H heads, T queries, S keys, E width of a head, K distinct distances or buckets.
"""

import math
from functools import cache, lru_cache

import torch
from torch import Tensor, nn

from transduce.attention.positions import rotate, rotate_evenly
from transduce.attention.rotary_scaling import RotaryScaling, rotary_frequencies
from transduce.kernels.native import rotary
from transduce.kernels.sinusoids import BASE, turns_by

BUCKETS, FARTHEST = 32, 128  # Raffel et al. 2020, section 2.1
CLIPPED = 16  # Shaw et al. 2018, section 4.1


def distances(queries: int, keys: int, offset: int = 0, device: torch.device | None = None) -> Tensor:
    """(T, S) int64: s - t, where the first query is at position `offset` and the first key at 0. Negative: earlier."""
    position_T = torch.arange(offset, offset + queries, device=device)
    return torch.arange(keys, device=device) - position_T[:, None]


class Relative(nn.Module):
    """Base class: three points at which distances can enter. Each does nothing unless overridden.

    Args:
        heads: H.
        head_width: E.
        causal: no query will attend to a later key.
    """

    shared = False
    """True if all blocks of a stack share one object with its parameters."""

    def __init__(self, heads: int, head_width: int, causal: bool) -> None:
        super().__init__()

    def turn(self, x_BHTE: Tensor, offset: int) -> Tensor:
        """Queries or keys (B, H, T, E) transformed for the score, in the same shape; the first is at `offset`."""
        return x_BHTE

    def turn_back(self, x_BHTE: Tensor, steps: int) -> Tensor:
        """The result of `turn` for positions that are `steps` lower, computed from that for the actual ones.

        It is needed when a cache drops its first positions. A class with a `turn` of its own must override it as well.
        """
        return x_BHTE

    @property
    def turns_back(self) -> bool:
        return type(self).turn is Relative.turn or type(self).turn_back is not Relative.turn_back

    def bias(self, query_BHTE: Tensor, keys: int, offset: int) -> Tensor | None:
        """The bias that is added to the scores, broadcastable to (B, H, T, S); None = no bias.

        Args:
            query_BHTE: the result of `turn` for the queries.
            keys: S; the keys are at positions 0 .. S - 1.
            offset: the position of the first query.
        """
        return None

    @property
    def reads(self) -> bool:
        """Whether `read` is overridden. It needs the weights, so no fused kernel can be used."""
        return type(self).read is not Relative.read

    def read(self, alpha_BHTS: Tensor, offset: int) -> Tensor:
        """What is added to the output, computed from the weights: (B, H, T, E)."""
        raise NotImplementedError


class Rotary(Relative):
    """Rotates queries and keys, so that their dot product depends only on their distance (Su et al. 2021, eq. 34).

    Args:
        base: of the angular frequencies base^(-2j/E). Models for long texts have a larger one.
        scaling: how lower frequencies reach farther; see `transduce.attention.rotary_scaling`.

    Raises:
        ValueError: the width of a head is odd.
    """

    def __init__(
        self,
        heads: int,
        head_width: int,
        causal: bool,
        base: float = BASE,
        scaling: RotaryScaling | None = None,
    ) -> None:
        super().__init__(heads, head_width, causal)
        if head_width % 2:
            raise ValueError(f"rotary positions need an even width per head, not {head_width}")
        self.head_width, self.base, self.scaling = head_width, base, scaling

    def turn(self, x_BHTE: Tensor, offset: int) -> Tensor:
        """(B, H, T, E)."""
        if rotary.can_turn(x_BHTE):
            end = offset + x_BHTE.shape[2]
            return rotary.turned(x_BHTE, self.turns(end)[offset:end])
        return rotate(x_BHTE, offset, self.frequencies)

    def turn_back(self, x_BHTE: Tensor, steps: int) -> Tensor:
        """(B, H, T, E): rotated by the angle of position -steps."""
        return rotate_evenly(x_BHTE, -steps, self.frequencies)

    @property
    def frequencies(self) -> Tensor:
        """(E/2,) fp64, in radians per position, the highest first."""
        return rotary_frequencies(self.head_width, self.base, self.scaling)

    def turns(self, length: int) -> Tensor:
        """(T, E) fp32, T >= length: alternating cosines and sines of the angles; the same for all heads. Do not write
        to it.
        """
        return _turns(max(64, 1 << (length - 1).bit_length()), self.head_width, self.base, self.scaling)


@cache
@torch.inference_mode(False)
def _turns(length: int, width: int, base: float, scaling: RotaryScaling | None) -> Tensor:
    return torch.from_numpy(turns_by(length, rotary_frequencies(width, base, scaling).numpy()))


class Alibi(Relative):
    """A bias of -m_h |t - s|, which falls with distance, with one slope per head (Press et al. 2022, section 3).

    The paper covers causal attention only. In an encoder, the bias is the same for earlier and later keys.
    """

    def __init__(self, heads: int, head_width: int, causal: bool) -> None:
        super().__init__(heads, head_width, causal)
        self.register_buffer("slope_H", slopes(heads).float(), persistent=False)
        self.slope_H: Tensor

    def bias(self, query_BHTE: Tensor, keys: int, offset: int) -> Tensor:
        """(H, T, S) in the dtype of the slopes, which is not rounded where queries are."""
        away_TS = distances(query_BHTE.shape[2], keys, offset, query_BHTE.device).abs()
        return -self.slope_H[:, None, None] * away_TS


def slopes(heads: int) -> Tensor:
    """(H,) in fp64: 2^(-8 i / H), i = 1 .. H, if H is a power of 2.

    Otherwise the slopes of the next lower power of 2, then every other slope of the next higher one, as in the paper's
    code.
    """
    lower = 2 ** int(math.log2(heads))
    slope_H = _geometric(lower)
    return torch.cat((slope_H, _geometric(2 * lower)[0::2][: heads - lower]))


def _geometric(heads: int) -> Tensor:
    return 2.0 ** (-8 / heads * torch.arange(1, heads + 1, dtype=torch.float64))


class Shaw(Relative):
    """Learned vectors for each distance, for keys and for values (Shaw et al. 2018, equations 3 to 5).

    Distances beyond `clip` are treated as `clip`. Heads share the vectors (section 3.3); blocks do not.

        e_ts = .. + q_t . a_c / sqrt(E),   output_t = .. + sum_s alpha_ts w_c,   c = clip(s - t, -clip, clip)
    """

    def __init__(self, heads: int, head_width: int, causal: bool, clip: int = CLIPPED) -> None:
        super().__init__(heads, head_width, causal)
        self.clip = clip
        told_apart = clip + 1 if causal else 2 * clip + 1
        self.key_KE = nn.Parameter(nn.init.xavier_uniform_(torch.empty(told_apart, head_width)))
        self.value_KE = nn.Parameter(nn.init.xavier_uniform_(torch.empty(told_apart, head_width)))

    def bias(self, query_BHTE: Tensor, keys: int, offset: int) -> Tensor:
        """(B, H, T, S). Each query is multiplied with each of the K vectors once, whatever S is."""
        product_BHTK = (query_BHTE * query_BHTE.shape[-1] ** -0.5) @ self.key_KE.mT
        place_TS = self._places(query_BHTE.shape[2], keys, offset)
        return product_BHTK.gather(-1, place_TS.expand(*query_BHTE.shape[:2], -1, -1))

    def read(self, alpha_BHTS: Tensor, offset: int) -> Tensor:
        """(B, H, T, E). Weights of the same distance are summed before they are multiplied with its vector."""
        place_TS = self._places(alpha_BHTS.shape[2], alpha_BHTS.shape[3], offset)
        mass_BHTK = alpha_BHTS.new_zeros(*alpha_BHTS.shape[:3], len(self.value_KE))
        mass_BHTK = mass_BHTK.scatter_add(-1, place_TS.expand_as(alpha_BHTS), alpha_BHTS)
        return mass_BHTK.to(self.value_KE.dtype) @ self.value_KE

    def _places(self, queries: int, keys: int, offset: int) -> Tensor:
        """(T, S): the rows of the tables. Keys after a causal query are never attended to; they get row `clip`."""
        farthest = len(self.key_KE) - 1 - self.clip
        return distances(queries, keys, offset, self.key_KE.device).clamp(-self.clip, farthest) + self.clip


class T5(Relative):
    """A learned bias for each bucket of distances and each head (Raffel et al. 2020, section 2.1).

    All blocks of a stack share the biases. T5 itself does not scale its scores; use `score = "dot"` for that.
    """

    shared = True

    def __init__(self, heads: int, head_width: int, causal: bool, count: int = BUCKETS, far: int = FARTHEST) -> None:
        super().__init__(heads, head_width, causal)
        self.causal, self.far = causal, far
        self.bias_KH = nn.Parameter(torch.zeros(count, heads))

    def bias(self, query_BHTE: Tensor, keys: int, offset: int) -> Tensor:
        """(H, T, S)."""
        away_TS = distances(query_BHTE.shape[2], keys, offset, self.bias_KH.device)
        bucket_TS = buckets(away_TS, self.causal, len(self.bias_KH), self.far)
        return nn.functional.embedding(bucket_TS, self.bias_KH).permute(2, 0, 1)


def buckets(distance_TS: Tensor, causal: bool, count: int = BUCKETS, far: int = FARTHEST) -> Tensor:
    """The bucket, 0 .. count - 1, of each distance s - t; any shape.

    In each direction, the first half of the buckets holds one distance each. The second half covers logarithmically
    growing ranges up to `far`; all larger distances share the last bucket. If causal, all buckets are for earlier keys.
    Otherwise the upper half of the buckets is for later keys.
    """
    if causal:
        return _one_way((-distance_TS).clamp(min=0), count, far)
    half = count // 2
    return _one_way(distance_TS.abs(), half, far) + half * (distance_TS > 0)


def _one_way(distance_TS: Tensor, count: int, far: int) -> Tensor:
    """Looked up: a logarithm that another library rounds otherwise would choose another bucket."""
    bucket_N = _buckets_of_distances(count, far)
    return torch.tensor(bucket_N, device=distance_TS.device)[distance_TS.clamp(max=len(bucket_N) - 1)]


@lru_cache
def _buckets_of_distances(count: int, far: int) -> tuple[int, ...]:
    """Of 0, 1, 2, .. up to the first distance from which on all have the last bucket."""
    exact = count // 2
    logarithmic = [
        min(count - 1, exact + int(math.log(distance / exact) / math.log(far / exact) * (count - exact)))
        for distance in range(exact, far)
    ]
    return (*range(exact), *logarithmic, count - 1)
