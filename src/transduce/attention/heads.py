"""Multi-head attention (Vaswani et al. 2017, section 3.2.2), with a choice of score, normalizer and positions.

    head_i = sum_s alpha_s v_s,   alpha = weigh(score(q, k) + bias),   q = x W_i^Q, k = y W_i^K, v = y W_i^V
    output = [head_1; ..; head_H] W^O

Shapes: B batch, T queries, S keys, D model width, H heads, G heads of keys and values, E width of a head.
"""

import torch
from torch import Tensor, nn

from transduce.attention.blocked import attend_text
from transduce.attention.cache import KeyValue
from transduce.attention.capture import Role, Side, active_record
from transduce.attention.interventions import active_interventions, changed
from transduce.attention.normalizers import Softmax
from transduce.attention.relative import Relative, Rotary
from transduce.attention.scaled_dot_product import attend_by
from transduce.attention.scores import AttentionScore, ScaledDot
from transduce.attention.shared_kv_cache import Attended
from transduce.attention.sparse import Allowed, mask_of
from transduce.core.registry import resolve
from transduce.kernels.matmul import Linear


class MultiHeadAttention(nn.Module):
    """H attention heads. `keys_values` takes the layer's input for self-attention, encoder states for cross-attention.

    Args:
        width: D, divisible by heads.
        heads: H.
        dropout: dropout rate on the attention weights.
        score: name of a score in `transduce.attention.scores`, or your own class; not a sequential one.
        normalizer: name of a normalizer in `transduce.attention.normalizers`, or your own class; not a sequential one.
        positions: relative positions. None for cross-attention, and if the input already contains positions.
        key_value_heads: G, a divisor of heads: the number of heads of keys and values, each read by H / G heads of
            queries. 1 is multi-query attention (Shazeer 2019), more is grouped-query attention (Ainslie et al. 2023).
            The cache holds G heads. None = H.
        zero_init: initialize W^O, and so the output, with zeros (Zhang et al. 2019, "Fixup Initialization", section 3).
        role, side: what it attends to; see `transduce.attention.capture`.
        head_width: E, where H E is not D (T5). None = D / H.
        norm_epsilon: what an RMS norm of each head's queries and keys adds, before positions turn them (Henry et al.
            2020, with RMS norm and a gain as in Qwen3; all heads share the gains). None = there is no such norm.

    Raises:
        InputError: there is no score or normalizer with this name.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        dropout: float = 0.0,
        score: str = "scaled_dot",
        normalizer: str = "softmax",
        positions: Relative | None = None,
        key_value_heads: int | None = None,
        zero_init: bool = False,
        role: Role = "other",
        side: Side = "other",
        head_width: int | None = None,
        norm_epsilon: float | None = None,
    ) -> None:
        super().__init__()
        self.role, self.side = role, side
        self.heads, self.key_value_heads = heads, key_value_heads or heads
        self.head_width = head_width or width // heads
        self.dropout = dropout
        self.query = Linear(width, heads * self.head_width)
        self.key_value = Linear(width, 2 * self.key_value_heads * self.head_width)
        self.output = Linear(heads * self.head_width, width)
        for projection in (self.query, self.key_value, self.output):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)
        if zero_init:
            nn.init.zeros_(self.output.weight)
        self.score = resolve("attention.scores", score)(self.head_width, self.head_width)
        self.weigh = resolve("attention.normalizers", normalizer)(self.head_width)
        self.positions = positions
        normed = norm_epsilon is not None
        self.query_norm = nn.RMSNorm(self.head_width, eps=norm_epsilon) if normed else None
        self.key_norm = nn.RMSNorm(self.head_width, eps=norm_epsilon) if normed else None
        assert not (self.score.sequential or self.weigh.sequential), "here all queries are computed at once"
        plain = type(self.score) is ScaledDot and type(self.weigh) is Softmax
        self._has_a_kernel = plain and not (positions is not None and positions.reads)
        self.can_share = self._has_a_kernel and (positions is None or type(positions) is Rotary)
        """Whether it can read an `Attended`, which hypotheses share. Requires scaled dot products and a softmax."""

    def keys_values(self, y_BSD: Tensor, offset: int = 0) -> KeyValue:
        """Keys and values (B, G, S, E) of y (B, S, D), whose first position is number `offset`."""
        key_BGSE, value_BGSE = (self._split(half) for half in self.key_value(y_BSD).chunk(2, -1))
        if self.key_norm is not None:
            key_BGSE = self.key_norm(key_BGSE)
        if (positions := self._positions_now()) is not None:
            key_BGSE = positions.turn(key_BGSE, offset)
        return KeyValue(self.score.keys(key_BGSE), value_BGSE)

    @property
    def keeps_turned_keys(self) -> bool:
        """Whether keys in the cache are as they were turned, or were not turned at all."""
        turned = self.positions is not None and type(self.positions).turn is not Relative.turn
        return not turned or type(self.score).keys is AttentionScore.keys

    def last(self, past: KeyValue, count: int) -> KeyValue:
        """The cache with its last `count` positions only, the first of which is now number 0."""
        dropped = past.length - count
        if dropped <= 0:
            return past
        key_BGSE, value_BGSE = past.last(count)
        return KeyValue(self.positions.turn_back(key_BGSE, dropped) if self.positions else key_BGSE, value_BGSE)

    def empty(self, rows: int) -> KeyValue:
        """An empty key-value cache for `rows` sequences."""
        nothing_BGSE = self.query.weight.new_empty(rows, self.key_value_heads, 0, self.head_width)
        return KeyValue(nothing_BGSE, nothing_BGSE)

    def forward(self, x_BTD: Tensor, memory: KeyValue | Attended, allowed: Allowed = None, offset: int = 0) -> Tensor:
        """The output of attention from x to `memory`: (B, T, D). A capture records the weights.

        Args:
            x_BTD: the input from which queries are made.
            memory: keys and values for each of the B rows; in prediction, also keys and values that hypotheses share,
                with T = 1.
            allowed: bool, broadcastable to (B, H, T, S), True = may attend; None = all may; or a causal pattern.
            offset: the position of the first query.
        """
        query_BHTE = self._split(self.query(x_BTD))
        if self.query_norm is not None:
            query_BHTE = self.query_norm(query_BHTE)
        if (positions := self._positions_now()) is not None:
            query_BHTE = positions.turn(query_BHTE, offset)
        record = active_record()
        if isinstance(memory, KeyValue):
            read_BHTE, alpha_BHTS = self._attend(query_BHTE, memory, allowed, offset, record is not None)
        else:
            assert allowed is None and self.can_share, "what hypotheses share knows by itself who may see what"
            read_BHTE, alpha_BHTS = memory.read(query_BHTE, with_weights=record is not None)
        if record is not None and alpha_BHTS is not None:
            record.take(self, alpha_BHTS)
        return self.output(read_BHTE.transpose(1, 2).flatten(2))

    def _attend(
        self, query_BHTE: Tensor, memory: KeyValue, allowed: Allowed, offset: int, with_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """The output of the heads, and the weights if they were requested or computed anyway."""
        rate = self.dropout if self.training else 0.0
        positions = self._positions_now()
        bias = positions.bias(query_BHTE, memory.length, offset) if positions is not None else None
        if self._has_a_kernel and not with_weights:
            return attend_text(query_BHTE, memory.key, memory.value, allowed, rate, bias), None
        return self._attend_openly(query_BHTE, memory, mask_of(allowed), rate, bias, offset)

    def _attend_openly(
        self,
        query_BHTE: Tensor,
        memory: KeyValue,
        allowed: Tensor | None,
        rate: float,
        bias: Tensor | None,
        offset: int,
    ) -> tuple[Tensor, Tensor]:
        rows, _, queries, _ = query_BHTE.shape
        position_BT = torch.arange(offset, offset + queries, device=query_BHTE.device).expand(rows, -1)
        positions, weigh = self._positions_now(), changed(self, self.weigh)
        also = (lambda alpha_BHTS: positions.read(alpha_BHTS, offset)) if positions and positions.reads else None
        return attend_by(self.score, weigh, query_BHTE, *memory, allowed, position_BT, None, bias, rate, also)

    def _positions_now(self) -> Relative | None:
        """Its positions, unless they are switched off."""
        return self.positions if active_interventions().positions else None

    def _split(self, x_BTD: Tensor) -> Tensor:
        return torch.unflatten(x_BTD, -1, (-1, self.head_width)).transpose(1, 2)
