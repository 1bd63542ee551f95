"""95 % intervals of scores: over the seeds of several trainings, or over the examples of one."""

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

QUANTILES = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)  # 97.5 %, Student's t, 1 to 9 degrees
NEAR = 0.01  # of a score without an interval, such as a perplexity


def over_seeds(values: Sequence[float]) -> tuple[float, float]:
    """Of the mean, by Student's t; not a number for one value."""
    if len(values) < 2:
        return math.nan, math.nan
    half = QUANTILES[min(len(values) - 2, len(QUANTILES) - 1)] * stdev(values) / math.sqrt(len(values))
    return fmean(values) - half, fmean(values) + half


def over_examples(score: Mapping[str, Any]) -> tuple[float, float]:
    """The bootstrap interval that was recorded with a score, or 1 % on both sides where there is none."""
    least, most = score["interval"] or ((1 - NEAR) * score["value"], (1 + NEAR) * score["value"])
    return least, most
