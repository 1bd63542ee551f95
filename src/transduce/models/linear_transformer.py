"""The Transformer with linear attention (Katharopoulos et al. 2020): an encoder and a recurrent decoder.

The size of its memory does not depend on the length of the source, nor the cost of a step on the length of the target.

Shapes: B batch, S source positions, T target positions, D model width, V vocabulary.
"""

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from transduce.attention.linear import Summary
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.embedding import Tied, make_embeddings
from transduce.layers.linear_stack import LinearStack, LinearStackConfig, LinearState
from transduce.layers.log_probabilities import log_probabilities

Memory = tuple[Summary, ...]  # a decoder block each


class LinearTransformerConfig(LinearStackConfig):
    """The settings of `LinearStackConfig`, and the numbers of layers."""

    kind: Literal["linear_transformer"] = "linear_transformer"
    encoder_layers: int = Field(default=3, ge=1)
    """Number of encoder layers."""
    decoder_layers: int = Field(default=3, ge=1)
    """Number of decoder layers."""
    tied: Tied = Field(default="all")
    """Which share a matrix. all: source, target and output, if the vocabulary is joint. output: target and output."""


class LinearTransformer(nn.Module):
    """Implements `Encodes`, `Predicts` and `Steps` (see `transduce.models.protocols`)."""

    Config = LinearTransformerConfig

    def __init__(self, config: LinearTransformerConfig, specs: Specs) -> None:
        super().__init__()
        embeddings = make_embeddings(specs, config.d_model, config.tied)
        self.target_embedding, self.source_embedding, self.output = embeddings
        self.encoder = LinearStack(config, config.encoder_layers, side="encoder")
        self.decoder = LinearStack(config, config.decoder_layers, cross=True, side="decoder")

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V) for the token after each target position (teacher forcing)."""
        return self.output.logits(self.before_logits(source, target)[0])

    def before_logits(self, source: Padded | None, target: Padded) -> tuple[Tensor, Tensor]:
        assert source is not None
        hidden_BTD, _ = self.decoder.extend(self.target_embedding(target.values), None, self._remember(source))
        return hidden_BTD, self.output.weight

    def encode(self, source: Padded) -> Padded:
        """Source ids (B, S) -> states (B, S, D)."""
        return Padded(self.encoder(self.source_embedding(source.values), source.mask()), source.lengths)

    def start(self, source: Padded | None, rows: int) -> tuple[Memory, LinearState]:
        """The summary of the source for every decoder block, and the state before the first token."""
        assert source is not None
        return self._remember(source), self.decoder.empty(rows)

    def step(self, token_B: Tensor, memory: Memory, state: LinearState) -> tuple[Tensor, LinearState]:
        """Log-probabilities (B, V) in fp32 of the token after `token_B`, and the new state."""
        _, log_probabilities_BV, state = self.step_hidden(token_B, memory, state)
        return log_probabilities_BV, state

    def step_hidden(self, token_B: Tensor, memory: Memory, state: LinearState) -> tuple[Tensor, Tensor, LinearState]:
        """See `transduce.models.protocols.StepsWithHidden`."""
        hidden_B1D, state = self.decoder.extend(self.target_embedding(token_B[:, None]), state, memory)
        return hidden_B1D[:, -1], log_probabilities(self.output.logits(hidden_B1D[:, -1])), state

    def _remember(self, source: Padded) -> Memory:
        encoded = self.encode(source)
        return self.decoder.summarise(encoded.values, encoded.mask())
