"""Cross-attention for any decoder, with any score and normalizer and with one or more heads.

    alpha_t = weigh(score(q_t, k_s) for all s),   c_t = sum_s alpha_ts v_s

Shapes: B batch, T queries, S source positions, D query width, M memory width, H heads, E = M / H (D if H = 1).
"""

import torch
from torch import Tensor, nn

from transduce.attention.cache import KeyValue
from transduce.attention.capture import Role, Side, active_record
from transduce.attention.interventions import changed
from transduce.attention.scaled_dot_product import attend_by
from transduce.core.registry import resolve
from transduce.kernels.matmul import Linear


class CrossAttention(nn.Module):
    """Cross-attention of recurrent and convolutional decoders.

    With one head, queries, keys and values are used as they are (Bahdanau et al. 2015; Luong et al. 2015). With
    several, each head uses projections of them (Vaswani et al. 2017).

    Args:
        score: name of a score in `transduce.attention.scores`, or your own class as `my_file:MyScore`.
        normalizer: name of a normalizer in `transduce.attention.normalizers`, or your own class.
        query_width: D.
        memory_width: M, a multiple of heads.
        heads: H.

    Raises:
        InputError: there is no score or normalizer with this name.
    """

    role: Role = "cross"
    side: Side = "decoder"

    def __init__(self, score: str, normalizer: str, query_width: int, memory_width: int, heads: int = 1) -> None:
        super().__init__()
        self.heads = heads
        head_width = memory_width // heads
        self.query = Linear(query_width, memory_width) if heads > 1 else nn.Identity()
        self.key = Linear(memory_width, memory_width) if heads > 1 else nn.Identity()
        self.value = Linear(memory_width, memory_width) if heads > 1 else nn.Identity()
        self.score = resolve("attention.scores", score)(head_width if heads > 1 else query_width, head_width)
        self.weigh = resolve("attention.normalizers", normalizer)(head_width if heads > 1 else query_width)

    @property
    def sequential(self) -> bool:
        """Whether queries must be processed one at a time, each with the weights of the previous one."""
        return bool(self.score.sequential or self.weigh.sequential)

    def remember(self, states_BSM: Tensor, values_BSM: Tensor | None = None) -> KeyValue:
        """Keys and values of the source, computed once: `key` is (B, H, S, any), `value` is (B, H, S, M / H).

        Args:
            states_BSM: the states from which keys are made.
            values_BSM: the states from which values are made; None = the same.
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
        """The contexts c (B, T, M) and the weights alpha (B, H, T, S). A capture records the weights.

        Args:
            query_BTD: the queries.
            memory: the result of `remember`.
            allowed: bool, broadcastable to (B, H, T, S), True = may attend; None = all may.
            position_BT: int64, (B, T) or (1, T): the target position of each query, counted from 0.
            previous_BHTS: the weights of the previous query, None before the first. Used only if `sequential`.
        """
        query_BHTE = self._split(self.query(query_BTD))
        read_BHTE, alpha_BHTS = attend_by(
            self.score,
            changed(self, self.weigh),
            query_BHTE,
            memory.key,
            memory.value,
            allowed,
            position_BT,
            previous_BHTS,
        )
        record = active_record()
        if record is not None:
            record.take(self, alpha_BHTS)
        return read_BHTE.transpose(1, 2).flatten(2), alpha_BHTS

    def _split(self, x_BTD: Tensor) -> Tensor:
        return torch.unflatten(x_BTD, -1, (self.heads, -1)).transpose(1, 2)
