"""The recurrent encoder-decoder, without attention (Cho et al. 2014; Sutskever et al. 2014) and with it.

The attention is that of Bahdanau et al. 2015 or Luong et al. 2015, with any score and weighing; what a decoder does
with the source is in `transduce.layers.recurrent_decoder`.

Shapes: B batch, S source positions, T target positions, D width of embeddings, H width of states, V vocabulary.
"""

from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.layers.embedding import Embedding
from transduce.layers.recurrent_decoder import Bahdanau, DecoderConfig, Luong, Memory, NoAttention, State
from transduce.layers.recurrent_stack import Direction, RecurrentEncoder, StackState
from transduce.models.protocols import Padded, Sizes


class RnnConfig(DecoderConfig):
    """The decoder's settings, which the encoder shares, and the encoder's own."""

    kind: Literal["rnn"] = "rnn"
    encoder_layers: int = Field(default=1, ge=1)
    """Layers that read the source."""
    direction: Direction = "both"
    """In which order the encoder reads: forward, backward, or both, each in half the width."""
    tied: Literal["all", "output", "none"] = Field(default="all")
    """all: one matrix for source, target and output, if their vocabulary is joint."""

    @model_validator(mode="after")
    def _sides_fit(self) -> Self:
        if self.direction == "both" and self.hidden % 2:
            raise ValueError(f'direction = "both" halves hidden, which must be even, not {self.hidden}')
        if self.bridge == "copy" and self.encoder_layers != self.decoder_layers:
            raise ValueError(
                f'bridge = "copy" goes layer by layer: encoder_layers ({self.encoder_layers}) '
                f"and decoder_layers ({self.decoder_layers}) must be equal"
            )
        return self


class Rnn(nn.Module):
    """Encodes, predicts and steps (see `transduce.models.protocols`)."""

    Config = RnnConfig

    def __init__(self, config: RnnConfig, sizes: Sizes) -> None:
        super().__init__()
        assert sizes.source is not None
        share = config.tied == "all" and sizes.source == sizes.target
        self.target_embedding = Embedding(sizes.target, config.d_model)
        self.source_embedding = self.target_embedding if share else Embedding(sizes.source, config.d_model)
        self.output = Embedding(sizes.target, config.d_model) if config.tied == "none" else self.target_embedding
        self.dropout = Dropout(config.dropout)
        layers = (config.encoder_layers, config.residual, config.dropout, config.direction)
        self.encoder = RecurrentEncoder(config.cell, config.d_model, config.hidden, *layers)
        self.decoder = {"none": NoAttention, "bahdanau": Bahdanau, "luong": Luong}[config.attention](config)

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V) of the token after each target position (teacher forcing)."""
        assert source is not None
        read_BTD, _ = self.decoder.extend(self._embedded(target.values), *self._start(source))
        return self.output.logits(read_BTD)

    def encode(self, source: Padded) -> Padded:
        """Source ids (B, S) -> states (B, S, H)."""
        return Padded(self._read(source)[0], source.lengths)

    def start(self, source: Padded | None, rows: int) -> tuple[Memory, State]:
        """The source as the decoder sees it, and the state that it starts from."""
        assert source is not None
        return self._start(source)

    def step(self, token_B: Tensor, memory: Memory, state: State) -> tuple[Tensor, State]:
        """Log-probabilities (B, V) in fp32 of the token after `token_B`."""
        read_B1D, state = self.decoder.extend(self._embedded(token_B[:, None]), memory, state)
        return self.output.logits(read_B1D[:, 0]).log_softmax(-1, dtype=torch.float32), state

    def _read(self, source: Padded) -> tuple[Tensor, StackState]:
        embedded_BSD: Tensor = self.dropout(self.source_embedding(source.values))
        states_BSH, last = self.encoder(embedded_BSD, source.lengths)
        return states_BSH, last

    def _start(self, source: Padded) -> tuple[Memory, State]:
        states_BSH, last = self._read(source)
        return self.decoder.start(states_BSH, source.mask(), last)

    def _embedded(self, token_BT: Tensor) -> Tensor:
        embedded_BTD: Tensor = self.dropout(self.target_embedding(token_BT))
        return embedded_BTD
