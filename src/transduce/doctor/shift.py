"""Where the two sides of a parallel corpus slip against each other, found from the text alone.

One lost line shifts everything after it; a model trained on the rest learns nothing, and no error is seen.
Here word vectors are learned from the corpus itself (`association`), every line is compared with its partner
and with the lines around it (`compare`), likeness and length become log likelihood ratios (`evidence`), and
the likeliest path over offsets (`path`) says where the sides run parallel.

The likeliest way through a corpus: at which offset each source line finds its partner, if it finds one.

Viterbi's algorithm with a fixed price for changing offset; the place of a change is then known to within the
lines whose evidence does not tell.

Shape letters: N probe lines, M lines of the target, D dimensions, L source lines, S states (one per offset, and last of
all LOST).
"""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from transduce.doctor.alignment import Alignment, Change, Stretch
from transduce.doctor.association import SEEN_AT_LEAST, embed
from transduce.doctor.compare import Comparison
from transduce.doctor.evidence import DECOYS, Evidence, gather, separation
from transduce.doctor.report import LINES_NAMED, Finding, Severity, plural
from transduce.doctor.scan import Progress, ScannedSide, in_silence

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

PRICE_OF_CHANGE = 30.0  # nats of evidence that a change of offset must bring
PRICE_OF_START = 15.0  # for beginning at another offset than 0
PRICE_OF_LOSS = 60.0  # for saying that the lines match at no offset tried
DOUBT = 5.0  # nats: places this much less likely than the best are still possible
STANDARD_ERRORS = 4.0  # above strangers, from which a stretch is not lost,
SHARE_OF_GAIN = 1 / 6  # if it also gains this share of what its neighbours gain
CHANGE_REACH = 500  # lines looked at on either side of a change

FEWEST_TO_WONDER = 1_000  # lines from which it is strange that nothing could be learned
FEWEST_WORDS = 50  # different words of a side from which on it is: digits or labels go with many lines
SAME_LENGTH = 0.1  # nats by which lines vary in length, of less it says nothing
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


def _significant(difference: float, lines: int) -> bool:
    return difference * float(np.sqrt(lines / 2)) > SIGNIFICANT


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
    if lengths_differ(source, target):
        sentence += " Nor does the length of one go with that of the other."
        first = source.file.first_line
        return [Finding("unrelated", Severity.ERROR, sentence, lines, [first + row for row in range(LINES_NAMED)])]
    return [Finding("alignment_unjudged", Severity.WARNING, sentence, lines)]


def lengths_differ(source: ScannedSide, target: ScannedSide) -> bool:
    """Whether lines vary in length, and long ones do not stand beside long ones, as translations do."""
    lines = min(len(source), len(target))
    lengths = [np.log(side.length[:lines] + 1.0) for side in (source, target)]
    if min(each.std() for each in lengths) < SAME_LENGTH:
        return False
    return abs(float(np.corrcoef(lengths)[0, 1])) < SIGNIFICANT / np.sqrt(lines)


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
    first, last = max(before.first, after.first - CHANGE_REACH), min(after.last, after.first + CHANGE_REACH)
    gain_L = evidence.column(before.offset)[first:last] - evidence.column(after.offset)[first:last]
    total = np.concatenate([[0], np.cumsum(gain_L)])
    possible = first + np.flatnonzero(total >= total.max() - DOUBT)
    return Change(after.first, int(possible[0]), int(possible[-1]), before.offset, after.offset)
