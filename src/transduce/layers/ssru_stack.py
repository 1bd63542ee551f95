"""A stack of decoder blocks with a recurrent unit (SSRU) instead of self-attention.

Source: Kim et al. 2019, section 3.1.

Shapes: B batch, T positions, S source positions, D model width.
"""

from collections.abc import Callable, Iterable
from functools import partial

from torch import Tensor, nn

from transduce.attention import KeyValue, MultiHeadAttention
from transduce.attention.dropout import Dropout
from transduce.attention.shared_kv_cache import Shared
from transduce.layers.feedforward import FeedForward
from transduce.layers.norms import NoNorm, make_norm
from transduce.layers.recomputation import Recomputable, recomputable
from transduce.layers.residual import Residual
from transduce.layers.ssru import Ssru
from transduce.layers.stack import Sources, StackConfig, attention_of, feed_forward_of, residual_of, shared_sources

Cells = tuple[Tensor, ...]  # (B, D) of each block


class SsruBlock(Recomputable):
    """SSRU, cross-attention and feed-forward, each inside a residual connection.

    Args:
        unit: the recurrent unit over the positions of x.
        cross_attention: attends to an encoder's states.
        feed_forward: transforms each position separately.
        residual: makes a residual connection around each of them.
    """

    def __init__(
        self,
        unit: Ssru,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward,
        residual: Callable[[], Residual],
    ) -> None:
        super().__init__()
        self.unit, self.unit_residual = unit, residual()
        self.cross_attention, self.cross_residual = cross_attention, residual()
        self.feed_forward, self.feed_forward_residual = feed_forward, residual()

    @recomputable
    def forward(
        self,
        x_BTD: Tensor,
        past_BD: Tensor | None,
        source: KeyValue | Shared,
        source_allowed: Tensor | None,
        real_BT: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """The output (B, T, D), and the unit's cell (B, D) after the last position.

        Args:
            x_BTD: the input.
            past_BD: the cell before x; None = x starts the sequence.
            source, source_allowed, real_BT: see `transduce.layers.block.Block`.
        """
        cell_BD = past_BD

        def go_over(normed_BTD: Tensor) -> Tensor:
            nonlocal cell_BD
            gone_BTD, cell_BD = self.unit(normed_BTD, past_BD)
            return gone_BTD

        def look(normed_BTD: Tensor) -> Tensor:
            looked_BTD: Tensor = self.cross_attention(normed_BTD, source, source_allowed)
            return looked_BTD

        x_BTD = self.unit_residual(x_BTD, go_over, real_BT)
        x_BTD = self.cross_residual(x_BTD, look, real_BT)
        assert cell_BD is not None
        return self.feed_forward_residual(x_BTD, self.feed_forward, real_BT), cell_BD


class SsruStack(nn.Module):
    """A decoder: a stack of equal blocks, with a norm after the last."""

    def __init__(self, config: StackConfig, layers: int) -> None:
        super().__init__()
        self.dropout = Dropout(config.dropout)
        blocks = [_block(config) for _ in range(layers)]
        self.blocks: Iterable[SsruBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]
        make = partial(make_norm, config.norm_kind, config.d_model, only_multiplied=True, epsilon=config.norm_epsilon)
        self.norm = make() if config.norm == "pre" else NoNorm()

    def forward(
        self,
        embedded_BTD: Tensor,
        past: Cells | None,
        sources: Sources,
        source_allowed: Tensor | None,
        real_BT: Tensor | None = None,
    ) -> tuple[Tensor, Cells]:
        """The outputs (B, T, D) of T positions that follow those in `past`, and the cells after them.

        Args:
            past, sources, source_allowed, real_BT: see `transduce.layers.stack.Stack.extend`.
        """
        x_BTD = self.dropout(embedded_BTD)
        cells = []
        for layer, block in enumerate(self.blocks):
            x_BTD, cell_BD = block(x_BTD, past[layer] if past else None, sources[layer], source_allowed, real_BT)
            cells.append(cell_BD)
        return self.norm(x_BTD, real_BT), tuple(cells)

    def keys_values(self, encoded_BSD: Tensor) -> tuple[KeyValue, ...]:
        """Keys and values of each block's cross-attention, from the encoder's states."""
        return tuple(block.cross_attention.keys_values(encoded_BSD) for block in self.blocks)

    def shared(self, sources: tuple[KeyValue, ...], allowed_B11S: Tensor) -> tuple[Shared, ...] | None:
        """`sources` in a form that hypotheses share, with the mask of real positions; None if an attention cannot."""
        return shared_sources([block.cross_attention for block in self.blocks], sources, allowed_B11S)

    def empty(self, rows: int) -> Cells:
        """The cells before the first position."""
        return tuple(block.unit.empty(rows) for block in self.blocks)


def _block(config: StackConfig) -> SsruBlock:
    return SsruBlock(
        Ssru(config.d_model),
        attention_of(config, "cross", "decoder"),
        feed_forward_of(config),
        residual_of(config),
    )
