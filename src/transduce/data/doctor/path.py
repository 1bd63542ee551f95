"""The likeliest way through a corpus: at which offset each source line finds its partner, or that it finds none.

Viterbi's algorithm with a fixed price for changing offset; the place of a change is then known to within the
lines whose evidence does not tell.

Shape letters: L source lines, S states (one per offset, and last of all LOST).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

PRICE_OF_CHANGE = 15.0  # nats of evidence that a change of offset must bring
PRICE_OF_START = 8.0  # for beginning at another offset than 0
PRICE_OF_LOSS = 40.0  # for saying that the lines match at no offset tried
DOUBT = 5.0  # nats: places this much less likely than the best are still possible
REACH = 500  # lines looked at on either side of a change


@dataclass(frozen=True)
class Stretch:
    """Source rows `first` to `last` (exclusive) belong to the target rows `offset` further on; None: to none."""

    first: int
    last: int
    offset: int | None

    def __len__(self) -> int:
        return self.last - self.first


@dataclass(frozen=True)
class Change:
    """Between `earliest` and `latest` (source rows, most likely `row`) the offset goes from `before` to `after`."""

    row: int
    earliest: int
    latest: int
    before: int | None
    after: int | None


def likeliest_states(evidence_LS: Floats, start_price_S: Floats, change_price_S: Floats) -> Rows:
    """The state of each line on the path that gathers most evidence, less what its changes cost."""
    lines, states = evidence_LS.shape
    changed_LS = np.zeros((lines, states), np.bool_)
    best_L = np.zeros(lines, np.int64)
    score_S = -start_price_S.astype(np.float64)
    for line in range(lines):
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


def stretches(evidence_LS: Floats, offsets: list[int]) -> list[Stretch]:
    """The corpus cut where the likeliest path changes offset. `evidence_LS` has one column per offset."""
    lost_L1 = np.zeros((len(evidence_LS), 1), np.float32)
    start = np.array([PRICE_OF_START * (offset != 0) for offset in offsets] + [PRICE_OF_LOSS])
    change = np.array([PRICE_OF_CHANGE] * len(offsets) + [PRICE_OF_LOSS])
    states_L = likeliest_states(np.hstack([evidence_LS, lost_L1]), start, change)
    cuts = [0, *(np.flatnonzero(np.diff(states_L)) + 1).tolist(), len(states_L)]
    meaning: list[int | None] = [*offsets, None]
    return [Stretch(a, b, meaning[states_L[a]]) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]


def changes(evidence_LS: Floats, offsets: list[int], parts: list[Stretch]) -> list[Change]:
    """Where the offset changes, and how sure the place is."""
    return [_change(evidence_LS, offsets, before, after) for before, after in zip(parts, parts[1:], strict=False)]


def _change(evidence_LS: Floats, offsets: list[int], before: Stretch, after: Stretch) -> Change:
    first, last = max(before.first, after.first - REACH), min(after.last, after.first + REACH)
    gain_L = _column(evidence_LS, offsets, before) - _column(evidence_LS, offsets, after)
    total = np.concatenate([[0], np.cumsum(gain_L[first:last])])
    possible = first + np.flatnonzero(total >= total.max() - DOUBT)
    return Change(after.first, int(possible[0]), int(possible[-1]), before.offset, after.offset)


def _column(evidence_LS: Floats, offsets: list[int], part: Stretch) -> Floats:
    if part.offset is None:
        return np.zeros(len(evidence_LS), np.float32)
    return evidence_LS[:, offsets.index(part.offset)]
