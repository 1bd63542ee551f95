"""Convolutional sequence to sequence: gated convolutions that attend in every decoder block (Gehring et al. 2017).

Shapes: B batch, S source positions, T target positions, D model width, V vocabulary.
"""

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple, Self

import torch
from pydantic import AfterValidator, Field, model_validator
from torch import Tensor, nn

from transduce.attention import KeyValue, masks
from transduce.attention.cross_attention import Reader
from transduce.attention.dropout import Dropout
from transduce.attention.positions import Learned, added_positions
from transduce.core.config import Config
from transduce.core.padded import Padded
from transduce.core.registry import check
from transduce.data.columns import Specs
from transduce.layers.convolution import (
    HALVED,
    BlockState,
    DecoderBlock,
    EncoderBlock,
    NormedLinear,
    Source,
    scale_gradient,
)
from transduce.layers.embedding import Embedding, Tied, make_embeddings
from transduce.layers.log_probabilities import log_probabilities
from transduce.layers.pointer import Copies, Pointer

EMBEDDED = 0.1  # standard deviation with which words and positions start (section 3.5)


class ConvolutionConfig(Config):
    """Sizes, and how the source is read. The defaults suit tens of thousands of sentence pairs."""

    kind: Literal["convolution"] = "convolution"
    d_model: int = Field(default=256, ge=2)
    """Width of every position's vector."""
    encoder_layers: int = Field(default=4, ge=1)
    """Blocks that read the source."""
    decoder_layers: int = Field(default=4, ge=1)
    """Blocks that write the target."""
    kernel: int = Field(default=3, ge=1)
    """Neighbouring positions that a convolution sees, itself included; odd."""
    score: Annotated[str, AfterValidator(lambda name: check("attention.scores", name))] = "dot"
    """How well a source position fits a query."""
    weighing: Annotated[str, AfterValidator(lambda name: check("attention.normalizers", name))] = "softmax"
    """From scores to weights."""
    heads: int = Field(default=1, ge=1)
    """Attention heads of each decoder block; must divide d_model."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """On embeddings, on what enters each convolution and on the decoder's output."""
    positions: Literal["learned", "sinusoidal"] = "learned"
    """How the model knows where a token stands."""
    max_length: int = Field(default=1024, ge=1)
    """How many positions learned positions reach."""
    tied: Tied = Field(default="all")
    """all: one matrix for source, target and output, if their vocabulary is joint."""
    pointer: bool = False
    """Output words may also be copied from the source; needs a joint vocabulary."""

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, to see as far back as ahead, not {self.kernel}")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, not {self.d_model}")
        return self


class Memory(NamedTuple):
    """A source as the decoder sees it: what each block reads, who is real, sqrt(S), and what to copy."""

    reads: tuple[KeyValue, ...]
    allowed: Tensor
    gain: Tensor
    copies: Copies | None


class State(NamedTuple):
    """How many positions each row has behind it (B,), and what each decoder block keeps of them."""

    position: Tensor
    blocks: tuple[BlockState, ...]


class Convolution(nn.Module):
    """Encodes, predicts and steps (see `transduce.models.protocols`).

    Raises:
        InputError: `pointer`, and the two vocabularies differ in size.
    """

    Config = ConvolutionConfig

    def __init__(self, config: ConvolutionConfig, specs: Specs) -> None:
        super().__init__()
        width, rate = config.d_model, config.dropout
        embeddings = make_embeddings(*specs.sizes, width, config.tied, _embedding)
        self.target_embedding, self.source_embedding, self.output = embeddings
        self.source_positions, self.target_positions = _positions(config), _positions(config)
        self.dropout = Dropout(rate)
        reading = [EncoderBlock(width, config.kernel, rate) for _ in range(config.encoder_layers)]
        writing = [DecoderBlock(width, config.kernel, rate, _reader(config)) for _ in range(config.decoder_layers)]
        self.encoder: Sequence[EncoderBlock] = nn.ModuleList(reading)  # type: ignore[assignment]
        self.encoded = NormedLinear(width, width)
        self.decoder: Sequence[DecoderBlock] = nn.ModuleList(writing)  # type: ignore[assignment]
        self.decoded = NormedLinear(width, width)
        self.pointer = Pointer(width, width, *specs.sizes) if config.pointer else None

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V) of the token after each target position (teacher forcing)."""
        assert source is not None
        memory, state = self.start(source, len(target.values))
        return self._extend(target.values, memory, state)[0]

    def encode(self, source: Padded) -> Padded:
        """Source ids (B, S) -> states z (B, S, D), which the decoder's queries are compared with."""
        return Padded(self._encode(source)[0], source.lengths)

    def start(self, source: Padded | None, rows: int) -> tuple[Memory, State]:
        """What each decoder block reads of the source, and windows of zeros."""
        assert source is not None
        blocks = tuple(block.empty(rows) for block in self.decoder)
        return self._remember(source), State(torch.zeros_like(source.lengths), blocks)

    def step(self, token_B: Tensor, memory: Memory, state: State) -> tuple[Tensor, State]:
        """Log-probabilities (B, V) in fp32 of the token after `token_B`."""
        logits_BTV, state = self._extend(token_B[:, None], memory, state)
        return log_probabilities(logits_BTV[:, -1]), state

    def _encode(self, source: Padded) -> tuple[Tensor, Tensor]:
        """The states z, and the values (z + e) / sqrt(2), both (B, S, D)."""
        embedded_BSD = self.dropout(self.source_positions(self.source_embedding(source.values)))
        real_BS1 = source.mask()[..., None]
        x_BSD = embedded_BSD
        for block in self.encoder:
            x_BSD = block(x_BSD, real_BS1)
        # Each decoder block sends back a gradient twice, through keys and values (section 3.4).
        states_BSD = scale_gradient(self.encoded(x_BSD), 1 / (2 * len(self.decoder)))
        return states_BSD, (states_BSD + embedded_BSD) * HALVED

    def _remember(self, source: Padded) -> Memory:
        states_BSD, values_BSD = self._encode(source)
        real_BS = source.mask()
        reads = tuple(block.reader.remember(states_BSD, values_BSD) for block in self.decoder)
        copies = self.pointer.remember(source.values, states_BSD, real_BS) if self.pointer else None
        return Memory(reads, masks.padding(real_BS), source.lengths[:, None, None] ** 0.5, copies)

    def _extend(self, token_BT: Tensor, memory: Memory, past: State) -> tuple[Tensor, State]:
        """T more tokens after those in `past`: logits (B, T, V), and the state after them."""
        count, offset = token_BT.shape[1], int(past.position[0])  # rows go in step
        position_BT = past.position[:, None] + torch.arange(count, device=token_BT.device)
        embedded_BTD = self.dropout(self.target_positions(self.target_embedding(token_BT), offset))
        x_BTD, blocks = embedded_BTD, []
        for block, read, before in zip(self.decoder, memory.reads, past.blocks, strict=True):
            source = Source(read, memory.allowed, memory.gain)
            x_BTD, after = block(x_BTD, embedded_BTD, source, before, position_BT)
            blocks.append(after)
        hidden_BTD = self.dropout(self.decoded(x_BTD))
        logits_BTV = self.output.logits(hidden_BTD)
        if self.pointer:
            assert memory.copies is not None
            logits_BTV = self.pointer(logits_BTV, hidden_BTD, memory.copies)
        return logits_BTV, State(past.position + count, tuple(blocks))


def _embedding(vocabulary: int, width: int) -> Embedding:
    embedding = Embedding(vocabulary, width)
    nn.init.normal_(embedding.weight, std=EMBEDDED * width**-0.5)  # it multiplies by sqrt(D) on the way in
    return embedding


def _reader(config: ConvolutionConfig) -> Reader:
    return Reader(config.score, config.weighing, config.d_model, config.d_model, config.heads)


def _positions(config: ConvolutionConfig) -> nn.Module:
    positions = added_positions(config.positions, config.d_model, config.max_length)
    if isinstance(positions, Learned):
        nn.init.normal_(positions.weight_TD, std=EMBEDDED)
    return positions
