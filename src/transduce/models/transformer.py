"""The Transformer with encoder and decoder (Vaswani et al. 2017).

Shapes: B batch, S source positions, T target positions, D model width, V vocabulary.
"""

from functools import partial
from typing import Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from transduce.attention import KeyValue, masks
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.ctc import JointCtcConfig, make_ctc_output
from transduce.layers.embedding import Embedding, Tied, begin_with_zeros
from transduce.layers.fused_search import FusedSearch
from transduce.layers.log_probabilities import log_probabilities
from transduce.layers.pointer import Copies, Copying, Pointer
from transduce.layers.stack import Sources, Stack, StackConfig, State, positions_there_are
from transduce.layers.subsampling import embedded, make_front_ends, refuse_pointer

PLAIN = {"target_embedding", "source_embedding", "output", "encoder", "decoder"}  # the parts that fused search supports
OPTIONAL = {"pointer", "ctc_output"}  # that it supports, too; of CTC decoding uses nothing


class TransformerConfig(StackConfig, JointCtcConfig):
    """The settings of `StackConfig`, the numbers of layers, and how frames are read."""

    kind: Literal["transformer"] = "transformer"
    encoder_layers: int = Field(default=3, ge=1)
    """Number of encoder layers."""
    decoder_layers: int = Field(default=3, ge=1)
    """Number of decoder layers."""
    tied: Tied = Field(default="all")
    """Which share a matrix. all: source, target and output, if the vocabulary is joint. output: target and output.
    input: source and target."""
    encoder_positions: str | None = None
    """The encoder's positions, where they are others than the decoder's: any of `positions` but none. Default:
    `positions`."""
    encoder_max_length: int | None = Field(default=None, ge=1)
    """Maximum length of a source with learned positions. Default: `max_length`."""
    scale_embeddings: bool = True
    """Multiply embeddings by the square root of d_model."""
    output_bias: bool = False
    """A bias for the logit of each target token."""
    zero_start: bool = False
    """Begin outputs with a vector of zeros, not with the embedding of the start token, as Marian does."""
    pointer: bool = False
    """Add a pointer, which can copy words from the source; needs a joint vocabulary."""

    @field_validator("encoder_positions")
    @classmethod
    def _encoder_positions_there_are(cls, name: str | None) -> str | None:
        return None if name is None else positions_there_are(name)

    @model_validator(mode="after")
    def _encoder_positions_fit(self) -> Self:
        self.of_encoder._heads_divide()  # type: ignore[operator]
        self.of_encoder._positions_fit()  # type: ignore[operator]
        return self

    @property
    def of_encoder(self) -> Self:
        """The settings of the encoder's stack."""
        own = {"positions": self.encoder_positions, "max_length": self.encoder_max_length}
        return self.model_copy(update={key: value for key, value in own.items() if value is not None})


class TransformerMemory(NamedTuple):
    """The source, as the decoder uses it.

    sources: each block's keys and values.
    allowed: mask of real positions; None if hypotheses share `sources`, which then contain the mask.
    copies: what the pointer can copy; None without a pointer.
    """

    sources: Sources
    allowed: Tensor | None
    copies: Copies | None


class Transformer(nn.Module):
    """Implements `Encodes`, `Predicts`, `PredictsJointly` and `Steps` (see `transduce.models.protocols`)."""

    Config = TransformerConfig

    def __init__(self, config: TransformerConfig, specs: Specs) -> None:
        super().__init__()
        refuse_pointer(specs, config.pointer)
        make = partial(Embedding, scaled=config.scale_embeddings)
        embeddings = make_front_ends(specs, config.d_model, config.tied, config, make)
        self.target_embedding, self.source_embedding, self.output = embeddings
        if config.output_bias:
            self.output.add_bias()
        self.output_bias, self.zero_start = config.output_bias, config.zero_start
        self.encoder = Stack(config.of_encoder, config.encoder_layers, side="encoder")
        self.decoder = Stack(config, config.decoder_layers, cross=True, causal=True, side="decoder")
        self.pointer = Pointer(config.d_model, config.d_model, specs) if config.pointer else None
        self.ctc_weight = config.ctc_weight
        self.ctc_output = make_ctc_output(config, specs, config.d_model)

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V) for the token after each target position (teacher forcing)."""
        assert source is not None
        memory = TransformerMemory(*self._remember(source, self.encode(source)))
        return self._decode(target.values, memory, None, target.mask())[0]

    def before_logits(self, source: Padded | None, target: Padded) -> tuple[Tensor, Tensor] | None:
        if self.pointer or self.output_bias:
            return None
        assert source is not None
        memory = TransformerMemory(*self._remember(source, self.encode(source)))
        hidden_BTD, _ = self._hidden(target.values, memory, None, target.mask())
        return hidden_BTD, self.output.weight

    def joint_logits(self, source: Padded, target: Padded) -> tuple[Tensor, Padded]:
        encoded = self.encode(source)
        memory = TransformerMemory(*self._remember(source, encoded))
        logits_BTV, _ = self._decode(target.values, memory, None, target.mask())
        return logits_BTV, self._aligned(encoded)

    def align_encoder(self, source: Padded) -> Padded:
        return self._aligned(self.encode(source))

    def encode(self, source: Padded) -> Padded:
        """Source ids (B, S), or frames (B, S, F), -> states (B, S', D)."""
        read = embedded(self.source_embedding, source)
        return Padded(self.encoder.encode(read.values, read.mask()), read.lengths)

    def start(self, source: Padded | None, rows: int) -> tuple[TransformerMemory, State]:
        """The source's keys and values for every decoder block, and empty caches."""
        assert source is not None
        sources, allowed, copies = self._remember(source, self.encode(source))
        shared = self.decoder.shared(sources, allowed)
        memory = (
            TransformerMemory(sources, allowed, copies) if shared is None else TransformerMemory(shared, None, copies)
        )
        return memory, self.decoder.begin(rows)

    def step(self, token_B: Tensor, memory: TransformerMemory, state: State) -> tuple[Tensor, State]:
        """Log-probabilities (B, V) in fp32 of the token after `token_B`, and the new state."""
        _, log_probabilities_BV, state = self.step_hidden(token_B, memory, state)
        return log_probabilities_BV, state

    def step_hidden(self, token_B: Tensor, memory: TransformerMemory, state: State) -> tuple[Tensor, Tensor, State]:
        """See `transduce.models.protocols.StepsWithHidden`."""
        hidden_B1D, state = self._hidden(token_B[:, None], memory, state, None)
        return hidden_B1D[:, -1], log_probabilities(self._logits(hidden_B1D, memory)[:, -1]), state

    def fused_search(self, memory: TransformerMemory, longest: int) -> FusedSearch | None:
        parts = {name for name, part in self._modules.items() if part is not None}
        plain = parts - OPTIONAL == PLAIN and not (self._parameters or self._buffers)
        fused = self.decoder.fused
        if not plain or fused is None:
            return None
        embeddings = self.target_embedding, self.output
        copying = Copying(self.pointer, memory.copies) if self.pointer and memory.copies else None
        return fused.search(self.decoder, *embeddings, memory.sources, longest, self.zero_start, copying)

    def _remember(self, source: Padded, encoded: Padded) -> tuple[tuple[KeyValue, ...], Tensor, Copies | None]:
        copies = self.pointer.remember(source.values, encoded.values, encoded.mask()) if self.pointer else None
        return self.decoder.keys_values(encoded.values), masks.padding(encoded.mask()), copies

    def _aligned(self, encoded: Padded) -> Padded:
        assert self.ctc_output is not None
        return Padded(self.ctc_output(encoded.values), encoded.lengths)

    def _decode(
        self, target_BT: Tensor, memory: TransformerMemory, past: State | None, real_BT: Tensor | None = None
    ) -> tuple[Tensor, State]:
        """Logits (B, T, V) after each of T more tokens, and the new state."""
        hidden_BTD, state = self._hidden(target_BT, memory, past, real_BT)
        return self._logits(hidden_BTD, memory), state

    def _logits(self, hidden_BTD: Tensor, memory: TransformerMemory) -> Tensor:
        logits_BTV = self.output.logits(hidden_BTD)
        return self.pointer(logits_BTV, hidden_BTD, memory.copies) if self.pointer else logits_BTV

    def _hidden(
        self, target_BT: Tensor, memory: TransformerMemory, past: State | None, real_BT: Tensor | None
    ) -> tuple[Tensor, State]:
        embedded_BTD = self.target_embedding(target_BT)
        if self.zero_start:
            embedded_BTD = begin_with_zeros(embedded_BTD, past[0].length if past else 0)
        return self.decoder.extend_causally(embedded_BTD, past, memory.sources, memory.allowed, real_BT)
