"""Length normalization: three rules for comparing hypotheses of different lengths.

    power   log p / L^alpha               Dive into Deep Learning, fairseq, CTranslate2
    gnmt    log p / ((5 + L) / 6)^alpha   Wu et al. 2016, equation 14; Tensor2Tensor, JoeyNMT
    none    log p

L counts the end token. A log-probability is negative, so dividing it by more for longer outputs REWARDS length,
although Dive into Deep Learning says that it penalizes long sequences. Without the division, every token lowers the
score, and short outputs win.

An alpha tuned for one rule does not fit another. From 10 to 20 tokens, the divisor of `power` grows by a factor of
2^alpha and that of `gnmt` by 1.67^alpha; from 1 to 2 tokens, by 2^alpha and 1.17^alpha.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Number = TypeVar("Number", float, "Tensor")
RuleName = Literal["power", "gnmt", "none"]


@dataclass(frozen=True, slots=True)
class LengthRule:
    """A rule with its alpha, which is at least 0 and ignored by `none`.

    A tensor of lengths must be float64, because powers of integer tensors lose digits.
    """

    name: RuleName = "power"
    alpha: float = 0.75

    def divisor(self, length: Number) -> Number:
        """L^alpha, ((5 + L) / 6)^alpha or 1. It is 1 for one token and never decreases with length."""
        offset, unit, alpha = self.parts
        divisor: Number = ((offset + length) / unit) ** alpha
        return divisor

    @property
    def parts(self) -> tuple[float, float, float]:
        """(offset, unit, alpha) of the divisor ((offset + L) / unit)^alpha, the common form of all three rules."""
        if self.name == "gnmt":
            return 5.0, 6.0, self.alpha
        return 0.0, 1.0, 0.0 if self.name == "none" else self.alpha

    def normalised(self, log_probability: Number, length: Number) -> Number:
        """The score of a hypothesis of `length` tokens, including the end token."""
        return log_probability / self.divisor(length)

    def upper_bound(self, log_probability: Number, limit: Number) -> Number:
        """The best score that a live hypothesis can still reach: its log p, divided as if it had `limit` tokens.

        Further tokens can only lower log p <= 0, and the divisor is largest at the maximum length. The score at the
        current length, which several toolkits use to stop, is not a bound, because a likely continuation raises it. A
        coverage penalty is at most 0, so the bound holds with it.
        """
        return self.normalised(log_probability, limit)


UNRULED = LengthRule("none")
