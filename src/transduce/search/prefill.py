"""Tokens that outputs must begin with, read in one pass instead of step by step: the prompts of a language model.

Shapes: B rows, N hypotheses, P tokens that are known and not yet taken, V vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.core.padded import Padded
from transduce.models.protocols import Prefills, Prefix, Tree, stands_in
from transduce.search.batch_request import BatchRequest


class KnownPrefix(NamedTuple):
    """The state after the whole prefix, and the tokens (N, P) of it that search still has to take."""

    inner: Tree
    token_NP: Tensor
    value_NP: Tensor


class Prefilled:
    """A wrapper that implements `Steps` and has read what the outputs of all rows begin with, P tokens each."""

    def __init__(self, model: Any, token_BP: Tensor, prefix: Prefix) -> None:
        self.model, self.token_BP, self.prefix = model, token_BP, prefix

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, KnownPrefix]:
        """The model's memory; the state, in which all tokens are still to be taken."""
        memory, _ = self.model.start(source, rows)
        return memory, KnownPrefix(self.prefix.state, self.token_BP, self.prefix.following_BT)

    def step(self, token: Tensor, memory: Tree, state: KnownPrefix) -> tuple[Tensor, KnownPrefix]:
        """Log-probabilities (N, V): behind the prefix the model's, within it those of its tokens alone."""
        if not state.token_NP.shape[1]:
            log_probabilities_NV, inner = self.model.step(token, memory, state.inner)
            return log_probabilities_NV, state._replace(inner=inner)
        nothing_NV = state.value_NP.new_full((len(token), self.prefix.words), -torch.inf)
        log_probabilities_NV = nothing_NV.scatter_(1, state.token_NP[:, :1], state.value_NP[:, :1])
        return log_probabilities_NV, KnownPrefix(state.inner, state.token_NP[:, 1:], state.value_NP[:, 1:])


def prefilled(batch: BatchRequest) -> Any:
    """The batch's model, which has read in one pass what all outputs begin with; itself if it must go step by step."""
    model, shared = batch.model, min(len(request.prefix) for request in batch.requests)
    standing_in = isinstance(model, Prefills) and all(stands_in(model, "prefill", own) for own in ("start", "step"))
    if shared < 2 or not standing_in:
        return model
    token_BP = torch.tensor([request.prefix[:shared] for request in batch.requests], device=batch.device)
    start_B1 = torch.full_like(token_BP[:, :1], batch.start)
    prefix = model.prefill(torch.cat((start_B1, token_BP[:, :-1]), 1), token_BP)
    return model if prefix is None else Prefilled(model, token_BP, prefix)
