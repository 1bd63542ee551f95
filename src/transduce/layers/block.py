"""One block of a Transformer: self-attention, cross-attention if it has an encoder to look at, feed-forward.

Source: Vaswani et al. 2017, section 3.1 and figure 1.

Shapes: B batch, T positions, S source positions, D model width.
"""

from collections.abc import Callable

from torch import Tensor, nn

from transduce.attention import KeyValue, MultiHeadAttention
from transduce.attention.shared_kv_cache import Branch, Shared
from transduce.layers.feedforward import FeedForward
from transduce.layers.residual import Residual


class Block(nn.Module):
    """Attention and feed-forward, each inside a residual connection. It is put together from its parts:

    Args:
        self_attention: looks at the positions of x.
        cross_attention: looks at an encoder's states; None in an encoder and in a language model.
        feed_forward: changes each position by itself.
        residual: makes the connection around each of them.
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
        """The encoder's states as this block's cross-attention sees them."""
        assert self.cross_attention is not None
        return self.cross_attention.keys_values(encoded_BSD)

    def forward(
        self,
        x_BTD: Tensor,
        allowed: Tensor | None,
        past: KeyValue | Branch | None = None,
        source: KeyValue | Shared | None = None,
        source_allowed: Tensor | None = None,
        real_BT: Tensor | None = None,
    ) -> tuple[Tensor, KeyValue | Branch]:
        """x after the block (B, T, D), and the keys and values of every position seen so far.

        Args:
            allowed: who of the T queries may see whom of past and present, True = may.
            past: keys and values of the positions before x's first.
            source: `cross_keys_values` of the encoder's states, computed once a sentence.
            source_allowed: the real source positions, broadcastable to (B, H, T, S).
            real_BT: the real positions of x, for norms that look at others; None = all.
        """
        seen = past
        offset = past.length if past else 0

        def look_at_self(normed_BTD: Tensor) -> Tensor:
            nonlocal seen
            present = self.self_attention.keys_values(normed_BTD, offset)
            seen = past.append(present) if past else present
            looked: Tensor = self.self_attention(normed_BTD, seen, allowed, offset)
            return looked

        x_BTD = self.self_residual(x_BTD, look_at_self, real_BT)
        if self.cross_attention and self.cross_residual:
            attention = self.cross_attention
            x_BTD = self.cross_residual(x_BTD, lambda normed: attention(normed, source, source_allowed), real_BT)
        x_BTD = self.feed_forward_residual(x_BTD, self.feed_forward, real_BT)
        assert seen is not None
        return x_BTD, seen
