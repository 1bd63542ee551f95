"""Rules for the next token that depend on the tokens so far: minimum length, repeated n-grams, phrases, grammars.

Shapes: N hypotheses, T tokens so far, V vocabulary.
"""

from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor

from transduce.search.constraint import Constraint, State
from transduce.search.grammar import GrammarState, OutputGrammar


class Rules:
    """The rules of a job's rows. Each list has one element per row.

    end: the token that ends an output.
    limits: maximum number of tokens of an output, including the end token.
    least: minimum number of tokens of an output, without the end token.
    ngram: no n-gram of this length may occur twice (Paulus et al. 2018, section 2.5, for 3); None = no limit.
    constraints: required and forbidden phrases; None = no phrases.
    grammars: the form of an output; None = any.
    """

    def __init__(
        self,
        end: int,
        limits: Sequence[int],
        least: Sequence[int],
        ngram: int | None,
        constraints: Sequence[Constraint | None],
        grammars: Sequence[OutputGrammar | None] | None = None,
    ) -> None:
        self.end, self.limits, self.least, self.ngram, self.constraints = end, limits, least, ngram, constraints
        self.grammars = [None] * len(constraints) if grammars is None else grammars
        self.must = any(constraint and constraint.must for constraint in constraints)
        self._states: dict[tuple[int, tuple[int, ...]], State] = {}
        self._forms: dict[tuple[int, tuple[int, ...]], GrammarState] = {}

    def refused(self, row_N: Tensor, tokens_NT: Tensor, vocabulary: int) -> Tensor:
        """(N, V) bool on the CPU: the tokens that must not follow the tokens (N, T) of hypotheses of the rows (N,)."""
        refused_NV = torch.zeros(len(row_N), vocabulary, dtype=torch.bool)
        histories = list(zip(row_N.tolist(), map(tuple, tokens_NT.tolist()), strict=True))
        self._advance(histories)
        self._advance_grammars(histories)
        for place, (row, tokens) in enumerate(histories):
            constraint, last = self.constraints[row], len(tokens) + 1 == self.limits[row]
            if constraint is not None:
                state = self._states[row, tokens]
                forbidden_V = constraint.refused(state, last)
                if forbidden_V is not None:
                    refused_NV[place] = torch.from_numpy(forbidden_V)
                refused_NV[place, self.end] = not constraint.may_end(state)
            if self.ngram is not None:
                refused_NV[place, repeating(tokens, self.ngram)] = True
            if len(tokens) < self.least[row]:
                refused_NV[place, self.end] = True
            if (grammar := self.grammars[row]) is not None:
                left = self.limits[row] - len(tokens)
                refused_NV[place] |= torch.from_numpy(grammar.refused(self._forms[row, tokens], left))
        return refused_NV

    def state(self, row: int, tokens: tuple[int, ...]) -> State:
        """The constraint's state of a hypothesis from the last call of `refused`."""
        return self._states[row, tokens]

    def distance(self, row: int, tokens: Sequence[int]) -> int:
        """The distance of an output to its required phrases; see `Constraint.distance`."""
        constraint = self.constraints[row]
        return 0 if constraint is None else constraint.distance(constraint.behind(tokens))

    def _advance(self, histories: Sequence[tuple[int, tuple[int, ...]]]) -> None:
        """Compute each state from that of the same tokens without the last, if it is known, or from the start."""
        states = {}
        for row, tokens in histories:
            constraint = self.constraints[row]
            if constraint is None:
                continue
            before = self._states.get((row, tokens[:-1])) if tokens else None
            states[row, tokens] = constraint.behind(tokens) if before is None else constraint.after(before, tokens[-1])
        self._states = states

    def _advance_grammars(self, histories: Sequence[tuple[int, tuple[int, ...]]]) -> None:
        """The same of the grammars' states."""
        forms = {}
        for row, tokens in histories:
            if (grammar := self.grammars[row]) is not None:
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
