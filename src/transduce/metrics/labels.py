"""Accuracy, error and macro-averaged F1 of labels."""

from collections.abc import Sequence
from dataclasses import replace

from transduce.metrics.score import References, checked_references, reference_count
from transduce.metrics.tally import Tally, mean_tally


def accuracy_tally(hypotheses: Sequence[str], references: References) -> Tally:
    """The share, in per cent, of hypotheses that are a reference of theirs.

    Raises:
        InputError: no examples, not equally many, or one without a reference.
    """
    listed = checked_references(hypotheses, references)
    found = [float(label in several) for label, several in zip(hypotheses, listed, strict=True)]
    return mean_tally("accuracy", f"nrefs:{reference_count(listed)}|unit:label|case:mixed", found)


def error_tally(hypotheses: Sequence[str], references: References) -> Tally:
    """The share, in per cent, of hypotheses that are no reference of theirs.

    Raises:
        InputError: no examples, not equally many, or one without a reference.
    """
    listed = checked_references(hypotheses, references)
    wrong = [float(label not in several) for label, several in zip(hypotheses, listed, strict=True)]
    tally = mean_tally("error", f"nrefs:{reference_count(listed)}|unit:label|case:mixed", wrong)
    return replace(tally, lower_is_better=True)


def macro_f1_tally(hypotheses: Sequence[str], references: References) -> Tally:
    """The mean over labels of F1 = 2 tp / (2 tp + fp + fn), in per cent.

    The labels are those among hypotheses and references, as in scikit-learn. An example with several references counts
    as the one that was found, or else as the first.

    Raises:
        InputError: no examples, not equally many, or one without a reference.
    """
    import numpy as np

    listed = checked_references(hypotheses, references)
    right = [label if label in several else several[0] for label, several in zip(hypotheses, listed, strict=True)]
    labels = sorted({*hypotheses, *right})
    place = {label: number for number, label in enumerate(labels)}
    said, true = (np.eye(len(labels))[[place[label] for label in side]] for side in (hypotheses, right))
    statistics_SN = np.concatenate((said * true, said, true), axis=1)

    def aggregate(sums_N: "np.ndarray") -> float:
        both_C, said_C, true_C = np.split(sums_N, 3)
        seen_C = said_C + true_C > 0
        return 100 * float(np.mean(2 * both_C[seen_C] / (said_C + true_C)[seen_C]))

    return Tally(
        "macro-F1", f"nrefs:{reference_count(listed)}|unit:label|case:mixed|average:macro", statistics_SN, aggregate
    )
