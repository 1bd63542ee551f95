"""What the alignment means, in plain words."""

import numpy as np

from transduce.doctor.alignment import Alignment, Stretch
from transduce.doctor.association import SEEN_AT_LEAST
from transduce.doctor.report import Finding, Severity, plural
from transduce.doctor.scan import ScannedSide

FEWEST_TO_WONDER = 1_000  # lines from which it is strange that nothing could be learned
FEWEST_WORDS = 50  # different words of a side from which on it is: digits or labels go with many lines
MOSTLY = 0.1  # share of the lines that match nothing from which it is an error


def check_alignment(source: ScannedSide, target: ScannedSide, alignment: Alignment) -> list[Finding]:
    """Unequal line counts, shifts, stretches that match nothing, and whether this could be judged at all."""
    return [
        *_unequal(source, target, alignment),
        *_shifts(source, alignment),
        *_lost(source, alignment),
        *_unjudged(source, target, alignment),
    ]


def _unequal(source: ScannedSide, target: ScannedSide, alignment: Alignment) -> list[Finding]:
    extra = len(source) - len(target)
    if not extra:
        return []
    sentence = f"The source has {plural(len(source), 'line')}, the target {plural(len(target), 'line')}."
    lines = [change.row + source.file.first_line for change in alignment.changes]
    if alignment.judged and not alignment.changes:
        longer = "source" if extra > 0 else "target"
        sentence += f" They run parallel to the end of the shorter; the {longer}'s last {abs(extra):,} are extra."
        lines = [min(len(source), len(target)) + source.file.first_line]
    if not alignment.judged:
        sentence += " Where the missing lines are could not be found."
    return [Finding("unequal_counts", Severity.ERROR, sentence, abs(extra), lines)]


def _shifts(source: ScannedSide, alignment: Alignment) -> list[Finding]:
    """One finding for each change of offset; stretches that match nothing in between are told apart."""
    findings, before = list[Finding](), 0
    for part in alignment.stretches:
        if part.offset is not None and part.offset != before:
            findings.append(_shift(source, part, part.offset, before))
            before = part.offset
    return findings


def _shift(source: ScannedSide, part: Stretch, offset: int, before: int) -> Finding:
    first, last = part.first + source.file.first_line, part.last - 1 + source.file.first_line
    missing, gained = offset - before, "target" if offset < before else "source"
    other = "source" if gained == "target" else "target"
    cause = f"{plural(abs(missing), 'line')} missing from the {gained}, or too many in the {other}, there"
    if offset == 0:
        sentence = f"From about line {first:,} to line {last:,} the sides run parallel again ({cause})."
        return Finding("shift_ends", Severity.WARNING, sentence, part.last - part.first, [first])
    sentence = (
        f"From about line {first:,} to line {last:,} the sides are shifted by {offset:+,}: "
        f"source line {first:,} belongs to target line {first + offset:,} ({cause})."
    )
    return Finding("shift", Severity.ERROR, sentence, part.last - part.first, [first])


def _lost(source: ScannedSide, alignment: Alignment) -> list[Finding]:
    parts = [part for part in alignment.stretches if part.offset is None]
    total = sum(part.last - part.first for part in parts)
    if not parts:
        return []
    first_line = source.file.first_line
    named = ", ".join(f"{part.first + first_line:,}-{part.last - 1 + first_line:,}" for part in parts[:5])
    more = ", ..." if len(parts) > 5 else ""
    sentence = f"{plural(total, 'source line')} without a matching target line nearby (lines {named}{more})."
    severity = Severity.ERROR if total > MOSTLY * len(source) else Severity.WARNING
    return [Finding("unmatched", severity, sentence, total, [part.first + first_line for part in parts[:10]])]


def _unjudged(source: ScannedSide, target: ScannedSide, alignment: Alignment) -> list[Finding]:
    if alignment.judged:
        return []
    lines = min(len(source), len(target))
    if lines < FEWEST_TO_WONDER:
        sentence = f"Too few lines ({lines:,}) to tell from the text alone whether the sides are shifted."
        return [Finding("alignment_unjudged", Severity.NOTE, sentence, lines)]
    for role, side in (("source", source), ("target", target)):
        different = int(np.count_nonzero(side.words.lines_with() >= SEEN_AT_LEAST))
        if different < FEWEST_WORDS:
            sentence = f"The {role} has so few different words ({different:,}) that shifted sides could not be told."
            return [Finding("alignment_unjudged", Severity.NOTE, sentence, lines)]
    sentence = (
        "No word of one side goes with any word of the other: the two files look unrelated, or their lines "
        "are in different orders."
    )
    return [Finding("alignment_unjudged", Severity.WARNING, sentence, lines)]
