"""A batch of requests for search, with the model that answers them.

Shapes: B sentences, N hypotheses, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transduce.core.errors import InputError, TransduceError
from transduce.core.padded import Padded
from transduce.data.kneser_ney import KneserNey
from transduce.models.protocols import Tree, select
from transduce.search.coverage import Coverage
from transduce.search.lattice import Lattices
from transduce.search.one_call import check_log_probability
from transduce.search.request import OnStep, Request
from transduce.search.rules import Rules


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """Requests, and all that search needs to answer them.

    model: implements `Steps`, or `Fills` for method "mask_predict", or `Aligns` for "ctc".
    source: the requests' sources as the model reads them; None for a model without a source.
    start, end: token ids; `end` ends an output.
    forbidden: token ids that are never chosen. A prefix may contain them.
    device: the model's device.
    rules: which tokens may not follow a hypothesis; None = no rules.
    coverage: the coverage penalty; None = none.
    lattices: records every step of a beam; None = no recording.
    shortlist: (B, V) bool, True = an output of the row may contain the token; None = any token. With a shortlist,
        `model` is `Shortlisted`.
    on_step: called after each token; None = no calls.
    ngrams: the language model for `Search.lm_weight`; None = there is none.
    """

    model: Any
    source: Padded | None
    requests: Sequence[Request]
    start: int
    end: int
    forbidden: Sequence[int]
    device: torch.device
    rules: Rules | None = None
    coverage: Coverage | None = None
    lattices: Lattices | None = None
    shortlist: Tensor | None = None
    on_step: OnStep | None = None
    ngrams: KneserNey | None = None

    @property
    def rows(self) -> int:
        """B."""
        return len(self.requests)

    @property
    def limits(self) -> list[int]:
        """The limit of each request."""
        return [request.limit for request in self.requests]

    @property
    def has_prefixes(self) -> bool:
        """Whether an output must begin with given tokens."""
        return any(request.prefix for request in self.requests)

    def begin(self) -> tuple[Tree, Tree]:
        """The memory of the sources and the state before the first token, (B, ...) each."""
        memory, state = self.model.start(self.source, self.rows)
        return memory, state

    def step(self, token_N: Tensor, memory: Tree, state: Tree, time: int) -> tuple[Tensor, Tree]:
        """The log-probabilities (N, V) of the token at position `time`, and the state after it.

        Raises:
            TransduceError: the model returned invalid log-probabilities.
            InputError: a token id of this batch is not in the vocabulary.
        """
        log_probabilities_NV, state = self.model.step(token_N.to(self.device), memory, state)
        if log_probabilities_NV.ndim != 2 or len(log_probabilities_NV) != len(token_N):
            raise TransduceError(
                f"search: the model should give log-probabilities ({len(token_N)}, vocabulary) "
                f"for {len(token_N)} hypotheses, but gave {tuple(log_probabilities_NV.shape)}."
            )
        if time == 0:
            self.check_vocabulary(log_probabilities_NV.shape[1])
        check_log_probability(float(log_probabilities_NV.amax()))
        return log_probabilities_NV, state

    def permitted(self, log_probabilities_NV: Tensor, row_N: Tensor, tokens_NT: Tensor) -> Tensor:
        """The log-probabilities with -inf for tokens that may not follow the hypotheses.

        These are the forbidden tokens, the tokens that the rules reject, and within a prefix every token but the next.

        Args:
            log_probabilities_NV: the log-probabilities.
            row_N: the sentence of each hypothesis.
            tokens_NT: the tokens of each hypothesis.
        """
        row_M, token_M = self._imposed(row_N, tokens_NT.shape[1])
        row_M, token_M = row_M.to(self.device), token_M.to(self.device)
        value_M = log_probabilities_NV[row_M, token_M]
        if self.forbidden:
            forbidden_F = torch.tensor(self.forbidden, device=self.device)
            log_probabilities_NV = log_probabilities_NV.index_fill(1, forbidden_F, -torch.inf)
        if self.rules:
            refused_NV = self.rules.refused(row_N, tokens_NT, log_probabilities_NV.shape[1])
            log_probabilities_NV = log_probabilities_NV.masked_fill(refused_NV.to(self.device), -torch.inf)
        if len(row_M):
            log_probabilities_NV = log_probabilities_NV.index_fill(0, row_M, -torch.inf)
            log_probabilities_NV[row_M, token_M] = value_M
        return log_probabilities_NV

    def is_free(self, time: int) -> bool:
        """Whether at position `time` every token that is not `forbidden` may follow."""
        return self.rules is None and all(time >= len(request.prefix) for request in self.requests)

    def penalty(self, memory: Tree, state: Tree, rows: int) -> Tensor:
        """(N,) float64: the coverage penalty, at most 0, of hypotheses that end with the next token."""
        if self.coverage is None:
            return torch.zeros(rows, dtype=torch.float64)
        return self.coverage.penalty(memory if self.shortlist is None else memory.inner, state)

    def _imposed(self, row_N: Tensor, time: int) -> tuple[Tensor, Tensor]:
        """(M,) the hypotheses whose prefix has a token at position `time`, and (M,) these tokens."""
        if all(time >= len(request.prefix) for request in self.requests):
            return torch.empty(0, dtype=torch.int64), torch.empty(0, dtype=torch.int64)
        prefixes = [request.prefix for request in self.requests]
        token_B = [prefix[time] if time < len(prefix) else -1 for prefix in prefixes]
        token_N = torch.tensor(token_B)[row_N]
        row_M = (token_N >= 0).nonzero()[:, 0]
        return row_M, token_N[row_M]

    def check_vocabulary(self, size: int) -> None:
        """Raises InputError if a token id of this batch is not in a vocabulary of this size."""
        if self.shortlist is not None and self.shortlist.shape[1] != size:
            raise InputError(f"search: a shortlist out of {self.shortlist.shape[1]} tokens; the model has {size}.")
        outside = [f"end token {self.end}"] if self.end >= size else []
        outside += [f"forbidden token {token}" for token in self.forbidden if token >= size]
        outside += [
            f"line {request.line}: prefix token {token}"
            for request in self.requests
            for token in request.prefix
            if token >= size
        ]
        if any(each.grammar and each.grammar.size != size for each in self.requests):
            raise InputError(f"search: the grammars were made for another vocabulary than the model's {size} tokens.")
        if any(each.constraint and each.constraint.spelling.size != size for each in self.requests):
            raise InputError(
                f"search: the constraints were made for another vocabulary than the model's {size} tokens."
            )
        if outside:
            raise InputError(f"search: {what} is outside the model's vocabulary of {size}." for what in outside)


def reordered(tree: Tree, row_N: Tensor, rows: int, device: torch.device) -> Tree:
    """`select(tree, row_N)` for a tree of `rows` rows, without a copy if the order does not change."""
    if len(row_N) == rows and torch.equal(row_N, torch.arange(rows)):
        return tree
    return select(tree, row_N.to(device))
