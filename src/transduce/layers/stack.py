"""Blocks on top of each other, with positions below and the last norm above: an encoder or a decoder.

Shapes: B batch, T positions, S source positions, D model width, H heads, E = D / H.
"""

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from transduce.attention import KeyValue, masks
from transduce.attention.dropout import Dropout
from transduce.attention.positions import Learned, NoPositions, Sinusoidal
from transduce.config import Config
from transduce.layers.block import Block
from transduce.layers.residual import NormPlacement

State = tuple[KeyValue, ...]  # per block, keys and values (B, H, T, E) of the positions so far


class StackConfig(Config):
    """Sizes and places that encoders and decoders share. The defaults suit tens of thousands of sentence pairs."""

    d_model: int = Field(default=256, ge=2)
    """Width of every position's vector."""
    heads: int = Field(default=4, ge=1)
    """Attention heads; must divide d_model."""
    feed_forward: int = Field(default=1024, ge=1)
    """Hidden width of the feed-forward layer."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """On embeddings and on the output of each sub-layer."""
    inner_dropout: float = Field(default=0.0, ge=0, lt=1)
    """On attention weights and inside the feed-forward."""
    norm: NormPlacement = "pre"
    """Layer norm on the way into each sub-layer (pre) or after its residual (post)."""
    positions: Literal["none", "sinusoidal", "learned", "rotary"] = "sinusoidal"
    """How the model knows where a token stands."""
    max_length: int = Field(default=1024, ge=1)
    """How many positions learned positions reach."""

    @model_validator(mode="after")
    def _widths_divide(self) -> Self:
        if self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, not {self.d_model}")
        if self.positions == "rotary" and self.d_model // self.heads % 2:
            raise ValueError(f"rotary positions need an even width per head, not {self.d_model // self.heads}")
        return self


class Stack(nn.Module):
    """`layers` equal blocks.

    Args:
        config: sizes.
        layers: number of blocks.
        cross: the blocks also attend to an encoder.
    """

    def __init__(self, config: StackConfig, layers: int, cross: bool = False) -> None:
        super().__init__()
        self.positions = self._positions(config)
        self.dropout = Dropout(config.dropout)
        rotary = config.positions == "rotary"
        sizes = (config.d_model, config.heads, config.feed_forward, config.dropout, config.inner_dropout)
        blocks = [Block(*sizes, config.norm, rotary, cross) for _ in range(layers)]
        self.blocks: Iterable[Block] = nn.ModuleList(blocks)  # type: ignore[assignment]
        # Pre-norm leaves the residual stream unnormed at the top, so it gets one more norm there.
        self.norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()

    def forward(self, embedded_BTD: Tensor, allowed: Tensor | None) -> Tensor:
        """All positions at once, no cross-attention: (B, T, D) -> (B, T, D)."""
        return self.extend(embedded_BTD, None, None, None, allowed)[0]

    def extend(
        self,
        embedded_BTD: Tensor,
        past: State | None,
        sources: State | None = None,
        source_allowed: Tensor | None = None,
        allowed: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """T more positions after those in `past`: their outputs (B, T, D), and the state after them.

        Args:
            past: None = these are the first.
            sources: what `keys_values` made of the encoder's states.
            source_allowed: which source positions are real, (B, 1, 1, S).
            allowed: who of the T may see whom, True = may; None = all see all.
        """
        x_BTD = self.dropout(self.positions(embedded_BTD, past[0].length if past else 0))
        seen = []
        for layer, block in enumerate(self.blocks):
            before = past[layer] if past else None
            source = sources[layer] if sources else None
            x_BTD, keys_values = block(x_BTD, allowed, before, source, source_allowed)
            seen.append(keys_values)
        return self.norm(x_BTD), tuple(seen)

    def extend_causally(
        self,
        embedded_BTD: Tensor,
        past: State | None,
        sources: State | None = None,
        source_allowed: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """`extend` where each position sees itself and what came before it."""
        count, offset = embedded_BTD.shape[1], past[0].length if past else 0
        allowed = masks.causal(count, offset, embedded_BTD.device) if count > 1 else None
        return self.extend(embedded_BTD, past, sources, source_allowed, allowed)

    def keys_values(self, encoded_BSD: Tensor) -> State:
        """The encoder's states as each block's cross-attention sees them."""
        return tuple(block.cross_keys_values(encoded_BSD) for block in self.blocks)

    def empty(self, rows: int) -> State:
        """The state before the first position."""
        return tuple(block.self_attention.empty(rows) for block in self.blocks)

    @staticmethod
    def _positions(config: StackConfig) -> nn.Module:
        if config.positions == "sinusoidal":
            return Sinusoidal(config.d_model)
        if config.positions == "learned":
            return Learned(config.d_model, config.max_length)
        return NoPositions()
