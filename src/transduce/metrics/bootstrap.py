"""The percentile bootstrap: how much a corpus score would vary with other sentences of the same kind.

A resample draws as many sentences as there are, with replacement, adds up their sufficient statistics (for
BLEU: lengths and n-gram counts) and computes the figure from the sums, as the figure itself was computed.
Source: Koehn 2004, Statistical significance tests for machine translation evaluation.

Shapes: S sentences, N statistics a sentence.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1000
SEED = 12345  # sacrebleu's
LEVEL = 0.95


def bootstrap_interval(
    statistics_SN: NDArray[Any],
    aggregate: Callable[[NDArray[Any]], float],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    level: float = LEVEL,
) -> tuple[float, float] | None:
    """The interval that holds the middle `level` of the resampled figures; None below two sentences.

    Args:
        statistics_SN: one row of sufficient statistics a sentence.
        aggregate: from the sum over sentences (N,) to the corpus figure.
        resamples: how many corpora are drawn.
        seed: of the draws; the same seed gives the same interval.
        level: 0.95 gives the 2.5th and the 97.5th percentile.
    """
    sentences = len(statistics_SN)
    if sentences < 2:
        return None
    generator = np.random.default_rng(seed)
    figures = [
        aggregate(statistics_SN[generator.integers(0, sentences, sentences)].sum(axis=0)) for _ in range(resamples)
    ]
    low, high = np.quantile(figures, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
