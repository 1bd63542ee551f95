"""Reads a text: token embeddings under any encoder. Classifiers, taggers and their like derive from it.

    h_1 .. h_S = encoder(e(x_1) .. e(x_S))

Shapes: B batch, S positions, D width of the model, E width of embeddings, H width of states.
"""

from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.attention.positions import added_positions
from transduce.core.padded import Padded
from transduce.data.columns import ColumnSpec
from transduce.layers.convolution import ConvolutionEncoder
from transduce.layers.embedding import Embedding, hide_words
from transduce.layers.linear_stack import LinearStack, LinearStackConfig
from transduce.layers.norms import make_norm
from transduce.layers.recurrent_stack import Direction, RecurrentEncoder
from transduce.layers.stack import ADDED, NoncausalStackConfig, Stack, StackConfig

READ = {  # settings that each encoder reads
    "transformer": {*StackConfig.model_fields, "embedding_width"},
    "recurrent": {"d_model", "dropout", "cell", "hidden", "direction"},
    "convolution": {"d_model", "dropout", "kernel", "positions", "max_length"},
    "linear": set(LinearStackConfig.model_fields),
    "none": {"d_model", "dropout", "positions", "max_length"},
}


class TextEncoderConfig(NoncausalStackConfig):
    """What reads, and the sizes and parts of `StackConfig`, which are mostly a Transformer's."""

    encoder: Literal["transformer", "recurrent", "convolution", "linear", "none"] = "recurrent"
    """What reads the text. linear: a Transformer with linear attention. none: nothing; the embeddings themselves, with
    positions, are the states."""
    layers: int = Field(default=1, ge=1)
    """Of the encoder."""
    cell: str = "lstm"
    """Of a recurrent encoder: lstm, gru, tanh, lstmn, or your own as my_file:MyCell."""
    hidden: int = Field(default=256, ge=1)
    """Width of a recurrent encoder's states."""
    direction: Direction = "both"
    """In which order a recurrent encoder reads: forward, backward, or both, each in half the width."""
    kernel: int = Field(default=3, ge=1)
    """Width of a convolution in positions, including the position itself; odd."""
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Whole words that training hides."""
    scale_embeddings: bool = True
    """Multiply embeddings by the square root of their width, as the original Transformer does; BERT does not."""
    token_types: int = Field(default=0, ge=0, le=2)
    """How many token types (segments) have an embedding of their own: 2 tells the texts of a pair apart, 0 = none."""
    embedding_width: int | None = Field(default=None, ge=2)
    """Width of the embeddings of a Transformer where it differs from d_model; a linear map leads from one to the
    other."""

    @model_validator(mode="after")
    def _only_what_is_read(self) -> Self:
        """A setting of another encoder means nothing."""
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        if unread := sorted(name for name in self._unread() if getattr(self, name) != defaults[name]):
            raise ValueError(f"{', '.join(unread)}: not read with this {self._unread_with}. Leave it out")
        return self

    @property
    def _unread_with(self) -> str:
        return "encoder"

    def _unread(self) -> set[str]:
        """The keys that nothing reads beside the others."""
        others = set().union(*READ.values()) - READ[self.encoder]
        return others | ({"layers"} if self.encoder == "none" else set())

    @model_validator(mode="after")
    def _fits_the_encoder(self) -> Self:
        if self.encoder == "recurrent" and self.direction == "both" and self.hidden % 2:
            raise ValueError(f'direction = "both" halves hidden, which must be even, not {self.hidden}')
        if self.encoder == "convolution" and self.kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, to see as far back as ahead, not {self.kernel}")
        if self.encoder in ("convolution", "linear", "none") and self.positions not in ADDED:
            raise ValueError(f'encoder = "{self.encoder}" takes positions {", ".join(ADDED)}, not "{self.positions}"')
        if self.embedding_width is not None and self.positions not in ADDED:
            raise ValueError(f'embedding_width takes positions {", ".join(ADDED)}, not "{self.positions}"')
        return self

    def reads(self, key: str) -> bool:
        return key in READ[self.encoder]

    @property
    def most_positions(self) -> int | None:
        """How many positions of a text have a vector; None = any number."""
        return self.max_length if self.positions == "learned" and self.reads("positions") else None

    @property
    def width(self) -> int:
        """H."""
        return self.hidden if self.encoder == "recurrent" else self.d_model


class TextEncoder(nn.Module):
    """The states of a text. A base class and no part, so that the names of its weights are the same in every model.

    Args:
        config: what reads.
        source: the column of tokens that is read.
    """

    SHARED: ClassVar[frozenset[str]] = frozenset(TextEncoderConfig.model_fields)
    """The keys of [model] that models of every task have which start from one another."""

    def __init__(self, config: TextEncoderConfig, source: ColumnSpec) -> None:
        super().__init__()
        self.source_embedding = Embedding(
            source.size, config.embedding_width or config.d_model, config.scale_embeddings
        )
        self.word_dropout = config.word_dropout
        self.dropout = Dropout(config.dropout)
        self.positions = None
        self.encoder = _encoder(config)
        if config.encoder in ("convolution", "none"):
            self.positions = _positions(config, config.d_model)
        self.token_types = TokenTypes(config, source.separator) if config.token_types else None
        self.widen = Widen(config, config.embedding_width) if config.embedding_width else None

    def encode(self, source: Padded) -> Padded:
        """Ids (B, S) -> states (B, S, H)."""
        return Padded(self._encoded(source)[0], source.lengths)

    def _encoded(self, source: Padded) -> tuple[Tensor, Tensor | None]:
        """The states (B, S, H), and of a recurrent encoder those after the last word of each direction (B, H)."""
        return self._states(self._embedded(source), source)

    def _states(self, embedded_BSD: Tensor, source: Padded) -> tuple[Tensor, Tensor | None]:
        """The same of what the encoder reads (B, S, D) for these ids."""
        if isinstance(self.encoder, Stack):
            return self.encoder.encode(embedded_BSD, source.mask()), None
        if isinstance(self.encoder, LinearStack):
            return self.encoder(embedded_BSD, source.mask()), None
        if isinstance(self.encoder, RecurrentEncoder):
            states_BSH, last = self.encoder(self.dropout(embedded_BSD), source.lengths)
            return states_BSH, last[-1][0].to(states_BSH.dtype)
        assert self.positions is not None
        placed_BSD = self.dropout(self.positions(embedded_BSD))
        return (placed_BSD if self.encoder is None else self.encoder(placed_BSD, source.mask())), None

    def _embedded(self, source: Padded) -> Tensor:
        """What the encoder reads (B, S, D)."""
        embedded = hide_words(self.source_embedding(source.values), self.word_dropout if self.training else 0.0)
        embedded = embedded if self.token_types is None else embedded + self.token_types(source.values)
        return embedded if self.widen is None else self.widen(embedded)


class TokenTypes(nn.Module):
    """A vector for the tokens of a row's first text, up to its separator, and one for those behind it.

    As in BERT (Devlin et al. 2019, figure 2), which calls them segments.
    """

    def __init__(self, config: TextEncoderConfig, separator: int) -> None:
        super().__init__()
        self.separator = separator
        self.weight = nn.Parameter(torch.empty(config.token_types, config.embedding_width or config.d_model))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, ids_BS: Tensor) -> Tensor:
        """(B, S) ids -> (B, S, E)."""
        if len(self.weight) == 1:
            return self.weight[0].expand(*ids_BS.shape, -1)
        ends_BS = ids_BS == self.separator
        second_BS = ends_BS.cumsum(1) - ends_BS.long() > 0
        return torch.where(second_BS[..., None], self.weight[1], self.weight[0])


class Widen(nn.Module):
    """Embeddings of width E, with their positions and their norm, as wide as the model (Clark et al. 2020, ELECTRA)."""

    def __init__(self, config: TextEncoderConfig, width: int) -> None:
        super().__init__()
        self.positions = _positions(config, width)
        norm = make_norm(config.norm_kind, width, epsilon=config.norm_epsilon) if config.embedding_norm else None
        self.norm = norm or nn.Identity()
        self.output = nn.Linear(width, config.d_model)

    def forward(self, embedded_BSE: Tensor) -> Tensor:
        """(B, S, E) -> (B, S, D)."""
        widened: Tensor = self.output(self.norm(self.positions(embedded_BSE)))
        return widened


def pooled(states: Padded, how: str) -> Tensor:
    """(B, S, H) -> (B, H): the mean or the maximum of the states of each text, or its first one."""
    if how == "first":
        return states.values[:, 0]
    real_BS1 = states.mask()[..., None]
    if how == "mean":
        return (states.values * real_BS1).sum(1) / states.lengths[:, None]
    return states.values.masked_fill(~real_BS1, -float("inf")).amax(1)


def _positions(config: TextEncoderConfig, width: int) -> nn.Module:
    return added_positions(config.positions, width, config.max_length, config.first_position)


def _encoder(config: TextEncoderConfig) -> Stack | LinearStack | ConvolutionEncoder | RecurrentEncoder | None:
    if config.encoder == "none":
        return None
    if config.encoder == "transformer":
        return Stack(_after_widening(config), config.layers, side="encoder")
    if config.encoder == "linear":
        table = config.model_dump(include=READ["linear"])
        return LinearStack(LinearStackConfig.model_validate(table), config.layers, side="encoder")
    if config.encoder == "convolution":
        return ConvolutionEncoder(config.d_model, config.layers, config.kernel, config.dropout)
    sizes = config.d_model, config.hidden, config.layers
    return RecurrentEncoder(config.cell, *sizes, residual=False, dropout=config.dropout, direction=config.direction)


def _after_widening(config: TextEncoderConfig) -> TextEncoderConfig:
    """Of a Transformer whose embeddings are widened, which have positions and a norm already."""
    if config.embedding_width is None:
        return config
    return config.model_copy(update={"positions": "none", "embedding_norm": False})
