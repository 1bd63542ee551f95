"""One block of a Transformer: self-attention, cross-attention if it has an encoder to look at, feed-forward.

Shapes: B batch, T positions, S source positions, D model width.
"""

from torch import Tensor, nn

from transduce.attention import KeyValue, MultiHeadAttention
from transduce.layers.feedforward import FeedForward
from transduce.layers.residual import NormPlacement, Residual


class Block(nn.Module):
    """Attention and feed-forward, each inside a residual connection.

    Args:
        width: D.
        heads: attention heads, a divisor of D.
        feed_forward: hidden width of the feed-forward layer.
        dropout: rate on each sub-layer's output.
        inner_dropout: rate on attention weights and on the feed-forward's hidden layer.
        norm: layer norm before ("pre") or after ("post") each sub-layer.
        rotary: turn self-attention's queries and keys by their positions.
        cross: also attend to an encoder.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        feed_forward: int,
        dropout: float,
        inner_dropout: float,
        norm: NormPlacement,
        rotary: bool,
        cross: bool,
    ) -> None:
        super().__init__()
        self.self_attention = MultiHeadAttention(width, heads, inner_dropout, rotary)
        self.self_residual = Residual(width, dropout, norm)
        self.cross_attention = MultiHeadAttention(width, heads, inner_dropout) if cross else None
        self.cross_residual = Residual(width, dropout, norm) if cross else None
        self.feed_forward = FeedForward(width, feed_forward, inner_dropout)
        self.feed_forward_residual = Residual(width, dropout, norm)

    def cross_keys_values(self, encoded_BSD: Tensor) -> KeyValue:
        """The encoder's states as this block's cross-attention sees them."""
        assert self.cross_attention is not None
        return self.cross_attention.keys_values(encoded_BSD)

    def forward(
        self,
        x_BTD: Tensor,
        allowed: Tensor | None,
        past: KeyValue | None = None,
        source: KeyValue | None = None,
        source_allowed: Tensor | None = None,
    ) -> tuple[Tensor, KeyValue]:
        """x after the block (B, T, D), and the keys and values of every position seen so far.

        Args:
            allowed: who of the T queries may see whom of past and present, True = may.
            past: keys and values of the positions before x's first.
            source: `cross_keys_values` of the encoder's states, computed once a sentence.
            source_allowed: the real source positions, broadcastable to (B, H, T, S).
        """
        seen = past
        offset = past.length if past else 0

        def look_at_self(normed_BTD: Tensor) -> Tensor:
            nonlocal seen
            present = self.self_attention.keys_values(normed_BTD, offset)
            seen = past.append(present) if past else present
            looked: Tensor = self.self_attention(normed_BTD, seen, allowed, offset)
            return looked

        x_BTD = self.self_residual(x_BTD, look_at_self)
        if self.cross_attention and self.cross_residual:
            attention = self.cross_attention
            x_BTD = self.cross_residual(x_BTD, lambda normed: attention(normed, source, source_allowed))
        x_BTD = self.feed_forward_residual(x_BTD, self.feed_forward)
        assert seen is not None
        return x_BTD, seen
