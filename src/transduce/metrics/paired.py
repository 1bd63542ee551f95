"""The paired bootstrap: whether system B is better than system A, and how certain that is.

Both systems are scored on the same resampled sentences, so that what makes a test set easy or hard cancels out.
Source: Koehn 2004, Statistical significance tests for machine translation evaluation, section 4.

Where a system was trained several times (seeds), its figure is the mean over its trainings, and every resample also
draws among the trainings: the interval then covers the variation between seeds as well as between sentences.

Shapes: S sentences, N counts a sentence, R resamples, K systems.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.metrics.bootstrap import LEVEL, RESAMPLES, SEED
from transduce.metrics.tally import Tally


@dataclass(frozen=True)
class Difference:
    """The difference between the second system and the first.

    Args:
        value: its figure minus the first one's.
        interval: where the middle `LEVEL` of the resampled differences lie; None below two sentences.
        p_value: how often chance alone would give a difference this large, either way, if there were none:
            resampled differences are moved to a mean of 0 and counted, plus one over plus one.
        wins: the share of resamples in which the second one is better (Koehn's "statistical significance").
        better: "first", "second", or "" where p is not below 1 - `LEVEL`.
        lower_is_better: of the figure: then the better system's difference is below 0.
    """

    value: float
    interval: tuple[float, float] | None
    p_value: float | None
    wins: float | None
    better: str
    lower_is_better: bool = False

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        interval = None if self.interval is None else list(self.interval)
        return {**vars(self), "interval": interval, "resamples": RESAMPLES, "seed": SEED, "test": "paired bootstrap"}


def paired_bootstrap(
    first: Sequence[Tally] | Tally, second: Sequence[Tally] | Tally, *, resamples: int = RESAMPLES, seed: int = SEED
) -> Difference:
    """The difference between two systems, each given by one tally or by one for each of its trainings.

    Raises:
        InputError: the tallies are of different sentences or of different metrics.
    """
    one, other = _listed(first), _listed(second)
    _check_same(one + other)
    value = _mean(other) - _mean(one)
    if len(one[0].statistics_SN) < 2:
        return Difference(value, None, None, None, "", one[0].lower_is_better)
    figures_RK = _resampled([one, other], resamples, seed)
    return _judged(value, figures_RK[:, 1] - figures_RK[:, 0], one[0].lower_is_better)


def mean_interval(
    system: Sequence[Tally], *, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[float, float] | None:
    """The bootstrap interval of a system's mean figure over its trainings; None below two sentences."""
    if len(system[0].statistics_SN) < 2:
        return None
    low, high = np.quantile(_resampled([system], resamples, seed), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _judged(value: float, differences_R: NDArray[np.float64], lower_is_better: bool) -> Difference:
    low, high = np.quantile(differences_R, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    # Differences that are equal but for rounding (a system against itself) are no more extreme than one another.
    extreme = np.abs(differences_R - differences_R.mean()) >= abs(value) - 1e-9
    p_value = (int(extreme.sum()) + 1) / (len(differences_R) + 1)
    gains_R = -differences_R if lower_is_better else differences_R
    gain = -value if lower_is_better else value
    better = "" if p_value >= 1 - LEVEL else "second" if gain > 0 else "first"
    wins = float((gains_R > 0).mean())
    return Difference(value, (float(low), float(high)), p_value, wins, better, lower_is_better)


def _resampled(systems: Sequence[Sequence[Tally]], resamples: int, seed: int) -> NDArray[np.float64]:
    """(R, K): the mean figure of each of the K systems, in every resample on the same sentences."""
    sentences = len(systems[0][0].statistics_SN)
    generator = np.random.default_rng(seed)
    figures = []
    for _ in range(resamples):
        rows_S = generator.integers(0, sentences, sentences)
        figures.append([_drawn_mean(system, rows_S, generator) for system in systems])
    return np.array(figures)


def _drawn_mean(system: Sequence[Tally], rows_S: NDArray[np.int64], generator: np.random.Generator) -> float:
    chosen = generator.integers(0, len(system), len(system)) if len(system) > 1 else [0]
    return float(np.mean([system[w].aggregate(system[w].statistics_SN[rows_S].sum(axis=0)) for w in chosen]))


def _mean(system: Sequence[Tally]) -> float:
    return float(np.mean([tally.value for tally in system]))


def _listed(system: Sequence[Tally] | Tally) -> list[Tally]:
    return [system] if isinstance(system, Tally) else list(system)


def _check_same(tallies: Sequence[Tally]) -> None:
    signatures = sorted({tally.signature for tally in tallies})
    if len(signatures) > 1:
        raise InputError(f"scores with different signatures cannot be compared: {' and '.join(signatures)}.")
    counts = sorted({len(tally.statistics_SN) for tally in tallies})
    if len(counts) > 1:
        raise InputError(
            f"systems must be compared on the same sentences; these have {' and '.join(map(str, counts))} sentences."
        )
