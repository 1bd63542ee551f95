"""The recurrent encoder-decoder, with or without attention.

Without attention it follows Cho et al. 2014 or Sutskever et al. 2014. With attention it follows Bahdanau et al. 2015 or
Luong et al. 2015, with any score and normalizer. The decoders are in `transduce.layers.recurrent_decoder`.

Shapes: B batch, S source positions, T target positions, D width of embeddings, H width of states, V vocabulary.
"""

from typing import Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.ctc import JointCtcConfig, make_ctc_output
from transduce.layers.embedding import Tied
from transduce.layers.log_probabilities import log_probabilities
from transduce.layers.pointer import Copies, Pointer
from transduce.layers.recurrent_decoder import (
    Bahdanau,
    DecoderConfig,
    Luong,
    NoAttention,
    RecurrentMemory,
    RecurrentState,
)
from transduce.layers.recurrent_stack import Direction, RecurrentEncoder, StackParts
from transduce.layers.subsampling import embedded, make_front_ends, refuse_pointer

MONOTONIC_COPY = {"normalizer": "monotonic", "pointer": True}  # what `monotonic_copy` stands for


class RnnConfig(DecoderConfig, JointCtcConfig):
    """The settings of the decoder, which the encoder shares, and those of the encoder only."""

    kind: Literal["rnn"] = "rnn"
    encoder_layers: int = Field(default=1, ge=1)
    """Number of encoder layers."""
    direction: Direction = "both"
    """Direction of the encoder: forward, backward, or both, with half the width for each."""
    tied: Tied = Field(default="all")
    """Which share a matrix. all: source, target and output, if the vocabulary is joint. output: target and output."""
    pointer: bool = False
    """Add a pointer, which can copy words from the source; needs a joint vocabulary."""
    monotonic_copy: bool = False
    """For pairs of characters, as in inflection and pronunciation: attention that only moves forward, and a pointer. It
    stands for normalizer = "monotonic" and pointer = true, unless these keys say otherwise."""

    @model_validator(mode="before")
    @classmethod
    def _stands_for(cls, keys: Any) -> Any:
        return {**MONOTONIC_COPY, **keys} if isinstance(keys, dict) and keys.get("monotonic_copy") is True else keys

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


class RnnMemory(NamedTuple):
    """The source, as the decoder uses it, and what it may copy from it."""

    memory: RecurrentMemory
    copies: Copies | None


class Rnn(nn.Module):
    """Implements `Encodes`, `Predicts`, `PredictsJointly` and `Steps` (see `transduce.models.protocols`)."""

    Config = RnnConfig

    def __init__(self, config: RnnConfig, specs: Specs) -> None:
        super().__init__()
        refuse_pointer(specs, config.pointer)
        embeddings = make_front_ends(specs, config.d_model, config.tied, config)
        self.target_embedding, self.source_embedding, self.output = embeddings
        self.dropout = Dropout(config.dropout)
        layers = (config.encoder_layers, config.residual, config.dropout, config.direction)
        self.encoder = RecurrentEncoder(config.cell, config.d_model, config.hidden, *layers)
        self.decoder = {"none": NoAttention, "bahdanau": Bahdanau, "luong": Luong}[config.attention](config)
        self.pointer = Pointer(config.d_model, config.hidden, specs) if config.pointer else None
        self.ctc_weight = config.ctc_weight
        self.ctc_output = make_ctc_output(config, specs, config.hidden)

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V) for the token after each target position (teacher forcing)."""
        assert source is not None
        return self._decode(target.values, *self.start(source, len(target.values)))[0]

    def joint_logits(self, source: Padded, target: Padded) -> tuple[Tensor, Padded]:
        encoded, last = self._read(source)
        return self._decode(target.values, *self._begin(source, encoded, last))[0], self._aligned(encoded)

    def align_encoder(self, source: Padded) -> Padded:
        return self._aligned(self.encode(source))

    def encode(self, source: Padded) -> Padded:
        """Source ids (B, S), or frames (B, S, F), -> states (B, S', H)."""
        return self._read(source)[0]

    def start(self, source: Padded | None, rows: int) -> tuple[RnnMemory, RecurrentState]:
        """The source as the decoder uses it, and the initial state."""
        assert source is not None
        return self._begin(source, *self._read(source))

    def step(self, token_B: Tensor, memory: RnnMemory, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Log-probabilities (B, V) in fp32 of the token after `token_B`, and the new state."""
        _, log_probabilities_BV, state = self.step_hidden(token_B, memory, state)
        return log_probabilities_BV, state

    def step_hidden(
        self, token_B: Tensor, memory: RnnMemory, state: RecurrentState
    ) -> tuple[Tensor, Tensor, RecurrentState]:
        """See `transduce.models.protocols.StepsWithHidden`."""
        hidden_B1D, state = self._hidden(token_B[:, None], memory, state)
        return hidden_B1D[:, 0], log_probabilities(self._logits(hidden_B1D, memory)[:, 0]), state

    def _read(self, source: Padded) -> tuple[Padded, StackParts]:
        read = embedded(self.source_embedding, source)
        states_BSH, last = self.encoder(self.dropout(read.values), read.lengths)
        return Padded(states_BSH, read.lengths), last

    def _begin(self, source: Padded, encoded: Padded, last: StackParts) -> tuple[RnnMemory, RecurrentState]:
        copies = self.pointer.remember(source.values, encoded.values, encoded.mask()) if self.pointer else None
        memory, state = self.decoder.start(encoded.values, encoded.mask(), last)
        return RnnMemory(memory, copies), state

    def _aligned(self, encoded: Padded) -> Padded:
        assert self.ctc_output is not None
        return Padded(self.ctc_output(encoded.values), encoded.lengths)

    def _decode(self, target_BT: Tensor, source: RnnMemory, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Logits (B, T, V) after each of T more tokens, and the new state."""
        hidden_BTD, state = self._hidden(target_BT, source, state)
        return self._logits(hidden_BTD, source), state

    def _hidden(self, target_BT: Tensor, source: RnnMemory, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """The decoder's readouts (B, T, D), and the new state."""
        embedded_BTD: Tensor = self.dropout(self.target_embedding(target_BT))
        return self.decoder.extend(embedded_BTD, source.memory, state)

    def _logits(self, hidden_BTD: Tensor, source: RnnMemory) -> Tensor:
        logits_BTV = self.output.logits(hidden_BTD)
        return self.pointer(logits_BTV, hidden_BTD, source.copies) if self.pointer else logits_BTV
