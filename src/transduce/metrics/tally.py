"""The counts of a metric, sentence by sentence, from which come its score, its interval and comparisons.

Shapes: S sentences, N counts a sentence (for BLEU: lengths, matched n-grams, n-grams).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from transduce.metrics.score import Score

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Tally:
    """One metric over one corpus.

    Args:
        name: the usual name of the score.
        signature: everything that is needed to compute the same score.
        statistics_SN: one row of counts a sentence; rows may be added, left out, or taken twice.
        aggregate: from the sum over sentences (N,) to the corpus figure.
        lower_is_better: as for error rates.
        note: what a reader needs to know beyond the signature, in a sentence, or "".
    """

    name: str
    signature: str
    statistics_SN: "NDArray[Any]"
    aggregate: Callable[["NDArray[Any]"], float]
    lower_is_better: bool = False
    note: str = ""

    @property
    def value(self) -> float:
        """The corpus figure."""
        return float(self.aggregate(self.statistics_SN.sum(axis=0)))

    def score(self) -> Score:
        """The corpus figure with its 95 % bootstrap interval."""
        from transduce.metrics.bootstrap import bootstrap_interval

        interval = bootstrap_interval(self.statistics_SN, self.aggregate)
        return Score(self.value, self.signature, interval, self.name, self.lower_is_better, self.note)


def pooled(tallies: "Sequence[Tally]") -> Tally:
    """One metric over several corpora together, each with its own rules, such as how words are split.

    What differs in the signatures is named for each: tok:13a+zh. What only some have is named, too.
    """
    import numpy as np

    fields: dict[str, dict[str, None]] = {}
    for part in (part for each in tallies for part in each.signature.split("|")):
        key, _, value = part.partition(":")
        fields.setdefault(key, {})[value] = None
    signature = "|".join(f"{key}:{'+'.join(values)}" for key, values in fields.items())
    note = " ".join(dict.fromkeys(each.note for each in tallies if each.note))
    statistics_SN = np.concatenate([each.statistics_SN for each in tallies])
    return replace(tallies[0], signature=signature, statistics_SN=statistics_SN, note=note)


def mean_tally(name: str, signature: str, values: list[float]) -> Tally:
    """The tally of a score that is the mean of sentence scores (0 to 1), in per cent."""
    import numpy as np

    statistics_S2 = np.array([[value, 1.0] for value in values])
    return Tally(name, signature, statistics_S2, lambda sums_2: 100 * float(sums_2[0]) / float(sums_2[1]))
