"""How two sides run against each other: the words in which the shift detector answers."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Stretch:
    """Source rows `first` to `last` (exclusive) belong to target rows `offset` further on; None: to none."""

    first: int
    last: int
    offset: int | None


@dataclass(frozen=True)
class Change:
    """At source row `row`, surely from `earliest` to `latest`, the offset goes from `before` to `after`."""

    row: int
    earliest: int
    latest: int
    before: int | None
    after: int | None


@dataclass(frozen=True)
class Alignment:
    """The whole source, cut where the offset changes.

    Args:
        judged: whether the text gave enough evidence; without it everything is taken to be at offset 0.
        stretches: the parts, in order.
        changes: the places between them, with their doubt.
        evidence: mean log likelihood ratio per line along the path, in nats: about 3.6 for clean captions.
    """

    judged: bool
    stretches: list[Stretch]
    changes: list[Change] = field(default_factory=list)
    evidence: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; lines count from 1, the last one is included."""
        return {
            "judged": self.judged,
            "evidence_per_line": round(self.evidence, 3),
            "stretches": [
                {"first_line": part.first + 1, "last_line": part.last, "offset": part.offset} for part in self.stretches
            ],
        }


@dataclass(frozen=True)
class AlignedPairs:
    """Which source row belongs to which target row; rows count from 0."""

    source_rows: Rows
    target_rows: Rows

    def __len__(self) -> int:
        return len(self.source_rows)


def partners_of(rows: Rows, parts: list[Stretch], target_lines: int) -> AlignedPairs:
    """Those of `rows` that have a partner according to `parts`, with their partners."""
    starts = np.array([part.first for part in parts])
    part_of_row = np.searchsorted(starts, rows, side="right") - 1
    offsets = np.array([part.offset or 0 for part in parts], np.int64)[part_of_row]
    lost = np.array([part.offset is None for part in parts])[part_of_row]
    partners = rows + offsets
    kept = ~lost & (partners >= 0) & (partners < target_lines)
    return AlignedPairs(rows[kept], partners[kept])


def mended(alignment: Alignment, source_lines: int, target_lines: int) -> AlignedPairs:
    """The pairs that surely belong together: the lines around each change of offset are left out.

    One line more than the doubt is left out on both sides, since the unmatched line itself is among them;
    so are pairs that would use a target line twice.
    """
    pairs = partners_of(np.arange(source_lines), alignment.stretches, target_lines)
    sure = np.ones(source_lines, np.bool_)
    for change in alignment.changes:
        sure[max(change.earliest - 1, 0) : change.latest + 1] = False
    before = np.maximum.accumulate(np.concatenate([[-1], pairs.target_rows[:-1]]))
    kept = sure[pairs.source_rows] & (pairs.target_rows > before)
    return AlignedPairs(pairs.source_rows[kept], pairs.target_rows[kept])
