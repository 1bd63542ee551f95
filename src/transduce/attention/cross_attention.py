"""What a decoder reads a source with, whatever the decoder: any score, any weighing, one head or several.

    alpha_t = weigh(score(q_t, k_s) for all s),   c_t = sum_s alpha_ts v_s

Shapes: B batch, T queries, S source positions, D query width, M memory width, H heads, E = M / H (D if H = 1).
"""

import torch
from torch import Tensor, nn

from transduce.attention.cache import KeyValue
from transduce.attention.capture import Role, Side, active_record
from transduce.attention.scaled_dot_product import attend_by
from transduce.core.registry import resolve
from transduce.kernels.matmul import Linear


class Reader(nn.Module):
    """Cross-attention of recurrent and convolutional decoders.

    With one head queries, keys and values are what they are, as Bahdanau et al. 2015 and Luong et al. 2015 have it;
    with several each head sees projections of them (Vaswani et al. 2017).

    Args:
        score: the name of a score of `transduce.attention.scores`, or a user's own.
        weighing: the name of a weighing of `transduce.attention.normalizers`, or a user's own.
        query_width: D.
        memory_width: M, a multiple of heads.
        heads: H.
    """

    role: Role = "cross"
    side: Side = "decoder"

    def __init__(self, score: str, weighing: str, query_width: int, memory_width: int, heads: int = 1) -> None:
        super().__init__()
        self.heads = heads
        head_width = memory_width // heads
        self.query = Linear(query_width, memory_width) if heads > 1 else nn.Identity()
        self.key = Linear(memory_width, memory_width) if heads > 1 else nn.Identity()
        self.value = Linear(memory_width, memory_width) if heads > 1 else nn.Identity()
        self.score = resolve("attention.scores", score)(head_width if heads > 1 else query_width, head_width)
        self.weigh = resolve("attention.normalizers", weighing)(head_width if heads > 1 else query_width)

    @property
    def sequential(self) -> bool:
        """True: queries must come one at a time, each with the weights of the one before."""
        return bool(self.score.sequential or self.weigh.sequential)

    def remember(self, states_BSM: Tensor, values_BSM: Tensor | None = None) -> KeyValue:
        """The source as the score wants it, computed once: `key` is (B, H, S, any), `value` (B, H, S, M / H).

        Args:
            states_BSM: what is compared with queries.
            values_BSM: what is read out, where it is something else.
        """
        value_BHSE = self._split(self.value(states_BSM if values_BSM is None else values_BSM))
        return KeyValue(self.score.keys(self._split(self.key(states_BSM))), value_BHSE)

    def forward(
        self,
        query_BTD: Tensor,
        memory: KeyValue,
        allowed: Tensor | None,
        position_BT: Tensor,
        previous_BHTS: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The contexts c (B, T, M) and the weights alpha (B, H, T, S), which a record is handed as well.

        Args:
            allowed: bool, broadcastable to (B, H, T, S), True = may attend; None = all may.
            position_BT: int64, (B, T) or (1, T): which target position each query stands at, counted from 0.
            previous_BHTS: the weights before each query, None before the first; only a sequential reader looks.
        """
        query_BHTE = self._split(self.query(query_BTD))
        read_BHTE, alpha_BHTS = attend_by(
            self.score, self.weigh, query_BHTE, memory.key, memory.value, allowed, position_BT, previous_BHTS
        )
        record = active_record()
        if record is not None:
            record.take(self, alpha_BHTS)
        return read_BHTE.transpose(1, 2).flatten(2), alpha_BHTS

    def _split(self, x_BTD: Tensor) -> Tensor:
        return torch.unflatten(x_BTD, -1, (self.heads, -1)).transpose(1, 2)
