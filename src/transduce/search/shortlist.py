"""Search with a shortlist: the likely translations of a source's tokens, and the most frequent words.

    log p'(w)  =  log p(w) - log sum_{v in list} p(v)   for w in the sentence's list, -inf for all others

A list belongs to a sentence, not to a batch, so a sentence gets the same result in any batch. (Jean et al. 2015,
section 3.3, "On using very large target vocabulary for neural machine translation"; Mi et al. 2016, "Vocabulary
manipulation for neural machine translation"; Kim et al. 2019, "From research to production and back: ludicrously fast
neural machine translation". Their lists belong to a batch.)

Shapes: B sentences, N hypotheses, V vocabulary.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.core.padded import Padded
from transduce.layers.fused_search import FusedSearch
from transduce.models.protocols import HasFusedSearch, Tree, stands_in
from transduce.search.batch_request import BatchRequest
from transduce.search.word_lists import permit


class Remembered(NamedTuple):
    """The model's memory, and (N, V) bool, True = the token is on the list."""

    inner: Tree
    allowed: Tensor


class Shortlisted:
    """A wrapper that implements `Steps` and restricts a model to the lists (B, V) of its sources.

    Search uses it in place of the model, so the lists are reordered with the rest of the memory.
    """

    def __init__(self, model: Any, allowed_BV: Tensor) -> None:
        self.model, self.allowed_BV = model, allowed_BV

    def start(self, source: Padded | None, rows: int) -> tuple[Remembered, Tree]:
        """The model's memory with the lists, and its state."""
        memory, state = self.model.start(source, rows)
        return Remembered(memory, self.allowed_BV), state

    def step(self, token: Tensor, memory: Remembered, state: Tree) -> tuple[Tensor, Tree]:
        """Log-probabilities (N, V), normalized over the lists, and the new state."""
        log_probabilities_NV, state = self.model.step(token, memory.inner, state)
        return restricted(log_probabilities_NV, memory.allowed), state

    def fused_search(self, memory: Remembered, longest: int) -> FusedSearch | None:
        """The model's fused search; see `transduce.models.protocols.HasFusedSearch`."""
        if not isinstance(self.model, HasFusedSearch) or not stands_in(self.model, "fused_search", "step"):
            return None
        return self.model.fused_search(memory.inner, longest)


def restricted(log_probabilities_NV: Tensor, allowed_NV: Tensor) -> Tensor:
    """Log-probabilities normalized over allowed tokens, -inf elsewhere; all -inf if no allowed token is possible."""
    if log_probabilities_NV.shape != allowed_NV.shape:
        return log_probabilities_NV  # of another vocabulary, which the batch rejects
    kept_NV = log_probabilities_NV.masked_fill(~allowed_NV, -torch.inf)
    mass_N1 = kept_NV.logsumexp(1, keepdim=True)
    return kept_NV - torch.where(mass_N1 == -torch.inf, 0, mass_N1)


def with_demands(allowed_BV: Tensor, batch: BatchRequest) -> Tensor:
    """The lists of a batch's rows without forbidden tokens, but with the end token and those of prefixes and phrases.

    Tokens outside the vocabulary are left to `BatchRequest.check_vocabulary`.
    """
    allowed_BV = allowed_BV.clone()
    size = allowed_BV.shape[1]
    permit(allowed_BV, batch.forbidden, batch.end)
    for row, request in enumerate(batch.requests):
        if demanded := {*request.prefix, *(request.constraint.tokens if request.constraint else ())}:
            allowed_BV[row, [token for token in demanded if token < size]] = True
    return allowed_BV.to(batch.device)
