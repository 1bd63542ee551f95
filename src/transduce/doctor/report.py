"""What the doctor found: findings in plain words, counted, with line numbers, ready for JSON."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.doctor.alignment import AlignedPairs, Alignment
from transduce.doctor.lines import ScannedFile

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]

LINES_NAMED = 10


class Severity(StrEnum):
    """`error`: training on this would be wrong. `warning`: look at it. `note`: good to know."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing found.

    Args:
        kind: a short stable name, such as `shift` or `empty_one_side`.
        severity: how bad it is.
        sentence: what was found, in plain words.
        count: how many lines or pairs it concerns.
        lines: the first line numbers, from 1, in the file that plays the role `side`.
        side: `source`, `target`, `text`, `test source`, or `pair` (lines are then the source's).
        examples: the text of the first few lines, characters that cannot be seen escaped.
    """

    kind: str
    severity: Severity
    sentence: str
    count: int
    lines: list[int] = field(default_factory=list)
    side: str = "pair"
    examples: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "severity": self.severity.value,
            "sentence": self.sentence,
            "count": self.count,
            "lines": self.lines,
            "side": self.side,
            "examples": self.examples,
        }


@dataclass(frozen=True)
class Report:
    """The whole examination.

    Args:
        files: what was examined, by role (`source`, `target`, `text`, `test source`, `test target`; of
            several test sets `test NAME source`).
        lines: how many lines each of them has.
        findings: worst first.
        alignment: the stretches over which the two sides run parallel; None for a single file.
        pairs: the rows that belong together, any shift mended; None for a single file.
        drop: for each reason why `clean` would leave a pair out, which pairs those are.
        swapped: which pairs have exchanged sides, which `clean` puts right; None for a single file.
        unit: what `lines` counts, in a word.
        not_looked_for: what needs a library that is not installed, and how to install it.
    """

    files: dict[str, ScannedFile]
    lines: dict[str, int]
    findings: list[Finding]
    alignment: Alignment | None = None
    pairs: AlignedPairs | None = None
    drop: dict[str, Mask] = field(default_factory=dict)
    swapped: Mask | None = None
    unit: str = "line"
    not_looked_for: list[str] = field(default_factory=list)

    @property
    def has_errors(self) -> bool:
        """Whether anything of severity `error` was found."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def of_kind(self, kind: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.kind == kind]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: files, line counts, findings, and how many pairs `clean` would drop for each reason."""
        return {
            "files": {role: str(file) for role, file in self.files.items()},
            "lines": self.lines,
            "findings": [finding.to_dict() for finding in self.findings],
            "alignment": self.alignment.to_dict() if self.alignment else None,
            "not_looked_for": self.not_looked_for,
            "would_drop": {reason: int(mask.sum()) for reason, mask in self.drop.items()},
        }


def worst_first(findings: list[Finding]) -> list[Finding]:
    """Errors, then warnings, then notes; otherwise in the order found."""
    order = list(Severity)
    return sorted(findings, key=lambda finding: order.index(finding.severity))


def about_rows(
    kind: str, severity: Severity, sentence: str, rows: Rows, *, side: str, first_line: int
) -> list[Finding]:
    """One finding about `rows`, or none when there are no rows.

    `{lines}` and `{pairs}` in the sentence become their number: `1 line`, `29,000 pairs`.
    """
    if not len(rows):
        return []
    said = sentence.format(lines=plural(len(rows), "line"), pairs=plural(len(rows), "pair"))
    lines = [int(row) + first_line for row in rows[:LINES_NAMED]]
    return [Finding(kind, severity, said, len(rows), lines, side)]


def plural(count: int, one: str) -> str:
    """`1 line`, `2 lines`, `29,000 lines`."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"
