"""From likeness to evidence: log likelihood ratios of "translations of one another" to "strangers", in nats.

Two features tell: the cosine of the lines' vectors, and how far the ratio of their lengths is from the usual
one (Gale and Church 1993). A logistic regression of true pairs against decoys weighs them; with both classes
given the same weight its logit is the log likelihood ratio.

Shape letters: L source lines, N pairs, S offsets, F features.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transduce.doctor.alignment import AlignedPairs, Stretch, partners_of
from transduce.doctor.compare import LEARNED_FROM, Comparison
from transduce.doctor.scan import ScannedSide

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

DECOYS = [41, -37]  # offsets at which lines are taken to be strangers
MOST_EVIDENCE = 4.0  # nats that one line may count, so that one free translation proves nothing
MOST_DEVIATION = 3.0  # standard deviations
RIDGE = 1e-2
NEWTON_STEPS = 12


@dataclass(frozen=True)
class LengthRatio:
    """The usual log ratio of target to source length."""

    source_log: Floats
    target_log: Floats
    middle: float
    spread: float

    @classmethod
    def of(cls, source: NDArray[np.int32], target: NDArray[np.int32], pairs: AlignedPairs) -> "LengthRatio":
        """Learn it from lines that belong together: median, and median absolute deviation as sigma."""
        source_log, target_log = np.log(source + 5.0), np.log(target + 5.0)
        ratio = target_log[pairs.target_rows] - source_log[pairs.source_rows]
        middle = float(np.median(ratio))
        return cls(source_log, target_log, middle, 1.4826 * float(np.median(abs(ratio - middle))) + 0.05)

    def deviation(self, rows: Rows, partners: Rows) -> Floats:
        """Squared standard deviations from the usual ratio, at most 9; no partner counts as usual."""
        within = (partners >= 0) & (partners < len(self.target_log))
        ratio = self.target_log[np.where(within, partners, 0)] - self.source_log[rows]
        sigmas = np.where(within, (ratio - self.middle) / self.spread, 0.0)
        return np.square(np.minimum(np.abs(sigmas), MOST_DEVIATION))


@dataclass(frozen=True)
class Evidence:
    """(L, S) nats for "line i and line i + offset are translations", and the same for strangers nearby."""

    offsets: list[int]
    values: NDArray[np.float32]
    strangers: NDArray[np.float32]

    def column(self, offset: int | None) -> NDArray[np.float32]:
        """The evidence of every line for one offset; none for "at no offset"."""
        if offset is None:
            return np.zeros(len(self.values), np.float32)
        return self.values[:, self.offsets.index(offset)]


def gather(
    comparison: Comparison, source: ScannedSide, target: ScannedSide, offsets: list[int], parts: list[Stretch]
) -> Evidence:
    """Weigh every line at every offset, with what `parts` puts together taken for translations."""
    every = np.arange(len(source))
    pairs = partners_of(every, parts, len(target))
    lengths = LengthRatio.of(source.length, target.length, pairs)
    features = {
        offset: features_of(cosine_L, lengths.deviation(every, every + offset))
        for offset, cosine_L in comparison.similarity([*offsets, *DECOYS]).items()
    }
    step = max(len(pairs) // LEARNED_FROM, 1)
    true_NF = _of_pairs(features, pairs.source_rows[::step], pairs.target_rows[::step])
    false_NF = np.concatenate([features[decoy][::step] for decoy in DECOYS])
    weights_F = logistic_regression(_complete(true_NF), _complete(false_NF))
    values = {offset: _in_bounds(features_LF @ weights_F) for offset, features_LF in features.items()}
    values_LS = np.stack([values[offset] for offset in offsets], axis=1)
    return Evidence(offsets, values_LS, np.mean([values[decoy] for decoy in DECOYS], axis=0))


def features_of(cosine_L: NDArray[np.float32], deviation_L: Floats) -> NDArray[np.float32]:
    """(L, F) features: constant, cosine, length deviation."""
    return np.stack([np.ones(len(cosine_L)), cosine_L, deviation_L], axis=1).astype(np.float32)


def _of_pairs(features: dict[int, NDArray[np.float32]], rows: Rows, partners: Rows) -> NDArray[np.float32]:
    shift_N = partners - rows
    return np.concatenate([features[int(offset)][rows[shift_N == offset]] for offset in np.unique(shift_N)])


def _complete(features_NF: NDArray[np.float32]) -> Floats:
    return features_NF[~np.isnan(features_NF).any(axis=1)].astype(np.float64)


def _in_bounds(nats_L: Floats) -> NDArray[np.float32]:
    return np.clip(np.nan_to_num(nats_L), -MOST_EVIDENCE, MOST_EVIDENCE).astype(np.float32)


def logistic_regression(true_NF: Floats, false_NF: Floats) -> Floats:
    """Weights whose logit is the log likelihood ratio: Newton's method, both classes of the same weight."""
    features_NF = np.concatenate([true_NF, false_NF])
    wanted_N = np.repeat([1.0, 0.0], [len(true_NF), len(false_NF)])
    class_weight_N = np.where(wanted_N > 0, 0.5 / max(len(true_NF), 1), 0.5 / max(len(false_NF), 1))
    class_weight_N *= len(features_NF)
    weights_F = np.zeros(features_NF.shape[1])
    for _ in range(NEWTON_STEPS):
        chance_N = 1 / (1 + np.exp(-np.clip(features_NF @ weights_F, -30, 30)))
        slope_F = features_NF.T @ (class_weight_N * (wanted_N - chance_N)) - RIDGE * weights_F
        curve_N = class_weight_N * chance_N * (1 - chance_N)
        curve_FF = (features_NF * curve_N[:, None]).T @ features_NF + RIDGE * np.eye(len(weights_F))
        weights_F = weights_F + np.linalg.solve(curve_FF, slope_F)
    return weights_F


def separation(true_N: NDArray[np.float32], false_N: NDArray[np.float32]) -> float:
    """d': how many standard deviations true pairs are more alike than decoys; 0 when there are too few."""
    true_N, false_N = true_N[~np.isnan(true_N)], false_N[~np.isnan(false_N)]
    if min(len(true_N), len(false_N)) < 10:
        return 0.0
    spread = np.sqrt((true_N.var() + false_N.var()) / 2)
    return float((true_N.mean() - false_N.mean()) / max(float(spread), 1e-9))
