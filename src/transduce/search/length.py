"""How hypotheses of different lengths are compared: three rules, by name.

    power   log p / L^alpha               Dive into Deep Learning, fairseq, CTranslate2
    gnmt    log p / ((5 + L) / 6)^alpha   Wu et al. 2016, equation 14; Tensor2Tensor, JoeyNMT
    none    log p

L counts the end token. A log-probability is negative, so dividing it by more for longer outputs REWARDS length,
although Dive into Deep Learning says that it penalises long sequences. Without it every further token costs, and short
outputs win.

An alpha tuned for one rule means nothing to another: from 10 to 20 tokens `power` divides by 2^alpha times as much,
`gnmt` by 1.67^alpha times, and from 1 to 2 by 2^alpha against 1.17^alpha.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Number = TypeVar("Number", float, "Tensor")
RuleName = Literal["power", "gnmt", "none"]


@dataclass(frozen=True, slots=True)
class LengthRule:
    """One of the rules with its alpha, at least 0; `none` does not look at it.

    A tensor of lengths must be float64: integers to a power lose digits.
    """

    name: RuleName = "power"
    alpha: float = 0.75

    def divisor(self, length: Number) -> Number:
        """L^alpha, ((5 + L) / 6)^alpha or 1: 1 for one token, and never less for more of them."""
        offset, unit, alpha = self.parts
        divisor: Number = ((offset + length) / unit) ** alpha
        return divisor

    @property
    def parts(self) -> tuple[float, float, float]:
        """(offset, unit, alpha) of the divisor ((offset + L) / unit)^alpha, which all three rules have."""
        if self.name == "gnmt":
            return 5.0, 6.0, self.alpha
        return 0.0, 1.0, 0.0 if self.name == "none" else self.alpha

    def normalised(self, log_probability: Number, length: Number) -> Number:
        """What hypotheses of `length` tokens, the end token included, are ranked by."""
        return log_probability / self.divisor(length)

    def upper_bound(self, log_probability: Number, limit: Number) -> Number:
        """The best score that a live hypothesis can still reach: its log p, divided as if it had `limit` tokens.

        Further tokens can only lower log p <= 0, and no length divides it by more than the longest allowed, since
        every rule's divisor grows with the length. The score at the present length, at which several toolkits stop,
        is no bound: a likely continuation raises it. A coverage penalty is at most 0, so the bound holds with it.
        """
        return self.normalised(log_probability, limit)


UNRULED = LengthRule("none")
