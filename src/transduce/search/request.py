"""What search is asked of one source, and what it tells of each step.

Shapes: S positions of a source, F features, N hypotheses, T tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from transduce.search.constraint import Constraint
from transduce.search.grammar import OutputGrammar


@dataclass(frozen=True, slots=True)
class Request:
    """One source, ready for search, and the rules for its outputs.

    limit: maximum number of tokens of an output, including the end token; see `Search.limit`.
    source: ids with the end token, or frames (S, F); None for a model without a source.
    prefix: the tokens with which an output must begin. They count towards its probability and its limit.
    min_length: minimum number of tokens of an output, without the end token.
    constraint: required and forbidden phrases. An output can end only when it contains all required phrases; if it
        reaches its limit before, its `ended` is False.
    grammar: the form of an output, which then ends within its limit; None = any. Not with phrases, a prefix, a minimum
        length, a limit on repeated n-grams or a shortlist.
    never_first: tokens that must not follow the prefix.
    line: the source's line number in its file, from 0. Messages name it, and samples are seeded with it.
    """

    limit: int
    source: Sequence[int] | NDArray[np.float32] | None = None
    prefix: Sequence[int] = ()
    min_length: int = 0
    constraint: Constraint | None = None
    grammar: OutputGrammar | None = None
    never_first: Sequence[int] = ()
    line: int = 0

    @property
    def has_rules(self) -> bool:
        """Whether behind its prefix some tokens may not stand at some places of its outputs."""
        rules = self.constraint, self.grammar, self.min_length, self.never_first
        return any(map(bool, rules))


class Step(NamedTuple):
    """The hypotheses of a search after one more token, including those that this token ended.

    Shapes: N hypotheses of all unfinished rows, T tokens so far.

    rows: (N,) int64, the row of each hypothesis. Greedy search has one per row, beam search at most its beam size.
    tokens: (N, T) int64, with prefixes and without the start token. The last one is new, and may be the end token.
    log_probabilities: (N,) float64, of all these tokens together.
    """

    rows: Tensor
    tokens: Tensor
    log_probabilities: Tensor


OnStep = Callable[[Step], None]  # an exception that it raises ends the search
