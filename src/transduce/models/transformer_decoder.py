"""A decoder-only Transformer, a language model (Radford et al. 2018).

Shapes: B batch, T positions, D model width, V vocabulary.
"""

from typing import Literal, cast

import torch
from pydantic import Field
from torch import Tensor, nn

from transduce.attention import KeyValue
from transduce.attention.sparse import causal_mask
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.embedding import Embedding
from transduce.layers.log_probabilities import log_probabilities
from transduce.layers.stack import Stack, StackConfig, State
from transduce.models.protocols import Prefix

ROWS = 64  # of logits at a time: the vocabulary may be large


class TransformerDecoderConfig(StackConfig):
    """The settings of `StackConfig`, and the number of layers."""

    kind: Literal["transformer_decoder"] = "transformer_decoder"
    layers: int = Field(default=4, ge=1)
    """Number of layers."""
    tied: bool = Field(default=True)
    """Use one matrix for input embeddings and output layer."""
    scale_embeddings: bool = True
    """Multiply embeddings by the square root of d_model."""


class TransformerDecoder(nn.Module):
    """Implements `Predicts`, `Stateful`, `Steps`, `Prefills` (see `transduce.models.protocols`). Its memory is None."""

    Config = TransformerDecoderConfig

    def __init__(self, config: TransformerDecoderConfig, specs: Specs) -> None:
        super().__init__()
        words = specs.without_source
        self.embedding = Embedding(words, config.d_model, config.scale_embeddings)
        self.output = self.embedding if config.tied else Embedding(words, config.d_model)
        self.decoder = Stack(config, config.layers, causal=True, side="decoder")

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Logits (B, T, V) for the token after each position (teacher forcing); source must be None."""
        return self.output.logits(self.before_logits(source, target)[0])

    def before_logits(self, source: Padded | None, target: Padded) -> tuple[Tensor, Tensor]:
        assert source is None
        hidden_BTD, _ = self.decoder.extend_causally(self.embedding(target.values), None, real_BT=target.mask())
        return hidden_BTD, self.output.weight

    def initial_state(self, rows: int) -> tuple[KeyValue, ...]:
        """See `transduce.models.protocols.Stateful`: empty caches. Positions must be relative, and attention full."""
        self.decoder.check_sliding()
        return self.decoder.empty(rows)

    def extend(
        self, target: Padded, state: tuple[KeyValue, ...], memory: int
    ) -> tuple[Tensor, Tensor, tuple[KeyValue, ...]]:
        """See `transduce.models.protocols.Stateful`.

        The state is the keys and values of the last `memory` positions (Dai et al. 2019, who keep the layers' inputs).
        """
        allowed = causal_mask("full", 2, target.values.shape[1], state[0].length, target.values.device)
        embedded_BTD, real_BT = self.embedding(target.values), target.mask()
        hidden_BTD, after = self.decoder.extend(embedded_BTD, state, allowed=allowed, real_BT=real_BT)
        return hidden_BTD, self.output.weight, self.decoder.last(cast(tuple[KeyValue, ...], after), memory)

    def start(self, source: Padded | None, rows: int) -> tuple[None, State]:
        assert source is None
        return None, self.decoder.begin(rows)

    def step(self, token_B: Tensor, memory: None, state: State) -> tuple[Tensor, State]:
        """Log-probabilities (B, V) in fp32 of the token after `token_B`, and the new state."""
        hidden_BTD, state = self.decoder.extend_causally(self.embedding(token_B[:, None]), state)
        return log_probabilities(self.output.logits(hidden_BTD[:, -1])), state

    def prefill(self, token: Tensor, following: Tensor) -> Prefix | None:
        """See `transduce.models.protocols.Prefills`."""
        words = self.embedding.weight.shape[0]
        if int(token.max()) >= words or int(following.max()) >= words:
            return None  # search names such a token at its step
        if (read := self.decoder.prefill(token, self.embedding, self.output)) is None:
            return None
        hidden_BTD, state = read
        pieces = zip(
            *(torch.split(each, ROWS) for each in (hidden_BTD.flatten(0, 1), following.flatten())), strict=True
        )
        likely = [
            log_probabilities(self.output.logits(hidden_ND)).gather(1, next_N[:, None]) for hidden_ND, next_N in pieces
        ]
        return Prefix(torch.cat(likely).view_as(following), words, state)
