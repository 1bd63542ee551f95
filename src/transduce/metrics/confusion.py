"""Which labels were taken for which: the confusion matrix, with precision, recall and F1 of each label.

Shapes: C labels; rows are true labels, columns predicted ones.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from transduce.metrics.score import References, checked_references

if TYPE_CHECKING:
    from numpy.typing import NDArray

OTHERS = "others"


class LabelScore(NamedTuple):
    """Of one label, in per cent: tp / (tp + fp), tp / (tp + fn), 2 tp / (2 tp + fp + fn); and how many truly have it.

    A share of nothing is 0.
    """

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True, eq=False)
class Confusion:
    """labels: of rows and columns, each once. counts_CC: how many examples of a row's label got a column's."""

    labels: tuple[str, ...]
    counts_CC: "NDArray[Any]"

    @classmethod
    def of(cls, hypotheses: Sequence[str], references: References, labels: Sequence[str] = ()) -> Self:
        """Of these predictions. An example with several references counts as the one that was found, or as the first.

        Args:
            labels: those that are shown even where no example has them.

        Raises:
            InputError: no examples, not equally many, or one without a reference.
        """
        listed = checked_references(hypotheses, references)
        true = [said if said in several else several[0] for said, several in zip(hypotheses, listed, strict=True)]
        names = tuple(dict.fromkeys([*labels, *sorted({*hypotheses, *true})]))
        return cls._counted(names, Counter(zip(true, hypotheses, strict=True)))

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        pairs = {(true, said): count for true, row in table["counts"].items() for said, count in row.items()}
        return cls._counted(tuple(table["labels"]), pairs)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: {"counts": {true label: {predicted label: examples}}}, and the scores of each label."""
        rows = zip(self.labels, self.counts_CC.tolist(), strict=True)
        counts = {true: {self.labels[place]: n for place, n in enumerate(row) if n} for true, row in rows if any(row)}
        scores = {label: score._asdict() for label, score in self.scores().items()}
        return {"labels": list(self.labels), "counts": counts, "scores": scores}

    def scores(self) -> dict[str, LabelScore]:
        right, said, true = self.counts_CC.diagonal(), self.counts_CC.sum(0), self.counts_CC.sum(1)
        numbers = zip(self.labels, right.tolist(), said.tolist(), true.tolist(), strict=True)
        return {
            label: LabelScore(_share(tp, all_said), _share(tp, all_true), _share(2 * tp, all_said + all_true), all_true)
            for label, tp, all_said, all_true in numbers
        }

    def of_most_frequent(self, max_labels: int) -> Self:
        """With the labels that most examples have, in their order; all others are one, which is the last."""
        if len(self.labels) <= max_labels:
            return self
        import numpy as np

        totals = self.counts_CC.sum(1) + self.counts_CC.sum(0) / (1 + self.counts_CC.sum())  # true ones first
        kept = sorted(np.argsort(-totals, kind="stable")[:max_labels].tolist())
        place_C = np.full(len(self.labels), max_labels)
        place_C[kept] = range(max_labels)
        counts: NDArray[Any] = np.zeros((max_labels + 1, max_labels + 1), np.int64)
        np.add.at(counts, (place_C[:, None], place_C[None]), self.counts_CC)
        return type(self)((*(self.labels[each] for each in kept), OTHERS), counts)

    @classmethod
    def _counted(cls, labels: tuple[str, ...], pairs: Mapping[tuple[str, str], int]) -> Self:
        import numpy as np

        places = {label: place for place, label in enumerate(labels)}
        counts: NDArray[Any] = np.zeros((len(labels), len(labels)), np.int64)
        for (true, said), count in pairs.items():
            counts[places[true], places[said]] = count
        return cls(labels, counts)


def _share(part: int, total: int) -> float:
    return 100 * part / total if total else 0.0
