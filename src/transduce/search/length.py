"""How hypotheses of different lengths are compared."""

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Number = TypeVar("Number", float, "Tensor")


def normalised(log_probability: Number, length: Number, alpha: float) -> Number:
    """log p / L^alpha, as Dive into Deep Learning, fairseq and CTranslate2 have it; L counts the end token.

    A log-probability is negative, so dividing it by L^alpha REWARDS length, although Dive into Deep
    Learning says that it penalises long sequences. Without it (alpha 0) every further token costs, and
    short outputs win.

    This is not the rule of GNMT, Tensor2Tensor and JoeyNMT, log p / ((5 + L) / 6)^alpha: an alpha tuned
    for one means nothing to the other. A tensor of lengths must be float64: integers to a power lose digits.
    """
    score: Number = log_probability / length**alpha
    return score


def upper_bound(log_probability: Number, limit: Number, alpha: float) -> Number:
    """The best score that a live hypothesis can still reach: log p / limit^alpha, for alpha >= 0, log p <= 0.

    Further tokens can only lower log p, and no length divides it by more than the longest allowed. The
    score at the present length, at which several toolkits stop, is no bound: a likely continuation raises it.
    """
    return normalised(log_probability, limit, alpha)
