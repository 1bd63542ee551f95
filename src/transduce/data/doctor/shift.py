"""Where the two sides of a parallel corpus slip against each other, found from the text alone.

One lost line shifts everything after it; a model trained on the rest learns nothing, and no error is ever seen.
Here word vectors are learned from the corpus itself (`association`), every line is compared with its partner and
with the lines around it (`compare`), likeness and length become log likelihood ratios (`evidence`), and the
likeliest path over offsets (`path`) says where the sides run parallel.

Shape letters: L source lines, S offsets, N probe lines, D dimensions.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.data.doctor.association import embed
from transduce.data.doctor.compare import LEARNED_FROM, Comparison, partners_of
from transduce.data.doctor.evidence import MOST_EVIDENCE, LengthRatio, logistic_regression, separation, weigh
from transduce.data.doctor.path import Change, Stretch, changes, stretches
from transduce.data.doctor.scan import Progress, Side, in_silence

Floats = NDArray[np.float32]

REACH = 5  # offsets tried around 0 and around the difference of the line counts
DECOYS = [41, -37]  # offsets at which lines are taken to be strangers
TRIED_ON = 4_000  # lines at most, while it is unknown at which offset to learn
FEWEST_LINES = 50
CLEAR = 0.5  # d' from which an offset may teach without a look at the others
SIGNIFICANT = 6.0  # standard errors
ROUNDS = 4
FAR_REACH = 5_000  # how far a partner is looked for where no near offset fits
PROBE = 128  # lines of a lost stretch that are looked for elsewhere
FAR_SIGNIFICANT = 8.0  # standard deviations above the other offsets


@dataclass(frozen=True)
class Alignment:
    """How the two sides run against each other.

    Args:
        judged: whether the text gave enough evidence; without it everything is taken to be at offset 0.
        stretches: the whole source, cut where the offset changes.
        changes: those places, with their doubt.
        evidence: mean log likelihood ratio per line along the path, in nats: about 3 for clean captions.
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
                {"first_line": part.first + 1, "last_line": part.last, "offset": part.offset}
                for part in self.stretches
            ],
        }


def align(source: Side, target: Side, progress: Progress = in_silence) -> Alignment:
    """Find the stretches over which line i of `source` belongs to line i + offset of `target`."""
    unjudged = Alignment(False, [Stretch(0, len(source), 0)])
    if min(len(source), len(target)) < FEWEST_LINES:
        return unjudged
    comparison, difference = Comparison(source, target, progress), len(target) - len(source)
    offsets = sorted({centre + k for centre in (0, difference) for k in range(-REACH, REACH + 1)})
    taught_at = teaching_offset(comparison, sorted(offsets, key=lambda k: (min(abs(k), abs(k - difference)), k)))
    if taught_at is None:
        return unjudged
    parts = [Stretch(0, len(source), taught_at)]
    for _ in range(ROUNDS):
        comparison.learn_from(parts)
        taught_by, evidence_LS = parts, evidence(comparison, source, target, offsets, parts)
        parts = stretches(evidence_LS, offsets)
        found = far_offsets(comparison, parts) - set(offsets)
        offsets = sorted({*offsets, *found})
        if parts == taught_by and not found:
            break
    if found:
        offsets = [offset for offset in offsets if offset not in found]
    return Alignment(True, parts, changes(evidence_LS, offsets, parts), _mean(evidence_LS, offsets, parts))


def _mean(evidence_LS: Floats, offsets: list[int], parts: list[Stretch]) -> float:
    sums = [
        float(evidence_LS[part.first : part.last, offsets.index(part.offset)].sum())
        for part in parts
        if part.offset is not None
    ]
    return sum(sums) / len(evidence_LS)


def teaching_offset(comparison: Comparison, offsets: list[int]) -> int | None:
    """The first offset at which clearly enough lines belong together to learn from; None when there is none."""
    blocks, apart = comparison.sample(TRIED_ON), dict[int, float]()
    for offset in offsets:
        comparison.learn_from([Stretch(0, comparison.lines, offset)], TRIED_ON)
        alike_LS = comparison.similarity([offset, *DECOYS], blocks)
        apart[offset] = separation(alike_LS[:, 0], alike_LS[:, 1:].reshape(-1))
        if apart[offset] > CLEAR and _significant(apart[offset], len(alike_LS)):
            return offset
    best = max(apart, key=lambda offset: apart[offset])
    return best if _significant(apart[best], len(comparison.rows_of(blocks))) else None


def _significant(apart: float, lines: int) -> bool:
    return apart * float(np.sqrt(lines / 2)) > SIGNIFICANT


def evidence(
    comparison: Comparison, source: Side, target: Side, offsets: list[int], parts: list[Stretch]
) -> Floats:
    """(L, S) log likelihood ratios of "translations" to "strangers", if what `parts` puts together is translations."""
    every = np.arange(len(source))
    alike_LS = comparison.similarity([*offsets, *DECOYS])
    paired, partners = partners_of(every, parts, len(target))
    lengths = LengthRatio.of(source.length, target.length, paired, partners)
    features = {
        offset: weigh(alike_LS[:, column], lengths.deviation(every, every + offset))
        for column, offset in enumerate([*offsets, *DECOYS])
    }
    step = max(len(paired) // LEARNED_FROM, 1)
    learned = paired[::step]
    true_NF = np.empty((len(learned), 3))
    for offset in set((partners - paired).tolist()):
        at_offset = (partners - paired)[::step] == offset
        true_NF[at_offset] = features[offset][learned[at_offset]]
    false_NF = np.concatenate([features[decoy][::step] for decoy in DECOYS])
    weights_F = logistic_regression(_complete(true_NF), _complete(false_NF))
    evidence_LS = np.stack([features[offset] @ weights_F for offset in offsets], axis=1)
    return np.clip(np.nan_to_num(evidence_LS), -MOST_EVIDENCE, MOST_EVIDENCE).astype(np.float32)


def _complete(features_NF: NDArray[np.float64]) -> NDArray[np.float64]:
    return features_NF[~np.isnan(features_NF).any(axis=1)]


def far_offsets(comparison: Comparison, parts: list[Stretch]) -> set[int]:
    """Offsets, as far as 5,000 lines away, at which the stretches that match nowhere find partners after all."""
    found = set[int]()
    for part in parts:
        if part.offset is None:
            found |= _far_offset(comparison, part)
    return found


def _far_offset(comparison: Comparison, part: Stretch) -> set[int]:
    words = comparison.learned[0]
    first = max((part.first + part.last - PROBE) // 2, part.first)
    probe_ND = embed(comparison.source, words.source_VD, first, min(first + PROBE, part.last))
    start = max(first - FAR_REACH, 0)
    window_MD = embed(
        comparison.target, words.target_WD, start, min(first + len(probe_ND) + FAR_REACH, len(comparison.target))
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
