"""One output of a search, and the order in which outputs are listed."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transduce.search.length import LengthRule


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """An output of a search.

    tokens: without the start token; with the end token if it ended.
    log_probability: natural logarithm of the model's probability of `tokens`: the sum over all tokens.
    score: `log_probability` after the length rule and the coverage penalty, by which hypotheses are ranked.
    token_log_probabilities: the model's log-probability of each token, without temperature and filters.
    ended: False if it reached the length limit before the end token.
    distance: for an output that did not end, its distance to the required phrases (`Constraint.distance`).
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    token_log_probabilities: tuple[float, ...]
    ended: bool
    distance: int = 0


def hypothesis(
    tokens: Sequence[int],
    token_log_probabilities: Sequence[float],
    ended: bool,
    length: LengthRule,
    penalty: float = 0.0,
    distance: int = 0,
) -> Hypothesis:
    """A hypothesis of at least one token. The sum of log-probabilities is rounded once, so all methods agree on it.

    penalty: added to the score; see `transduce.search.coverage`.
    """
    total = math.fsum(token_log_probabilities)
    score = length.normalised(total, len(tokens)) + penalty
    return Hypothesis(tuple(tokens), total, score, tuple(token_log_probabilities), ended, distance)


def rank(hypotheses: Iterable[Hypothesis], nbest: int) -> list[Hypothesis]:
    """The `nbest` best, best first: ended ones first, then by distance, score, length and token ids."""
    return sorted(hypotheses, key=lambda h: (not h.ended, h.distance, -h.score, len(h.tokens), h.tokens))[:nbest]
