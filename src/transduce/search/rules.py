"""Rules for the next token that depend on the tokens so far: minimum length, repeated n-grams, phrases, grammars, and
what an output must not begin with.

Shapes: N hypotheses, T tokens so far, V vocabulary.
"""

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from transduce.search.constraint import State
from transduce.search.grammar import GrammarState
from transduce.search.request import Request


def rules_of(end: int, requests: Sequence[Request], ngram: int | None) -> "Rules | None":
    """The rules of requests; None where any token may follow."""
    ruled = any(each.min_length or each.constraint or each.grammar or each.never_first for each in requests)
    return Rules(end, requests, ngram) if ruled or ngram else None


class Rules:
    """The rules of a batch's requests.

    end: the token that ends an output.
    requests: limit, minimum length, phrases, grammar and forbidden first tokens of each row.
    ngram: no n-gram of this length may occur twice (Paulus et al. 2018, section 2.5, for 3); None = no limit.
    """

    def __init__(self, end: int, requests: Sequence[Request], ngram: int | None = None) -> None:
        self.end, self.requests, self.ngram = end, requests, ngram
        self.must = any(request.constraint and request.constraint.must for request in requests)
        self._states: dict[tuple[int, tuple[int, ...]], State] = {}
        self._forms: dict[tuple[int, tuple[int, ...]], GrammarState] = {}

    def refused(self, row_N: Tensor, tokens_NT: Tensor, vocabulary: int) -> Tensor:
        """(N, V) bool on the CPU: the tokens that must not follow the tokens (N, T) of hypotheses of the rows (N,)."""
        refused_NV = torch.zeros(len(row_N), vocabulary, dtype=torch.bool)
        histories = list(zip(row_N.tolist(), map(tuple, tokens_NT.tolist()), strict=True))
        self._advance(histories)
        self._advance_grammars(histories)
        for place, (row, tokens) in enumerate(histories):
            request = self.requests[row]
            constraint, left = request.constraint, request.limit - len(tokens)
            if constraint is not None:
                state = self._states[row, tokens]
                forbidden_V = constraint.refused(state, left == 1)
                if forbidden_V is not None:
                    refused_NV[place] = torch.from_numpy(forbidden_V)
                refused_NV[place, self.end] = not constraint.may_end(state)
            if self.ngram is not None:
                refused_NV[place, repeating(tokens, self.ngram)] = True
            if len(tokens) < request.min_length:
                refused_NV[place, self.end] = True
            if len(tokens) == len(request.prefix):
                refused_NV[place, list(request.never_first)] = True
            if request.grammar is not None:
                refused_NV[place] |= torch.from_numpy(request.grammar.refused(self._forms[row, tokens], left))
        return refused_NV

    def state(self, row: int, tokens: tuple[int, ...]) -> State:
        """The constraint's state of a hypothesis from the last call of `refused`."""
        return self._states[row, tokens]

    def distance(self, row: int, tokens: Sequence[int]) -> int:
        """The distance of an output to its required phrases; see `Constraint.distance`."""
        constraint = self.requests[row].constraint
        return 0 if constraint is None else constraint.distance(constraint.behind(tokens))

    def _advance(self, histories: Sequence[tuple[int, tuple[int, ...]]]) -> None:
        """Compute each state from that of the same tokens without the last, if it is known, or from the start."""
        states = {}
        for row, tokens in histories:
            constraint = self.requests[row].constraint
            if constraint is None:
                continue
            before = self._states.get((row, tokens[:-1])) if tokens else None
            states[row, tokens] = constraint.behind(tokens) if before is None else constraint.after(before, tokens[-1])
        self._states = states

    def _advance_grammars(self, histories: Sequence[tuple[int, tuple[int, ...]]]) -> None:
        """The same of the grammars' states."""
        forms = {}
        for row, tokens in histories:
            if (grammar := self.requests[row].grammar) is not None:
                before = self._forms.get((row, tokens[:-1])) if tokens else None
                known, more = (grammar.start, tokens) if before is None else (before, tokens[-1:])
                forms[row, tokens] = reduce(grammar.after, more, known)
        self._forms = forms


def repeating(tokens: Sequence[int], ngram: int) -> list[int]:
    """The tokens that would complete an n-gram that `tokens` already contain."""
    if len(tokens) < ngram:
        return []
    ending = tuple(tokens[len(tokens) - ngram + 1 :])
    places = range(len(tokens) - ngram + 1)
    return [tokens[place + ngram - 1] for place in places if tuple(tokens[place : place + ngram - 1]) == ending]
