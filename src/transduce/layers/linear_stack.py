"""A stack of blocks with linear attention: an encoder, or a decoder whose state does not grow.

Source: Katharopoulos et al. 2020, sections 3.2 to 3.4.

Shapes: B batch, T positions, S source positions, D model width.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from transduce.attention.capture import Side
from transduce.attention.dropout import Dropout
from transduce.attention.linear import LinearAttention, Summary
from transduce.attention.positions import added_positions
from transduce.core.config import Config
from transduce.layers.feedforward import FeedForward
from transduce.layers.recomputation import Recomputable, recomputable
from transduce.layers.residual import NormPlacement, Residual


class LinearStackConfig(Config):
    """Sizes and kinds of layers that encoder and decoder share."""

    d_model: int = Field(default=256, ge=2)
    """Width of the model."""
    heads: int = Field(default=4, ge=1)
    """Number of attention heads; must divide d_model."""
    feed_forward: int = Field(default=1024, ge=1)
    """Hidden width of the feed-forward layer."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout rate on embeddings and on the output of each sub-layer."""
    inner_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate inside the feed-forward layer. Linear attention has no weights to drop."""
    norm: NormPlacement = "pre"
    """Layer norm before each sub-layer (pre) or after its residual connection (post)."""
    positions: Literal["none", "sinusoidal", "learned"] = "sinusoidal"
    """Positions that are added to the embeddings."""
    max_length: int = Field(default=1024, ge=1)
    """Maximum length of a sequence with learned positions."""

    @model_validator(mode="after")
    def _widths_divide(self) -> Self:
        if self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, not {self.d_model}")
        return self


class LinearState(NamedTuple):
    """The state of a causal stack, whose size does not depend on the number of positions.

    length: (B,) int64, the number of positions so far, the same in each row.
    blocks: each block's summary of them.
    """

    length: Tensor
    blocks: tuple[Summary, ...]


class LinearBlock(Recomputable):
    """Self-attention, cross-attention if there is a source, feed-forward, each inside a residual connection.

    Args:
        config: sizes.
        cross: also attend to a source.
        side: the side of the model that the attention modules declare; see `transduce.attention.capture`.
    """

    def __init__(self, config: LinearStackConfig, cross: bool, side: Side) -> None:
        super().__init__()
        width, heads = config.d_model, config.heads
        self.self_attention = LinearAttention(width, heads, "self", side)
        self.self_residual = Residual(width, config.dropout, config.norm)
        self.cross_attention = LinearAttention(width, heads, "cross", side) if cross else None
        self.cross_residual = Residual(width, config.dropout, config.norm) if cross else None
        self.feed_forward = FeedForward(width, config.feed_forward, config.inner_dropout)
        self.feed_forward_residual = Residual(width, config.dropout, config.norm)

    @recomputable
    def forward(self, x_BTD: Tensor, real_BT: Tensor) -> Tensor:
        """The output (B, T, D), where each position attends to every real one."""

        def look_around(normed_BTD: Tensor) -> Tensor:
            return self.self_attention(normed_BTD, self.self_attention.summarise(normed_BTD, real_BT))

        x_BTD = self.self_residual(x_BTD, look_around)
        return self.feed_forward_residual(x_BTD, self.feed_forward)

    @recomputable
    def extend(self, x_BTD: Tensor, past: Summary | None, source: Summary | None) -> tuple[Tensor, Summary]:
        """The output (B, T, D) of positions that attend to `past` and to all up to themselves, and the new summary.

        Args:
            x_BTD: the input.
            past: the summary of the earlier positions; None = there are none.
            source: the result of `cross_attention.summarise`; None without a source.
        """
        now = past

        def look_back(normed_BTD: Tensor) -> Tensor:
            nonlocal now
            looked_BTD, now = self.self_attention.extend(normed_BTD, past)
            return looked_BTD

        x_BTD = self.self_residual(x_BTD, look_back)
        if self.cross_attention and self.cross_residual:
            attention = self.cross_attention
            x_BTD = self.cross_residual(x_BTD, lambda normed: attention(normed, source))
        assert now is not None
        return self.feed_forward_residual(x_BTD, self.feed_forward), now


class LinearStack(nn.Module):
    """A stack of equal blocks, with positions before the first and a norm after the last.

    Args:
        config: sizes.
        layers: number of blocks.
        cross: whether the blocks also attend to a source.
        side: as in `LinearBlock`.
    """

    def __init__(self, config: LinearStackConfig, layers: int, cross: bool = False, side: Side = "other") -> None:
        super().__init__()
        self.positions = added_positions(config.positions, config.d_model, config.max_length)
        self.dropout = Dropout(config.dropout)
        blocks = [LinearBlock(config, cross, side) for _ in range(layers)]
        self.blocks: Iterable[LinearBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()

    def forward(self, embedded_BTD: Tensor, real_BT: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D), where each position attends to every real one."""
        x_BTD = self.dropout(self.positions(embedded_BTD))
        for block in self.blocks:
            x_BTD = block(x_BTD, real_BT)
        return self.norm(x_BTD)

    def extend(
        self, embedded_BTD: Tensor, past: LinearState | None, sources: tuple[Summary, ...] | None = None
    ) -> tuple[Tensor, LinearState]:
        """The outputs (B, T, D) of T positions that follow those in `past`, and the state after them.

        Each position attends to all positions up to itself.

        Args:
            embedded_BTD: the embeddings of the new positions.
            past: the state before them; None = there are no earlier positions.
            sources: the result of `summarise` for the encoder's states.
        """
        rows, count = embedded_BTD.shape[:2]
        length_B = past.length if past else torch.zeros(rows, dtype=torch.int64, device=embedded_BTD.device)
        x_BTD = self.dropout(self.positions(embedded_BTD, int(length_B[0])))
        after = []
        for layer, block in enumerate(self.blocks):
            before, source = past.blocks[layer] if past else None, sources[layer] if sources else None
            x_BTD, summary = block.extend(x_BTD, before, source)
            after.append(summary)
        return self.norm(x_BTD), LinearState(length_B + count, tuple(after))

    def summarise(self, encoded_BSD: Tensor, real_BS: Tensor) -> tuple[Summary, ...]:
        """The summary of the encoder's states for each block's cross-attention."""
        attentions = [block.cross_attention for block in self.blocks]
        return tuple(each.summarise(encoded_BSD, real_BS) for each in attentions if each)

    def empty(self, rows: int) -> LinearState:
        """The state before the first position."""
        blocks = tuple(block.self_attention.empty(rows) for block in self.blocks)
        return LinearState(torch.zeros(rows, dtype=torch.int64, device=blocks[0].mass.device), blocks)
