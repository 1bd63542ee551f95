"""A Transformer block: self-attention, optional cross-attention, feed-forward (Vaswani et al. 2017, section 3.1).

Shapes: B batch, T positions, S source positions, D model width.
"""

from collections.abc import Callable

from torch import Tensor

from transduce.attention import KeyValue, MultiHeadAttention
from transduce.attention.shared_kv_cache import DecoderCache, EncoderCache
from transduce.attention.sparse import Allowed
from transduce.layers.feedforward import FeedForward
from transduce.layers.recomputation import Recomputable, recomputable
from transduce.layers.residual import Residual


class Block(Recomputable):
    """Attention and feed-forward, each inside a residual connection.

    Args:
        self_attention: attends to the positions of x.
        cross_attention: attends to an encoder's states; None in an encoder and in a language model.
        feed_forward: transforms each position separately.
        residual: makes a residual connection around each of them.
    """

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention | None,
        feed_forward: FeedForward,
        residual: Callable[[], Residual],
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.self_residual = residual()
        self.cross_attention = cross_attention
        self.cross_residual = residual() if cross_attention else None
        self.feed_forward = feed_forward
        self.feed_forward_residual = residual()

    def cross_keys_values(self, encoded_BSD: Tensor) -> KeyValue:
        """Keys and values of this block's cross-attention, from the encoder's states."""
        assert self.cross_attention is not None
        return self.cross_attention.keys_values(encoded_BSD)

    @recomputable
    def forward(
        self,
        x_BTD: Tensor,
        allowed: Allowed,
        past: KeyValue | DecoderCache | None = None,
        source: KeyValue | EncoderCache | None = None,
        source_allowed: Tensor | None = None,
        real_BT: Tensor | None = None,
    ) -> tuple[Tensor, KeyValue | DecoderCache]:
        """The output (B, T, D), and the keys and values of all positions so far.

        Args:
            x_BTD: the input.
            allowed: bool, broadcastable to (B, H, T, past + T), True = may attend; None = all may; or a causal pattern.
            past: keys and values of the positions before x; None = there are none.
            source: `cross_keys_values` of the encoder's states, computed once per sentence.
            source_allowed: bool, broadcastable to (B, H, T, S), True = a real source position; None = all are.
            real_BT: bool, True = a real position of x, for norms over several positions; None = all are.
        """
        seen = past
        offset = past.length if past else 0

        def look_at_self(normed_BTD: Tensor) -> Tensor:
            nonlocal seen
            present = self.self_attention.keys_values(normed_BTD, offset)
            seen = past.append(present) if past else present
            return self.self_attention(normed_BTD, seen, allowed, offset)

        x_BTD = self.self_residual(x_BTD, look_at_self, real_BT)
        if self.cross_attention and self.cross_residual:
            attention = self.cross_attention
            x_BTD = self.cross_residual(
                x_BTD, lambda normed: attention(normed, source, source_allowed, offset), real_BT
            )
        x_BTD = self.feed_forward_residual(x_BTD, self.feed_forward, real_BT)
        assert seen is not None
        return x_BTD, seen
