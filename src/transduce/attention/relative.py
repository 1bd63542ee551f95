"""What self-attention knows of the distance between a query and a key: a table of equations.

    rotary   e_ts = score(R_t q_t, R_s k_s),   R_t a turn by t's angles                          (Su et al. 2021)
    alibi    e_ts = score(q_t, k_s) - m_h |t - s|,   m_h a slope of head h                       (Press et al. 2022)
    shaw     e_ts = score(q_t, k_s) + q_t . a_(s-t) / sqrt(E),   output_t + sum_s alpha_ts w_(s-t)  (Shaw et al. 2018)
    t5       e_ts = score(q_t, k_s) + b_h[bucket(s - t)]                                         (Raffel et al. 2020)

A recipe names a kind as above in `model.positions`, and your own class as `my_file:MyPositions`: a subclass of
`Relative`. Each can be used with any score and any weighing. `transduce.attention.grid` has the kind for pictures.

Shapes: B batch, H heads, T queries, S keys, E width of a head, K distances or buckets told apart.
"""

import math

import torch
from torch import Tensor, nn

from transduce.attention.positions import rotate, turns
from transduce.kernels.native import rotary

BUCKETS, FARTHEST = 32, 128  # Raffel et al. 2020, section 2.1
CLIPPED = 16  # Shaw et al. 2018, section 4.1


def distances(queries: int, keys: int, offset: int = 0, device: torch.device | None = None) -> Tensor:
    """(T, S) int64: s - t, where query number 0 stands at `offset` and key number 0 at 0. Negative is behind."""
    position_T = torch.arange(offset, offset + queries, device=device)
    return torch.arange(keys, device=device) - position_T[:, None]


class Relative(nn.Module):
    """What every kind is: three places at which distances may enter; each does nothing unless overridden.

    Args:
        heads: H.
        head_width: E.
        causal: no query will see a key that comes after it.
    """

    shared = False
    """True: the blocks of a stack have one object between them, and its parameters."""

    def __init__(self, heads: int, head_width: int, causal: bool) -> None:
        super().__init__()

    def turn(self, x_BHTE: Tensor, offset: int) -> Tensor:
        """Queries or keys, the first of which stands at `offset`, as the score shall see them: of the same shape."""
        return x_BHTE

    def bias(self, query_BHTE: Tensor, keys: int, offset: int) -> Tensor | None:
        """What is added to the scores, broadcastable to (B, H, T, S); None is nothing.

        Args:
            query_BHTE: the turned queries, the first of which stands at `offset`.
            keys: S; they stand at 0 .. S - 1.
        """
        return None

    @property
    def reads(self) -> bool:
        """Whether `read` has something to say, for which weights must be there to be seen: no fused kernel."""
        return type(self).read is not Relative.read

    def read(self, alpha_BHTS: Tensor, offset: int) -> Tensor:
        """What the weights read besides the values, (B, H, T, E)."""
        raise NotImplementedError


class Rotary(Relative):
    """Turns queries and keys, so that their dot product depends on their distance alone (Su et al. 2021, eq. 34)."""

    def __init__(self, heads: int, head_width: int, causal: bool) -> None:
        super().__init__(heads, head_width, causal)
        if head_width % 2:
            raise ValueError(f"rotary positions need an even width per head, not {head_width}")
        self.head_width = head_width

    def turn(self, x_BHTE: Tensor, offset: int) -> Tensor:
        """(B, H, T, E)."""
        if rotary.can_turn(x_BHTE):
            end = offset + x_BHTE.shape[2]
            return rotary.turned(x_BHTE, self.turns(end)[offset:end])
        return rotate(x_BHTE, offset)

    def turns(self, length: int) -> Tensor:
        """(T, E) fp32, T >= length: cosine and sine in turn of the angles of the first positions; of all heads."""
        return turns(length, self.head_width)


class Alibi(Relative):
    """-m_h |t - s|: the farther, the less, each head with a slope of its own (Press et al. 2022, section 3).

    The paper looks back only. In an encoder, which looks both ways, ahead is as far as behind, and what tells the two
    apart is left to the decoder.
    """

    def __init__(self, heads: int, head_width: int, causal: bool) -> None:
        super().__init__(heads, head_width, causal)
        self.register_buffer("slope_H", slopes(heads).float(), persistent=False)
        self.slope_H: Tensor

    def bias(self, query_BHTE: Tensor, keys: int, offset: int) -> Tensor:
        """(H, T, S) in the slopes' type, which is not rounded where queries are."""
        away_TS = distances(query_BHTE.shape[2], keys, offset, query_BHTE.device).abs()
        return -self.slope_H[:, None, None] * away_TS


def slopes(heads: int) -> Tensor:
    """(H,) in fp64: 2^(-8 i / H), i = 1 .. H, where H is a power of 2.

    Elsewhere those of the next lower power of 2, then every other one of the power after it, as in the paper's code.
    """
    lower = 2 ** int(math.log2(heads))
    slope_H = _geometric(lower)
    return torch.cat((slope_H, _geometric(2 * lower)[0::2][: heads - lower]))


def _geometric(heads: int) -> Tensor:
    return 2.0 ** (-8 / heads * torch.arange(1, heads + 1, dtype=torch.float64))


class Shaw(Relative):
    """A learned vector a distance, for keys and for values; farther than `clip` is `clip` (Shaw et al. 2018, eq. 3-5).

    The heads share the vectors (section 3.3), the blocks do not.

        e_ts = .. + q_t . a_c / sqrt(E),   output_t = .. + sum_s alpha_ts w_c,   c = clip(s - t, -clip, clip)
    """

    def __init__(self, heads: int, head_width: int, causal: bool, clip: int = CLIPPED) -> None:
        super().__init__(heads, head_width, causal)
        self.clip = clip
        told_apart = clip + 1 if causal else 2 * clip + 1
        self.key_KE = nn.Parameter(nn.init.xavier_uniform_(torch.empty(told_apart, head_width)))
        self.value_KE = nn.Parameter(nn.init.xavier_uniform_(torch.empty(told_apart, head_width)))

    def bias(self, query_BHTE: Tensor, keys: int, offset: int) -> Tensor:
        """(B, H, T, S): each query meets each of the K vectors once, whatever S is."""
        product_BHTK = (query_BHTE * query_BHTE.shape[-1] ** -0.5) @ self.key_KE.mT
        place_TS = self._places(query_BHTE.shape[2], keys, offset)
        return product_BHTK.gather(-1, place_TS.expand(*query_BHTE.shape[:2], -1, -1))

    def read(self, alpha_BHTS: Tensor, offset: int) -> Tensor:
        """(B, H, T, E): weights of one distance are summed before they meet its vector."""
        place_TS = self._places(alpha_BHTS.shape[2], alpha_BHTS.shape[3], offset)
        mass_BHTK = alpha_BHTS.new_zeros(*alpha_BHTS.shape[:3], len(self.value_KE))
        mass_BHTK = mass_BHTK.scatter_add(-1, place_TS.expand_as(alpha_BHTS), alpha_BHTS)
        return mass_BHTK.to(self.value_KE.dtype) @ self.value_KE

    def _places(self, queries: int, keys: int, offset: int) -> Tensor:
        """(T, S): the rows of the tables. What comes after a causal query has none, and is never seen: row clip."""
        farthest = len(self.key_KE) - 1 - self.clip
        return distances(queries, keys, offset, self.key_KE.device).clamp(-self.clip, farthest) + self.clip


class T5(Relative):
    """A learned number a bucket of distances and a head, the same in all blocks of a stack (Raffel et al. 2020, 2.1).

    T5 itself does not scale its scores: that is `score = "dot"`.
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


def buckets(away_TS: Tensor, causal: bool, count: int = BUCKETS, far: int = FARTHEST) -> Tensor:
    """The bucket, 0 .. count - 1, of each distance s - t; any shape.

    Of those of one direction the first half holds one distance each, the second half ever more, up to `far`, from
    which on all are one. Causal: ahead is never seen, and all buckets look back. Else the upper half looks ahead.
    """
    if causal:
        return _one_way((-away_TS).clamp(min=0), count, far)
    half = count // 2
    return _one_way(away_TS.abs(), half, far) + half * (away_TS > 0)


def _one_way(away_TS: Tensor, count: int, far: int) -> Tensor:
    exact = count // 2
    beyond_TS = (away_TS.clamp(min=exact).double() / exact).log() / math.log(far / exact)
    bucket_TS = (exact + beyond_TS * (count - exact)).long().clamp(max=count - 1)
    return torch.where(away_TS < exact, away_TS, bucket_TS)
