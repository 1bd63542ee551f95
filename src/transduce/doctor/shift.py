"""Where the two sides of a parallel corpus slip against each other, found from the text alone.

One lost line shifts everything after it; a model trained on the rest learns nothing, and no error is seen.
Here word vectors are learned from the corpus itself (`association`), every line is compared with its partner
and with the lines around it (`compare`), likeness and length become log likelihood ratios (`evidence`), and
the likeliest path over offsets (`path`) says where the sides run parallel.

Shape letters: N probe lines, M lines of the target, D dimensions.
"""

import numpy as np

from transduce.doctor.alignment import Alignment, Stretch
from transduce.doctor.association import embed
from transduce.doctor.compare import Comparison
from transduce.doctor.evidence import DECOYS, Evidence, gather, separation
from transduce.doctor.path import changes, stretches
from transduce.doctor.scan import Progress, ScannedSide, in_silence

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
