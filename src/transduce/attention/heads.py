"""Multi-head attention (Vaswani et al. 2017, section 3.2.2).

    head_i = attend(x W_i^Q, y W_i^K, y W_i^V),   output = [head_1; ..; head_H] W^O

Shapes: B batch, T queries, S keys, D model width, H heads, E = D / H.
"""

from torch import Tensor, nn

from transduce.attention.cache import KeyValue
from transduce.attention.capture import active_record
from transduce.attention.core import attend, attend_visibly
from transduce.attention.positions import rotate


class MultiHeadAttention(nn.Module):
    """H heads side by side. Self-attention hands its own input to `keys_values`, cross-attention the encoder's states.

    Args:
        width: D, divisible by heads.
        heads: H.
        dropout: rate on the attention weights while training.
        rotary: turn queries and keys by their positions.
    """

    def __init__(self, width: int, heads: int, dropout: float = 0.0, rotary: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.rotary = rotary
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)
        for projection in (self.query, self.key_value, self.output):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def keys_values(self, y_BSD: Tensor, offset: int = 0) -> KeyValue:
        """What `y` offers to be attended to; its first position is number `offset`."""
        key_BHSE, value_BHSE = (self._split(half) for half in self.key_value(y_BSD).chunk(2, -1))
        return KeyValue(rotate(key_BHSE, offset) if self.rotary else key_BHSE, value_BHSE)

    def empty(self, rows: int) -> KeyValue:
        """The keys and values of no positions, for `rows` sequences."""
        weight = self.query.weight
        nothing_BHSE = weight.new_empty(rows, self.heads, 0, len(weight) // self.heads)
        return KeyValue(nothing_BHSE, nothing_BHSE)

    def forward(self, x_BTD: Tensor, memory: KeyValue, allowed: Tensor | None = None, offset: int = 0) -> Tensor:
        """What each query x reads from `memory`: (B, T, D).

        Args:
            allowed: bool, broadcastable to (B, H, T, S), True = may attend; None = all may.
            offset: the position of the first query (for rotary positions).
        """
        query_BHTE = self._split(self.query(x_BTD))
        if self.rotary:
            query_BHTE = rotate(query_BHTE, offset)
        rate = self.dropout if self.training else 0.0
        record = active_record()
        if record is None:
            read_BHTE = attend(query_BHTE, memory.key, memory.value, allowed, rate)
        else:
            read_BHTE, alpha_BHTS = attend_visibly(query_BHTE, memory.key, memory.value, allowed, rate)
            record.take(self, alpha_BHTS)
        return self.output(read_BHTE.transpose(1, 2).flatten(2))

    def _split(self, x_BTD: Tensor) -> Tensor:
        return x_BTD.view(*x_BTD.shape[:2], self.heads, -1).transpose(1, 2)
