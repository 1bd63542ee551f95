"""One output of a search, and the order in which outputs are listed."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from transduce.search.length import LengthRule


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A sequence that a search found.

    tokens: without the start token; with the end token when it ended.
    log_probability: natural logarithm of the model's probability of `tokens`, the sum over all of them.
    score: `log_probability` after the length rule, and the coverage penalty; what hypotheses are ranked by.
    token_log_probabilities: one for every token, the model's own: temperature and filters do not change them.
    ended: False when the length limit came before the end token.
    distance: of an output that did not end, how far it is from the phrases that must appear (`Constraint.distance`).
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
    """The hypothesis of at least one token; its sum is rounded once, so all searches agree on it.

    penalty: added to the score; see `transduce.search.coverage`.
    """
    total = math.fsum(token_log_probabilities)
    score = length.normalised(total, len(tokens)) + penalty
    return Hypothesis(tuple(tokens), total, score, tuple(token_log_probabilities), ended, distance)


def rank(hypotheses: Iterable[Hypothesis], nbest: int) -> list[Hypothesis]:
    """The `nbest` best, best first: ended before unended, what lacks least, by score, the shorter, the lower ids."""
    return sorted(hypotheses, key=lambda h: (not h.ended, h.distance, -h.score, len(h.tokens), h.tokens))[:nbest]
