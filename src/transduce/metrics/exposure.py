"""Exposure bias: how much worse a model writes after what it wrote itself than after what it should have written.

    teacher-forced error rate = 100 (positions whose likeliest token is not the reference's) / N
    exposure bias = error rate of outputs - teacher-forced error rate

The tokens before a position are the reference's (Ranzato et al. 2016). N counts the references' tokens without their
ends. A missed end is an error, as an output that goes on after the reference has insertions.

Shapes: S sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from transduce.metrics.error_rate import errors_at
from transduce.metrics.tally import Tally

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LEAST = 10  # references that reach a position whose error rate is worth showing


def signatures(unit: str) -> dict[str, str]:
    """Of both figures; see `Exposure.tallies`."""
    counted = f"nrefs:1|unit:{unit}|end:an error where missed, not counted in N"
    return {
        "teacher_forced": f"{counted}|prefix:reference|likeliest token",
        "exposure_bias": f"{counted}|outputs less teacher-forced",
    }


@dataclass(frozen=True)
class Exposure:
    """The errors of each sentence at each token of its reference, and last at its end.

    forced: teacher-forced. free: of outputs. unit: what a token is, in a word.
    """

    forced: Sequence["NDArray[np.int64]"]
    free: Sequence["NDArray[np.int64]"]
    unit: str

    @classmethod
    def of_outputs(
        cls,
        forced: Sequence["NDArray[np.int64]"],
        outputs: Sequence[Sequence[str]],
        references: Sequence[Sequence[str]],
        unit: str,
    ) -> "Exposure":
        """With the errors of outputs by their least edits."""
        free = [errors_at(output, reference) for output, reference in zip(outputs, references, strict=True)]
        return cls(forced, free, unit)

    def tallies(self) -> dict[str, Tally]:
        """`teacher_forced`, and `exposure_bias`, whose interval is of the difference."""
        name = "CER" if self.unit == "character" else f"{self.unit} error rate"
        told = signatures(self.unit)
        return {
            "teacher_forced": Tally(f"{name}, teacher-forced", told["teacher_forced"], self._counts, _forced, True),
            "exposure_bias": Tally("exposure bias", told["exposure_bias"], self._counts, _difference, True),
        }

    def by_position(self) -> dict[str, list[float]]:
        """Error rates at the 1st, 2nd, .. token, and how many references reach it; as far as enough do."""
        longest = max((len(each) - 1 for each in self.forced), default=0)
        reached = [sum(len(each) - 1 > place for each in self.forced) for place in range(longest)]
        shown = [place for place in range(longest) if reached[place] >= LEAST]
        rates = {
            name: [
                100 * sum(int(each[place]) for each in kind if len(each) - 1 > place) / reached[place]
                for place in shown
            ]
            for name, kind in (("teacher_forced", self.forced), ("free_running", self.free))
        }
        return {"references": [reached[place] for place in shown], **rates}

    @cached_property
    def _counts(self) -> "NDArray[Any]":
        """(S, 3): teacher-forced errors, those of outputs, tokens of the reference."""
        import numpy as np

        rows = [(each.sum(), other.sum(), len(each) - 1) for each, other in zip(self.forced, self.free, strict=True)]
        return np.array(rows, np.float64)


def _forced(sums_3: "NDArray[Any]") -> float:
    return 100 * float(sums_3[0]) / max(1.0, float(sums_3[2]))


def _difference(sums_3: "NDArray[Any]") -> float:
    return 100 * float(sums_3[1] - sums_3[0]) / max(1.0, float(sums_3[2]))
