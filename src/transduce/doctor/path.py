"""The likeliest way through a corpus: at which offset each source line finds its partner, if it finds one.

Viterbi's algorithm with a fixed price for changing offset; the place of a change is then known to within the
lines whose evidence does not tell.

Shape letters: L source lines, S states (one per offset, and last of all LOST).
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from transduce.doctor.alignment import Change, Stretch
from transduce.doctor.evidence import Evidence

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

PRICE_OF_CHANGE = 30.0  # nats of evidence that a change of offset must bring
PRICE_OF_START = 15.0  # for beginning at another offset than 0
PRICE_OF_LOSS = 60.0  # for saying that the lines match at no offset tried
DOUBT = 5.0  # nats: places this much less likely than the best are still possible
STANDARD_ERRORS = 4.0  # above strangers, from which a stretch is not lost,
SHARE_OF_GAIN = 1 / 6  # if it also gains this share of what its neighbours gain
REACH = 500  # lines looked at on either side of a change


def likeliest_states(evidence_LS: Floats, start_price_S: Floats, change_price_S: Floats) -> Rows:
    """The state of each line on the path that gathers most evidence, less what its changes cost."""
    lines, states = evidence_LS.shape
    changed_LS = np.zeros((lines, states), np.bool_)
    best_L = np.zeros(lines, np.int64)
    score_S = evidence_LS[0] - start_price_S
    for line in range(1, lines):
        best_L[line] = best = int(score_S.argmax())
        by_change_S = score_S[best] - change_price_S
        np.greater(by_change_S, score_S, out=changed_LS[line])
        score_S = np.maximum(score_S, by_change_S) + evidence_LS[line]
    return _read_back(changed_LS, best_L, int(score_S.argmax()))


def _read_back(changed_LS: NDArray[np.bool_], best_L: Rows, state: int) -> Rows:
    states_L = np.zeros(len(best_L), np.int64)
    for line in range(len(best_L) - 1, -1, -1):
        states_L[line] = state
        if changed_LS[line, state]:
            state = int(best_L[line])
    return states_L


def stretches(evidence: Evidence) -> list[Stretch]:
    """The corpus cut where the likeliest path changes offset."""
    offsets = evidence.offsets
    lost_L1 = np.zeros((len(evidence.values), 1), np.float32)
    start_S = np.array([PRICE_OF_START * (offset != 0) for offset in offsets] + [PRICE_OF_LOSS])
    change_S = np.array([PRICE_OF_CHANGE] * len(offsets) + [PRICE_OF_LOSS])
    states_L = likeliest_states(np.hstack([evidence.values, lost_L1]), start_S, change_S)
    cuts = [0, *(np.flatnonzero(np.diff(states_L)) + 1).tolist(), len(states_L)]
    meaning: list[int | None] = [*offsets, None]
    parts = [Stretch(a, b, meaning[states_L[a]]) for a, b in pairwise(cuts)]
    return joined([_found_again(evidence, parts, place) for place in range(len(parts))])


def _found_again(evidence: Evidence, parts: list[Stretch], place: int) -> Stretch:
    """A lost stretch is given back to a neighbour's offset if it is more alike there than strangers are.

    So a stretch of poor evidence (one-word sentences, a topic of its own) is not taken for one of strangers.
    """
    part = parts[place]
    if part.offset is not None:
        return part
    for neighbour in parts[max(place - 1, 0) : place + 2]:
        if neighbour.offset is not None:
            here, there = (
                _gain(evidence, part, neighbour.offset),
                _gain(evidence, neighbour, neighbour.offset),
            )
            doubt = STANDARD_ERRORS * float(here.std()) / np.sqrt(len(here))
            if here.mean() > max(doubt, SHARE_OF_GAIN * there.mean()):
                return Stretch(part.first, part.last, neighbour.offset)
    return part


def _gain(evidence: Evidence, part: Stretch, offset: int) -> Floats:
    """How much more alike than strangers the lines of `part` are at `offset`."""
    return (evidence.column(offset) - evidence.strangers)[part.first : part.last]


def joined(parts: list[Stretch]) -> list[Stretch]:
    """Neighbours at the same offset become one stretch."""
    whole: list[Stretch] = []
    for part in parts:
        if whole and whole[-1].offset == part.offset:
            whole[-1] = Stretch(whole[-1].first, part.last, part.offset)
        else:
            whole.append(part)
    return whole


def changes(evidence: Evidence, parts: list[Stretch]) -> list[Change]:
    """Where the offset changes, and how sure the place is."""
    return [_change(evidence, before, after) for before, after in pairwise(parts)]


def _change(evidence: Evidence, before: Stretch, after: Stretch) -> Change:
    first, last = max(before.first, after.first - REACH), min(after.last, after.first + REACH)
    gain_L = evidence.column(before.offset)[first:last] - evidence.column(after.offset)[first:last]
    total = np.concatenate([[0], np.cumsum(gain_L)])
    possible = first + np.flatnonzero(total >= total.max() - DOUBT)
    return Change(after.first, int(possible[0]), int(possible[-1]), before.offset, after.offset)
