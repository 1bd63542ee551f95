"""Reads the words of a text: a text encoder over pieces and characters, and one state a word.

    x_s = e(piece_s) + U max_j conv(characters of its word)_j        (Ma & Hovy 2016, section 2.1; here as a sum)
    h_1 .. h_S = encoder(x),   w_n = the state of word n

A word is read from its first piece, as in BERT (Devlin et al. 2019, section 5.3), or as the mean of its pieces.

Shapes: B batch, S positions of pieces, N words, D width of embeddings, H width of states, F filters.
"""

from typing import Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from transduce.core.padded import Padded
from transduce.data.columns import ColumnSpec
from transduce.data.columns.words import WordPieces
from transduce.layers.text_encoder import TextEncoder, TextEncoderConfig
from transduce.layers.word_embedding import CharacterConvolution

FILTERS = 64  # over the characters of a word, where nobody says how many


class WordEncoderConfig(TextEncoderConfig):
    """What reads, and the sizes and parts of `StackConfig`, which are mostly a Transformer's."""

    d_model: int = Field(default=128, ge=2)
    """Width of a piece's embedding, and of a Transformer."""
    dropout: float = Field(default=0.4, ge=0, lt=1)
    """Of embeddings and states."""
    word_dropout: float = Field(default=0.1, ge=0, lt=1)
    """Share of pieces that training hides; the characters of their words are still seen."""
    pieces: Literal["first", "mean"] = "first"
    """A word is read from its first piece, or as the mean of all."""
    character_width: int = Field(default=32, ge=1)
    """Width of a character's embedding."""
    character_filters: int | None = Field(default=None, ge=0)
    """Filters over the characters of a word; 0 = models see pieces alone. Unset: 64, but 0 with a Transformer, whose
    pieces are mostly pretrained."""
    character_kernel: int = Field(default=3, ge=1)
    """How many characters a filter sees; an odd number."""

    @property
    def filters(self) -> int:
        """Those over the characters of a word."""
        usual = 0 if self.encoder == "transformer" else FILTERS
        return usual if self.character_filters is None else self.character_filters

    @field_validator("character_kernel")
    @classmethod
    def _has_a_middle(cls, kernel: int) -> int:
        if kernel % 2 == 0:
            raise ValueError(f"expected an odd number, which has a middle; got {kernel}")
        return kernel


class WordEncoder(TextEncoder):
    """The states of a text's words. A base class, as `TextEncoder` is.

    Args:
        config: what reads.
        source: the column of words that is read.
    """

    def __init__(self, config: WordEncoderConfig, source: ColumnSpec) -> None:
        super().__init__(config, source)
        width = config.embedding_width or config.d_model
        self.reads_first = config.pieces == "first"
        self.spelled = Spelled(config, source.characters, width) if config.filters else None

    def encode(self, source: WordPieces) -> Padded:  # type: ignore[override]
        """The states (B, S, H) of the pieces."""
        pieces = source.pieces
        states_BSH, _ = self._states(self._embedded_words(source), pieces)
        return Padded(states_BSH, pieces.lengths)

    def _embedded_words(self, source: WordPieces) -> Tensor:
        """The embeddings of pieces, with what the characters of their words say."""
        embedded_BSD = self._embedded(source.pieces)
        if self.spelled is None:
            return embedded_BSD
        word_BND, place_BS = self.spelled(source.characters.values), source.words.values
        each_BSD = word_BND.gather(1, place_BS.clamp(min=0)[..., None].expand(-1, -1, word_BND.shape[2]))
        return embedded_BSD + each_BSD * (place_BS >= 0)[..., None]

    def words(self, inputs: WordPieces) -> Tensor:
        """(B, N, H): the state of each word."""
        states_BSH = self.encode(inputs).values
        return _firsts(states_BSH, inputs) if self.reads_first else _means(states_BSH, inputs)


class Spelled(nn.Module):
    """What the characters of a word say, as wide as an embedding."""

    def __init__(self, config: WordEncoderConfig, characters: int, width: int) -> None:
        super().__init__()
        filters = config.filters
        self.convolution = CharacterConvolution(characters, config.character_width, filters, config.character_kernel)
        self.output = nn.Linear(filters, width)

    def forward(self, characters_BNW: Tensor) -> Tensor:
        """(B, N, D)."""
        found_BND: Tensor = self.output(self.convolution(characters_BNW))
        return found_BND


def _firsts(states_BSH: Tensor, inputs: WordPieces) -> Tensor:
    """(B, N, H): the states of the words' first pieces."""
    place_BN1 = inputs.firsts.values[..., None]
    return states_BSH.gather(1, place_BN1.expand(-1, -1, states_BSH.shape[2]))


def _means(states_BSH: Tensor, inputs: WordPieces) -> Tensor:
    """(B, N, H): the means of the states of the words' pieces."""
    word_N1 = torch.arange(inputs.firsts.values.shape[1], device=states_BSH.device)[:, None]
    within_BNS = (inputs.words.values[:, None] == word_N1) & inputs.words.mask()[:, None]
    weight_BNS = within_BNS.to(states_BSH.dtype)
    return weight_BNS @ states_BSH / weight_BNS.sum(2, keepdim=True).clamp(min=1)
