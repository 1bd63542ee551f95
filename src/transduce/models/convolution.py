"""Convolutional sequence to sequence learning: gated convolutions, with attention in every decoder block.

Source: Gehring et al. 2017.

Shapes: B batch, S source positions, T target positions, D model width, V vocabulary.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, Self

import torch
from pydantic import AfterValidator, Field, model_validator
from torch import Tensor, nn

from transduce.attention import KeyValue, masks
from transduce.attention.cross_attention import CrossAttention
from transduce.attention.dropout import Dropout
from transduce.attention.positions import Learned, added_positions
from transduce.core.config import Config
from transduce.core.padded import Padded
from transduce.core.registry import check
from transduce.data.columns import Specs
from transduce.layers.convolution import (
    HALVED,
    BlockState,
    ConvolutionSource,
    DecoderBlock,
    EncoderBlock,
    NormedLinear,
    scale_gradient,
)
from transduce.layers.embedding import Embedding, Tied, make_embeddings
from transduce.layers.log_probabilities import log_probabilities
from transduce.layers.pointer import Copies, Pointer

EMBEDDED = 0.1  # standard deviation of the initial embeddings of words and positions (section 3.5)


class ConvolutionConfig(Config):
    """Sizes and attention. The defaults suit tens of thousands of sentence pairs."""

    kind: Literal["convolution"] = "convolution"
    d_model: int = Field(default=256, ge=2)
    """Width of the model."""
    encoder_layers: int = Field(default=4, ge=1)
    """Number of encoder layers."""
    decoder_layers: int = Field(default=4, ge=1)
    """Number of decoder layers."""
    kernel: int = Field(default=3, ge=1)
    """Width of a convolution in positions, including the position itself; odd."""
    score: Annotated[str, AfterValidator(lambda name: check("attention.scores", name))] = "dot"
    """Attention score: a name in transduce.attention.scores, or your own class as my_file:MyScore."""
    normalizer: Annotated[str, AfterValidator(lambda name: check("attention.normalizers", name))] = "softmax"
    """Normalizer, from scores to weights: a name in transduce.attention.normalizers, or your own class."""
    heads: int = Field(default=1, ge=1)
    """Number of attention heads of each decoder block; must divide d_model."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout rate on embeddings, on the input of each convolution and on the decoder's output."""
    positions: Literal["learned", "sinusoidal"] = "learned"
    """Positions that are added to the embeddings."""
    max_length: int = Field(default=1024, ge=1)
    """Maximum length of a sequence with learned positions."""
    tied: Tied = Field(default="all")
    """Which share a matrix. all: source, target and output, if the vocabulary is joint. output: target and output."""
    pointer: bool = False
    """Add a pointer, which can copy words from the source; needs a joint vocabulary."""

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, to see as far back as ahead, not {self.kernel}")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, not {self.d_model}")
        return self


class ConvolutionMemory(NamedTuple):
    """The source, as the decoder uses it: keys and values of each block, mask of real positions, sqrt(S), copies."""

    reads: tuple[KeyValue, ...]
    allowed: Tensor
    gain: Tensor
    copies: Copies | None


class ConvolutionState(NamedTuple):
    """The number of positions so far (B,), and the state of each decoder block."""

    position: Tensor
    blocks: tuple[BlockState, ...]


class Convolution(nn.Module):
    """Implements `Encodes`, `Predicts` and `Steps` (see `transduce.models.protocols`).

    Raises:
        InputError: `pointer` is set and each side has a vocabulary of its own.
    """

    Config = ConvolutionConfig

    def __init__(self, config: ConvolutionConfig, specs: Specs) -> None:
        super().__init__()
        width, rate = config.d_model, config.dropout
        embeddings = make_embeddings(specs, width, config.tied, _embedding)
        self.target_embedding, self.source_embedding, self.output = embeddings
        self.source_positions, self.target_positions = _positions(config), _positions(config)
        self.dropout = Dropout(rate)
        reading = [EncoderBlock(width, config.kernel, rate) for _ in range(config.encoder_layers)]
        writing = [DecoderBlock(width, config.kernel, rate, _reader(config)) for _ in range(config.decoder_layers)]
        self.encoder: Sequence[EncoderBlock] = nn.ModuleList(reading)  # type: ignore[assignment]
        self.encoded = NormedLinear(width, width)
        self.decoder: Sequence[DecoderBlock] = nn.ModuleList(writing)  # type: ignore[assignment]
        self.decoded = NormedLinear(width, width)
        self.pointer = Pointer(width, width, specs) if config.pointer else None

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V) for the token after each target position (teacher forcing)."""
        assert source is not None
        memory, state = self.start(source, len(target.values))
        return self._extend(target.values, memory, state)[0]

    def encode(self, source: Padded) -> Padded:
        """Source ids (B, S) -> states z (B, S, D), the keys of the decoder's attention."""
        return Padded(self._encode(source)[0], source.lengths)

    def start(self, source: Padded | None, rows: int) -> tuple[ConvolutionMemory, ConvolutionState]:
        """The keys and values of each decoder block, and windows of zeros."""
        assert source is not None
        blocks = tuple(block.empty(rows) for block in self.decoder)
        return self._remember(source), ConvolutionState(torch.zeros_like(source.lengths), blocks)

    def step(
        self, token_B: Tensor, memory: ConvolutionMemory, state: ConvolutionState
    ) -> tuple[Tensor, ConvolutionState]:
        """Log-probabilities (B, V) in fp32 of the token after `token_B`, and the new state."""
        _, log_probabilities_BV, state = self.step_hidden(token_B, memory, state)
        return log_probabilities_BV, state

    def step_hidden(
        self, token_B: Tensor, memory: ConvolutionMemory, state: ConvolutionState
    ) -> tuple[Tensor, Tensor, ConvolutionState]:
        """See `transduce.models.protocols.StepsWithHidden`."""
        hidden_B1D, state = self._hidden(token_B[:, None], memory, state)
        return hidden_B1D[:, -1], log_probabilities(self._logits(hidden_B1D, memory)[:, -1]), state

    def _encode(self, source: Padded) -> tuple[Tensor, Tensor]:
        """The states z, and the values (z + e) / sqrt(2), both (B, S, D)."""
        embedded_BSD = self.dropout(self.source_positions(self.source_embedding(source.values)))
        real_BS1 = source.mask()[..., None]
        x_BSD = embedded_BSD
        for block in self.encoder:
            x_BSD = block(x_BSD, real_BS1)
        # Each decoder block returns two gradients, through keys and through values (section 3.4).
        states_BSD = scale_gradient(self.encoded(x_BSD), 1 / (2 * len(self.decoder)))
        return states_BSD, (states_BSD + embedded_BSD) * HALVED

    def _remember(self, source: Padded) -> ConvolutionMemory:
        states_BSD, values_BSD = self._encode(source)
        real_BS = source.mask()
        reads = tuple(block.reader.remember(states_BSD, values_BSD) for block in self.decoder)
        copies = self.pointer.remember(source.values, states_BSD, real_BS) if self.pointer else None
        return ConvolutionMemory(reads, masks.padding(real_BS), source.lengths[:, None, None] ** 0.5, copies)

    def _extend(
        self, token_BT: Tensor, memory: ConvolutionMemory, past: ConvolutionState
    ) -> tuple[Tensor, ConvolutionState]:
        """Logits (B, T, V) after each of T tokens that follow those in `past`, and the new state."""
        hidden_BTD, state = self._hidden(token_BT, memory, past)
        return self._logits(hidden_BTD, memory), state

    def _hidden(
        self, token_BT: Tensor, memory: ConvolutionMemory, past: ConvolutionState
    ) -> tuple[Tensor, ConvolutionState]:
        """The vectors (B, T, D) that predict the tokens after these, and the new state."""
        count, offset = token_BT.shape[1], int(past.position[0])  # rows go in step
        position_BT = past.position[:, None] + torch.arange(count, device=token_BT.device)
        embedded_BTD = self.dropout(self.target_positions(self.target_embedding(token_BT), offset))
        x_BTD, blocks = embedded_BTD, []
        for block, read, before in zip(self.decoder, memory.reads, past.blocks, strict=True):
            source = ConvolutionSource(read, memory.allowed, memory.gain)
            x_BTD, after = block(x_BTD, embedded_BTD, source, before, position_BT)
            blocks.append(after)
        hidden_BTD: Tensor = self.dropout(self.decoded(x_BTD))
        return hidden_BTD, ConvolutionState(past.position + count, tuple(blocks))

    def _logits(self, hidden_BTD: Tensor, memory: ConvolutionMemory) -> Tensor:
        logits_BTV = self.output.logits(hidden_BTD)
        return self.pointer(logits_BTV, hidden_BTD, memory.copies) if self.pointer else logits_BTV


def _embedding(vocabulary: int, width: int) -> Embedding:
    embedding = Embedding(vocabulary, width)
    nn.init.normal_(embedding.weight, std=EMBEDDED * width**-0.5)  # it multiplies by sqrt(D) on the way in
    return embedding


def _reader(config: ConvolutionConfig) -> CrossAttention:
    return CrossAttention(config.score, config.normalizer, config.d_model, config.d_model, config.heads)


def _positions(config: ConvolutionConfig) -> nn.Module:
    positions = added_positions(config.positions, config.d_model, config.max_length)
    if isinstance(positions, Learned):
        nn.init.normal_(positions.weight_TD, std=EMBEDDED)
    return positions
