"""The Transformer with linear attention throughout (Katharopoulos et al. 2020): an encoder and a recurrent decoder.

Its memory of a source is of one size whatever the source's length, and a step costs the same whatever the target's.

Shapes: B batch, S source positions, T target positions, D model width, V vocabulary.
"""

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from transduce.attention.linear import Summary
from transduce.core.padded import Padded
from transduce.layers.embedding import Tied, make_embeddings
from transduce.layers.linear_stack import LinearStack, LinearStackConfig, LinearState
from transduce.layers.log_probabilities import log_probabilities
from transduce.models.protocols import Sizes

Memory = tuple[Summary, ...]  # a decoder block each


class LinearTransformerConfig(LinearStackConfig):
    """The sizes of `LinearStackConfig`, and how many blocks on each side."""

    kind: Literal["linear_transformer"] = "linear_transformer"
    encoder_layers: int = Field(default=3, ge=1)
    """Blocks that read the source."""
    decoder_layers: int = Field(default=3, ge=1)
    """Blocks that write the target."""
    tied: Tied = Field(default="all")
    """all: one matrix for source, target and output, if their vocabulary is joint."""


class LinearTransformer(nn.Module):
    """Encodes, predicts and steps (see `transduce.models.protocols`)."""

    Config = LinearTransformerConfig

    def __init__(self, config: LinearTransformerConfig, sizes: Sizes) -> None:
        super().__init__()
        embeddings = make_embeddings(*sizes, config.d_model, config.tied)
        self.target_embedding, self.source_embedding, self.output = embeddings
        self.encoder = LinearStack(config, config.encoder_layers, side="encoder")
        self.decoder = LinearStack(config, config.decoder_layers, cross=True, side="decoder")

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V) of the token after each target position (teacher forcing)."""
        return self.output.logits(self.before_logits(source, target)[0])

    def before_logits(self, source: Padded | None, target: Padded) -> tuple[Tensor, Tensor]:
        """See `transduce.models.protocols.PredictsByProduct`."""
        assert source is not None
        hidden_BTD, _ = self.decoder.extend(self.target_embedding(target.values), None, self._remember(source))
        return hidden_BTD, self.output.weight

    def encode(self, source: Padded) -> Padded:
        """Source ids (B, S) -> states (B, S, D)."""
        return Padded(self.encoder(self.source_embedding(source.values), source.mask()), source.lengths)

    def start(self, source: Padded | None, rows: int) -> tuple[Memory, LinearState]:
        """The source summed up for every decoder block, and the state before the first token."""
        assert source is not None
        return self._remember(source), self.decoder.empty(rows)

    def step(self, token_B: Tensor, memory: Memory, state: LinearState) -> tuple[Tensor, LinearState]:
        """Log-probabilities (B, V) in fp32 of the token after `token_B`."""
        hidden_BTD, state = self.decoder.extend(self.target_embedding(token_B[:, None]), state, memory)
        return log_probabilities(self.output.logits(hidden_BTD[:, -1])), state

    def _remember(self, source: Padded) -> Memory:
        encoded = self.encode(source)
        return self.decoder.summarise(encoded.values, encoded.mask())
