"""A Transformer whose decoder has a recurrent unit (SSRU) instead of self-attention (Kim et al. 2019).

The encoder is that of a Transformer. The decoder adds no positions, because the recurrent unit depends on order. Marian
adds them all the same; so does `decoder_positions`.

Shapes: B batch, T target positions, S source positions, D model width.
"""

from functools import partial
from typing import Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from transduce.attention import KeyValue, masks
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.embedding import Embedding, Tied, make_embeddings
from transduce.layers.fused_search import FusedSearch
from transduce.layers.log_probabilities import log_probabilities
from transduce.layers.ssru_stack import Cells, SsruStack
from transduce.layers.stack import NoncausalStackConfig, Sources, Stack

PARTS = {"target_embedding", "source_embedding", "output", "encoder", "decoder"}
Memory = tuple[Sources, Tensor | None]  # keys and values of each block; mask of real positions, None if they contain it


class SsruTransformerConfig(NoncausalStackConfig):
    """The settings of `StackConfig`. Those of positions (but see `decoder_positions`), of self-attention and
    `embedding_norm` apply to the encoder only."""

    kind: Literal["ssru_transformer"] = "ssru_transformer"
    encoder_layers: int = Field(default=3, ge=1)
    """Number of encoder layers."""
    decoder_layers: int = Field(default=3, ge=1)
    """Number of decoder layers."""
    tied: Tied = Field(default="all")
    """Which share a matrix. all: source, target and output, if the vocabulary is joint. output: target and output.
    input: source and target."""
    scale_embeddings: bool = True
    """Multiply embeddings by the square root of d_model."""
    output_bias: bool = False
    """A bias for the logit of each target token."""
    zero_start: bool = False
    """Begin outputs with a vector of zeros, not with the embedding of the start token, as Marian does."""
    decoder_positions: bool = False
    """Add positions to what the decoder reads, too, as Marian does; for tensor2tensor positions."""

    @model_validator(mode="after")
    def _decoder_positions_are_marians(self) -> Self:
        if self.decoder_positions and self.positions != "tensor2tensor":
            raise ValueError(f"decoder_positions is for tensor2tensor positions, not {self.positions}")
        return self


class SsruTransformer(nn.Module):
    """Implements `Encodes`, `Predicts` and `Steps` (see `transduce.models.protocols`)."""

    Config = SsruTransformerConfig

    def __init__(self, config: SsruTransformerConfig, specs: Specs) -> None:
        super().__init__()
        make = partial(Embedding, scaled=config.scale_embeddings)
        embeddings = make_embeddings(specs, config.d_model, config.tied, make)
        self.target_embedding, self.source_embedding, self.output = embeddings
        if config.output_bias:
            self.output.add_bias()
        self.output_bias = config.output_bias
        self.encoder = Stack(config, config.encoder_layers, side="encoder")
        first = config.first_position if config.decoder_positions else None
        self.decoder = SsruStack(config, config.decoder_layers, config.zero_start, first)

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V) for the token after each target position (teacher forcing)."""
        return self.output.logits(self._hidden(source, target))

    def before_logits(self, source: Padded | None, target: Padded) -> tuple[Tensor, Tensor] | None:
        return None if self.output_bias else (self._hidden(source, target), self.output.weight)

    def encode(self, source: Padded) -> Padded:
        """Source ids (B, S) -> states (B, S, D)."""
        embedded_BSD, real_BS = self.source_embedding(source.values), source.mask()
        return Padded(self.encoder.encode(embedded_BSD, real_BS), source.lengths)

    def start(self, source: Padded | None, rows: int) -> tuple[Memory, Cells]:
        """The source's keys and values for every decoder block, and empty cells."""
        assert source is not None
        sources, allowed_B11S = self._remember(source)
        shared = self.decoder.shared(sources, allowed_B11S)
        return (sources, allowed_B11S) if shared is None else (shared, None), self.decoder.empty(rows)

    def step(self, token_B: Tensor, memory: Memory, state: Cells) -> tuple[Tensor, Cells]:
        """Log-probabilities (B, V) in fp32 of the token after `token_B`, and the new state."""
        _, log_probabilities_BV, state = self.step_hidden(token_B, memory, state)
        return log_probabilities_BV, state

    def step_hidden(self, token_B: Tensor, memory: Memory, state: Cells) -> tuple[Tensor, Tensor, Cells]:
        """See `transduce.models.protocols.StepsWithHidden`."""
        hidden_B1D, state = self.decoder(self.target_embedding(token_B[:, None]), state, *memory)
        return hidden_B1D[:, -1], log_probabilities(self.output.logits(hidden_B1D[:, -1])), state

    def fused_search(self, memory: Memory, longest: int) -> FusedSearch | None:
        fused, (sources, allowed) = self.decoder.fused, memory
        plain = {*self._modules} == PARTS and not (self._parameters or self._buffers)
        if not plain or fused is None or allowed is not None:
            return None
        embeddings = self.target_embedding, self.output
        return fused.search(self.decoder, *embeddings, sources, longest, self.decoder.zero_start)

    def _hidden(self, source: Padded | None, target: Padded) -> Tensor:
        """(B, T, D)."""
        assert source is not None
        embedded_BTD = self.target_embedding(target.values)
        hidden_BTD, _ = self.decoder(embedded_BTD, None, *self._remember(source), target.mask())
        return hidden_BTD

    def _remember(self, source: Padded) -> tuple[tuple[KeyValue, ...], Tensor]:
        encoded = self.encode(source)
        return self.decoder.keys_values(encoded.values), masks.padding(encoded.mask())
