"""Search with a language model beside the model: shallow fusion (Gulcehre et al. 2015, section 4.1).

    score(h c)  =  log p(c | h, source)  +  w log p_lm(c | h)                  w = `search.lm_weight`

The language model is one of counted n-grams (`transduce.data.kneser_ney`). It knows nothing of the source, and says
which outputs are likely to be written at all.

Shapes: N hypotheses, V vocabulary, L lengths of a context.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.core.padded import Padded
from transduce.data.kneser_ney import KneserNey
from transduce.models.protocols import Tree


class FusedState(NamedTuple):
    """A model's state, and (N, L) int64 the contexts of the hypotheses, as `KneserNey.contexts` makes them."""

    inner: Tree
    contexts: Tensor


class WithLanguageModel:
    """A wrapper that implements `Steps`; search uses it in place of the model.

    Args:
        weight: w, above 0.
        begin: the token that stands before an output.
        device: the model's.
    """

    def __init__(self, model: Any, ngrams: KneserNey, weight: float, begin: int, device: torch.device) -> None:
        self.model, self.ngrams, self.weight, self.begin, self.device = model, ngrams, weight, begin, device

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, FusedState]:
        """The model's memory and state, and contexts of outputs without any token."""
        memory, state = self.model.start(source, rows)
        return memory, FusedState(state, torch.from_numpy(self.ngrams.contexts(rows)).to(self.device))

    def step(self, token: Tensor, memory: Tree, state: FusedState) -> tuple[Tensor, FusedState]:
        """The scores (N, V) above, each at most 0, and the state after `token`."""
        scores_NV, inner = self.model.step(token, memory, state.inner)
        before_NL, token_N = state.contexts.cpu().numpy(), token.cpu().numpy()
        contexts_NL = self.ngrams.extended(before_NL, token_N)
        contexts_NL[token_N == self.begin] = self.ngrams.contexts(1)
        likely_NV = torch.from_numpy(self.ngrams.after(contexts_NL)).to(scores_NV)
        return scores_NV + self.weight * likely_NV, FusedState(inner, torch.from_numpy(contexts_NL).to(self.device))
