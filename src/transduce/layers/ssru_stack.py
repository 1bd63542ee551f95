"""A stack of decoder blocks with a recurrent unit (SSRU) instead of self-attention.

Source: Kim et al. 2019, section 3.1.

The simpler simple recurrent unit (SSRU), a fast replacement for a decoder's self-attention.

    f_t = sigma(W_f x_t + b_f)
    c_t = f_t * c_{t-1} + (1 - f_t) * W x_t
    o_t = ReLU(c_t)

(Kim et al. 2019, "From research to production and back: ludicrously fast neural machine translation", section 3.1: the
simple recurrent unit of Lei et al. 2017 without its reset gate, and with ReLU for tanh.) A step costs two D x D
products at any position. Self-attention costs four, and also reads all earlier positions.

Shapes: B batch, T positions, S source positions, D model width.
"""

from collections.abc import Callable, Iterable
from functools import partial

import torch
from torch import Tensor, nn

from transduce.attention import KeyValue, MultiHeadAttention
from transduce.attention.dropout import Dropout
from transduce.attention.interventions import active_interventions
from transduce.attention.positions import tensor2tensor_at
from transduce.attention.shared_kv_cache import EncoderCache
from transduce.kernels.matmul import Linear
from transduce.layers.embedding import begin_with_zeros
from transduce.layers.feedforward import FeedForward
from transduce.layers.norms import NoNorm, make_norm
from transduce.layers.recomputation import Recomputable, recomputable
from transduce.layers.residual import Residual
from transduce.layers.stack import (
    FusedStack,
    Sources,
    StackConfig,
    attention_of,
    feed_forward_of,
    repeated,
    residual_of,
    shared_sources,
)


class Ssru(nn.Module):
    """One layer of SSRU (Kim et al. 2019, section 3.1).

    Args:
        width: D.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.forget = Linear(width, width)
        self.value = Linear(width, width, bias=False)
        for product in (self.forget, self.value):
            nn.init.xavier_uniform_(product.weight)
        nn.init.zeros_(self.forget.bias)

    def empty(self, rows: int) -> Tensor:
        """The cell (B, D) before the first position: 0."""
        return self.value.weight.new_zeros(rows, len(self.value.weight))

    def forward(self, x_BTD: Tensor, past_BD: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The outputs (B, T, D) of T positions after the cell `past_BD`, and the cell (B, D) after the last.

        Under autocast, products use its dtype and the cell uses that of the weights.
        """
        forget_BTD = self.forget(x_BTD).to(self.forget.weight.dtype).sigmoid()
        new_BTD = (1 - forget_BTD) * self.value(x_BTD)
        cell_BD = self.empty(len(x_BTD)) if past_BD is None else past_BD
        cells = []
        for forget_BD, new_BD in zip(forget_BTD.unbind(1), new_BTD.unbind(1), strict=True):
            cell_BD = torch.addcmul(new_BD, forget_BD, cell_BD)
            cells.append(cell_BD)
        return torch.stack(cells, 1).relu(), cell_BD


# (B, D) of each block; and where the stack depends on positions, (B, 1): how many came before.
Cells = tuple[Tensor, ...]


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
        source: KeyValue | EncoderCache,
        source_allowed: Tensor | None,
        real_BT: Tensor | None,
        offset: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """The output (B, T, D), and the unit's cell (B, D) after the last position.

        Args:
            x_BTD: the input.
            past_BD: the cell before x; None = x starts the sequence.
            source, source_allowed, real_BT: see `transduce.layers.block.Block`.
            offset: the position of the first query, for a cross-attention that counts them.
        """
        cell_BD = past_BD

        def go_over(normed_BTD: Tensor) -> Tensor:
            nonlocal cell_BD
            gone_BTD, cell_BD = self.unit(normed_BTD, past_BD)
            return gone_BTD

        def look(normed_BTD: Tensor) -> Tensor:
            return self.cross_attention(normed_BTD, source, source_allowed, offset)

        x_BTD = self.unit_residual(x_BTD, go_over, real_BT)
        x_BTD = self.cross_residual(x_BTD, look, real_BT)
        assert cell_BD is not None
        return self.feed_forward_residual(x_BTD, self.feed_forward, real_BT), cell_BD


class SsruStack(nn.Module):
    """A decoder: a stack of equal blocks, with a norm after the last.

    positions, embedding_norm: None; `transduce.layers.stack.Stack` has such parts.

    Args:
        config: sizes and parts.
        layers: number of blocks.
        zero_start: whether it reads zeros instead of the first embedding.
        first_position: of the `tensor2tensor` positions that are added to embeddings; None = none are added.
    """

    positions: None = None
    embedding_norm: None = None

    def __init__(
        self, config: StackConfig, layers: int, zero_start: bool = False, first_position: int | None = None
    ) -> None:
        super().__init__()
        self.fused: FusedStack | None = None  # `transduce.fused.pack` attaches one
        self.zero_start, self.first_position = zero_start, first_position
        self.dropout = Dropout(config.dropout)
        blocks = [_block(config) for _ in range(config.distinct(layers))]
        self.blocks: Iterable[SsruBlock] = nn.ModuleList(repeated(blocks, layers))  # type: ignore[assignment]
        make = partial(make_norm, config.norm_kind, config.d_model, only_multiplied=True, epsilon=config.norm_epsilon)
        self.norm = make() if config.norm == "pre" else NoNorm()

    @property
    def counts(self) -> bool:
        """Whether the state holds how many positions came before."""
        return self.zero_start or self.first_position is not None or self._looks_by_place

    @property
    def _looks_by_place(self) -> bool:
        """Whether what a query looks at may depend on its place: by the normalizer, or by what is changed."""
        by_normalizer = any(block.cross_attention.weigh.reads_position for block in self.blocks)
        return by_normalizer or not active_interventions().is_empty

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
        before_B1 = past[-1] if past and self.counts else None
        x_BTD = self.dropout(self._placed(embedded_BTD, before_B1))
        offset = int(before_B1[0, 0]) if before_B1 is not None and self._looks_by_place else 0  # of all rows alike
        cells = []
        for layer, block in enumerate(self.blocks):
            before = past[layer] if past else None
            x_BTD, cell_BD = block(x_BTD, before, sources[layer], source_allowed, real_BT, offset)
            cells.append(cell_BD)
        if self.counts:
            cells.append((_zeros(embedded_BTD) if before_B1 is None else before_B1) + embedded_BTD.shape[1])
        return self.norm(x_BTD, real_BT), tuple(cells)

    def _placed(self, embedded_BTD: Tensor, before_B1: Tensor | None) -> Tensor:
        """Embeddings (B, T, D) with zeros for the first and with positions, if the stack has them."""
        before: Tensor | int = 0 if before_B1 is None else before_B1
        if self.zero_start:
            embedded_BTD = begin_with_zeros(embedded_BTD, before)
        if self.first_position is None:
            return embedded_BTD
        position = torch.arange(embedded_BTD.shape[1], device=embedded_BTD.device) + before + self.first_position
        return embedded_BTD + tensor2tensor_at(position, embedded_BTD.shape[2])

    def keys_values(self, encoded_BSD: Tensor) -> tuple[KeyValue, ...]:
        """Keys and values of each block's cross-attention, from the encoder's states."""
        return tuple(block.cross_attention.keys_values(encoded_BSD) for block in self.blocks)

    def shared(self, sources: tuple[KeyValue, ...], allowed_B11S: Tensor) -> tuple[EncoderCache, ...] | None:
        """`sources` in a form that hypotheses share, with the mask of real positions; None if an attention cannot."""
        return shared_sources([block.cross_attention for block in self.blocks], sources, allowed_B11S)

    def empty(self, rows: int) -> Cells:
        """The cells before the first position."""
        cells = [block.unit.empty(rows) for block in self.blocks]
        return (*cells, _zeros(cells[0])) if self.counts else tuple(cells)


def _zeros(like: Tensor) -> Tensor:
    """(B, 1) int64."""
    return like.new_zeros(like.shape[0], 1, dtype=torch.int64)


def _block(config: StackConfig) -> SsruBlock:
    return SsruBlock(
        Ssru(config.d_model),
        attention_of(config, "cross", "decoder"),
        feed_forward_of(config),
        residual_of(config),
    )
