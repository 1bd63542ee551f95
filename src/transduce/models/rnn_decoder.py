"""A recurrent language model with any cell (Mikolov et al. 2010; Zaremba et al. 2014).

Shapes: B batch, T positions, D width of embeddings and states, V vocabulary.
"""

from typing import Literal

from pydantic import Field, field_validator
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.core.config import Config
from transduce.core.padded import Padded
from transduce.core.registry import check
from transduce.data.columns import Specs
from transduce.layers.embedding import Embedding
from transduce.layers.log_probabilities import log_probabilities
from transduce.layers.recurrent_stack import RecurrentStack, StackState


class RnnDecoderConfig(Config):
    """Sizes and cell. The defaults suit a training text of a million words."""

    kind: Literal["rnn_decoder"] = "rnn_decoder"
    cell: str = "lstm"
    """lstm, gru, tanh, lstmn (attends to its own past), ntm (an LSTM with an external memory), or your own (see
    `transduce.layers.recurrent`)."""
    d_model: int = Field(default=256, ge=1)
    """Width of the embeddings and of the states."""
    layers: int = Field(default=2, ge=1)
    """Number of layers."""
    residual: bool = False
    """Add each layer's input to its output, from the second layer on."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout rate on embeddings, between layers and on the last layer's states."""
    tied: bool = Field(default=True)
    """Use one matrix for input embeddings and output layer."""

    @field_validator("cell")
    @classmethod
    def _known(cls, name: str) -> str:
        return check("layers.recurrent", name)


class RnnDecoder(nn.Module):
    """Implements `Predicts`, `Stateful` and `Steps` (see `transduce.models.protocols`). Its memory is None."""

    Config = RnnDecoderConfig

    def __init__(self, config: RnnDecoderConfig, specs: Specs) -> None:
        super().__init__()
        width = config.d_model
        words = specs.without_source
        self.embedding = Embedding(words, width)
        self.output = self.embedding if config.tied else Embedding(words, width)
        self.stack = RecurrentStack(config.cell, width, width, config.layers, config.residual, config.dropout)
        self.dropout = Dropout(config.dropout)

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V) for the token after each position (teacher forcing); source must be None."""
        return self._extend(target.values, self.start(source, len(target.values))[1])[0]

    def start(self, source: Padded | None, rows: int) -> tuple[None, StackState]:
        """No memory, and states of zeros."""
        assert source is None
        return None, self.stack.empty(rows)

    def initial_state(self, rows: int) -> StackState:
        return self.stack.empty(rows)

    def extend(self, target: Padded, state: StackState, memory: int) -> tuple[Tensor, Tensor, StackState]:
        """See `transduce.models.protocols.Stateful`. What a cell attends to is its last `memory` states."""
        hidden_BTD, state = self._read(target.values, state)
        return hidden_BTD, self.output.weight, self.stack.shortened(state, memory)

    def step(self, token_B: Tensor, memory: None, state: StackState) -> tuple[Tensor, StackState]:
        """Log-probabilities (B, V) in fp32 of the token after `token_B`, and the new state."""
        logits_B1V, state = self._extend(token_B[:, None], state)
        return log_probabilities(logits_B1V[:, 0]), state

    def _extend(self, token_BT: Tensor, state: StackState) -> tuple[Tensor, StackState]:
        hidden_BTD, state = self._read(token_BT, state)
        return self.output.logits(hidden_BTD), state

    def _read(self, token_BT: Tensor, state: StackState) -> tuple[Tensor, StackState]:
        hidden_BTD, state = self.stack.read(self.dropout(self.embedding(token_BT)), state)
        return self.dropout(hidden_BTD), state
