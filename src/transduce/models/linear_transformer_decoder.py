"""A decoder-only linear Transformer, a language model that is also an RNN (Katharopoulos et al. 2020, section 3.4).

Shapes: B batch, T positions, D model width, V vocabulary.
"""

from typing import Literal

from pydantic import Field
from torch import Tensor, nn

from transduce.attention.positions import Learned
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.embedding import Embedding
from transduce.layers.linear_stack import LinearStack, LinearStackConfig, LinearState
from transduce.layers.log_probabilities import log_probabilities


class LinearTransformerDecoderConfig(LinearStackConfig):
    """The settings of `LinearStackConfig`, and the number of layers."""

    kind: Literal["linear_transformer_decoder"] = "linear_transformer_decoder"
    layers: int = Field(default=4, ge=1)
    """Number of layers."""
    tied: bool = Field(default=True)
    """Use one matrix for input embeddings and output layer."""


class LinearTransformerDecoder(nn.Module):
    """Implements `Predicts`, `Stateful` and `Steps` (see `transduce.models.protocols`). Its memory is None.

    The size of its state does not depend on the number of tokens.
    """

    Config = LinearTransformerDecoderConfig

    def __init__(self, config: LinearTransformerDecoderConfig, specs: Specs) -> None:
        super().__init__()
        words = specs.without_source
        self.embedding = Embedding(words, config.d_model)
        self.output = self.embedding if config.tied else Embedding(words, config.d_model)
        self.decoder = LinearStack(config, config.layers, side="decoder")

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V) for the token after each position (teacher forcing); source must be None."""
        return self.output.logits(self.before_logits(source, target)[0])

    def before_logits(self, source: Padded | None, target: Padded) -> tuple[Tensor, Tensor]:
        assert source is None
        hidden_BTD, _ = self.decoder.extend(self.embedding(target.values), None)
        return hidden_BTD, self.output.weight

    def initial_state(self, rows: int) -> LinearState:
        """See `transduce.models.protocols.Stateful`: sums over all earlier tokens. Learned positions would run out."""
        if isinstance(self.decoder.positions, Learned):
            raise InputError(
                "model.positions: a text that goes on and on has more positions than can be learned; use sinusoidal or "
                "none."
            )
        return self.decoder.empty(rows)

    def extend(self, target: Padded, state: LinearState, memory: int) -> tuple[Tensor, Tensor, LinearState]:
        """See `transduce.models.protocols.Stateful`. The state does not grow, so all of it is kept."""
        hidden_BTD, state = self.decoder.extend(self.embedding(target.values), state)
        return hidden_BTD, self.output.weight, state

    def start(self, source: Padded | None, rows: int) -> tuple[None, LinearState]:
        """No memory, and the state before the first token."""
        assert source is None
        return None, self.decoder.empty(rows)

    def step(self, token_B: Tensor, memory: None, state: LinearState) -> tuple[Tensor, LinearState]:
        """Log-probabilities (B, V) in fp32 of the token after `token_B`, and the new state."""
        hidden_BTD, state = self.decoder.extend(self.embedding(token_B[:, None]), state)
        return log_probabilities(self.output.logits(hidden_BTD[:, -1])), state
