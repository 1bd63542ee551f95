"""Where the two sides of a parallel corpus slip against each other, found from the text alone.

One lost line shifts everything after it; a model trained on the rest learns nothing, and no error is seen.
Here word vectors are learned from the corpus itself (`association`), every line is compared with its partner
and with the lines around it (`compare`), likeness and length become log likelihood ratios (`evidence`), and
the likeliest path over offsets (`path`) says where the sides run parallel.

Shape letters: N probe lines, M lines of the target, D dimensions.
"""

import numpy as np

from transduce.doctor.alignment import Alignment, Stretch
from transduce.doctor.association import SEEN_AT_LEAST, embed
from transduce.doctor.compare import Comparison
from transduce.doctor.evidence import DECOYS, Evidence, gather, separation
from transduce.doctor.path import changes, stretches
from transduce.doctor.report import Finding, Severity, plural
from transduce.doctor.scan import Progress, ScannedSide, in_silence

FEWEST_TO_WONDER = 1_000  # lines from which it is strange that nothing could be learned
FEWEST_WORDS = 50  # different words of a side from which on it is: digits or labels go with many lines
MOSTLY = 0.1  # share of the lines that match nothing from which it is an error

REACH = 5  # offsets tried around 0 and around the difference of the line counts
TRIED_ON = 4_000  # lines at most, while it is unknown at which offset to learn
FEWEST_LINES = 50
CLEAR = 0.5  # d' from which an offset may teach without a look at the others
SIGNIFICANT = 6.0  # standard errors
ROUNDS = 4
FAR_REACH = 5_000  # how far a partner is looked for where no near offset fits
PROBE = 128  # lines of a lost stretch that are looked for elsewhere
FAR_SIGNIFICANT = 8.0  # standard deviations above the other offsets


def align(source: ScannedSide, target: ScannedSide, progress: Progress = in_silence) -> Alignment:
    """Find the stretches over which line i of `source` belongs to line i + offset of `target`."""
    unjudged = Alignment(False, [Stretch(0, len(source), 0)])
    if min(len(source), len(target)) < FEWEST_LINES:
        return unjudged
    comparison, offsets = Comparison(source, target, progress), near_offsets(len(target) - len(source))
    taught_at = teaching_offset(comparison, offsets)
    if taught_at is None:
        return unjudged
    parts = [Stretch(0, len(source), taught_at)]
    for _ in range(ROUNDS):
        comparison.learn_from(parts)
        evidence = gather(comparison, source, target, offsets, parts)
        taught_by, parts = parts, stretches(evidence)
        found = far_offsets(comparison, parts) - set(offsets)
        if parts == taught_by and not found:
            break
        offsets = [*offsets, *sorted(found)]
    return Alignment(True, parts, changes(evidence, parts), _mean(evidence, parts))


def near_offsets(difference: int) -> list[int]:
    """Offsets around 0 and around the difference of the line counts; the likeliest first."""
    offsets = {centre + k for centre in (0, difference) for k in range(-REACH, REACH + 1)}
    return sorted(offsets, key=lambda k: (min(abs(k), abs(k - difference)), abs(k), k))


def _mean(evidence: Evidence, parts: list[Stretch]) -> float:
    sums = [float(evidence.column(part.offset)[part.first : part.last].sum()) for part in parts]
    return sum(sums) / parts[-1].last


def teaching_offset(comparison: Comparison, offsets: list[int]) -> int | None:
    """The first offset at which clearly enough lines belong together to learn from; None without one."""
    blocks, apart = comparison.sample(TRIED_ON), dict[int, float]()
    for offset in offsets:
        comparison.learn_from([Stretch(0, comparison.lines, offset)], TRIED_ON)
        alike = comparison.similarity([offset, *DECOYS], blocks)
        apart[offset] = separation(alike[offset], np.concatenate([alike[decoy] for decoy in DECOYS]))
        if apart[offset] > CLEAR and _significant(apart[offset], len(alike[offset])):
            return offset
    best = max(apart, key=lambda offset: apart[offset])
    return best if _significant(apart[best], len(comparison.rows_of(blocks))) else None


def _significant(apart: float, lines: int) -> bool:
    return apart * float(np.sqrt(lines / 2)) > SIGNIFICANT


def far_offsets(comparison: Comparison, parts: list[Stretch]) -> set[int]:
    """Offsets, as far as 5,000 lines away, at which stretches that match nowhere find partners after all."""
    found = set[int]()
    for part in parts:
        if part.offset is None:
            found |= _far_offset(comparison, part)
    return found


def _far_offset(comparison: Comparison, part: Stretch) -> set[int]:
    words = comparison.learned[0]
    first = max((part.first + part.last - PROBE) // 2, part.first)
    probe_ND = embed(comparison.source, words.source_vectors, first, min(first + PROBE, part.last))
    start = max(first - FAR_REACH, 0)
    window_MD = embed(
        comparison.target,
        words.target_vectors,
        start,
        min(first + len(probe_ND) + FAR_REACH, len(comparison.target)),
    )
    shifts = len(window_MD) - len(probe_ND) + 1
    if shifts < PROBE:
        return set()
    total = np.zeros(shifts)
    for line, alike in enumerate(probe_ND @ window_MD.T):
        total += alike[line : line + shifts]
    heights = (total - total.mean()) / (total.std() + 1e-9)
    best = int(heights.argmax())
    return {start + best - first} if heights[best] > FAR_SIGNIFICANT else set()


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
