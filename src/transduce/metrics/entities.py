"""Figures of rows of labels, one a word: spans that are found, the words of segmented text, labels by themselves.

    precision = found / said,   recall = found / true,   F1 = 2 found / (said + true)        over all texts (micro)

A span is found if its first word, last word and kind are right (Tjong Kim Sang & De Meulder 2003). Rows are read as by
the script conlleval, so that I- behind O begins a span; the strict count takes only spans of a scheme, as seqeval's.
A word of segmented text is found if both its boundaries are (Sproat & Emerson 2003).

Rows are texts with one space between labels. One of another length than its reference is no answer: all its words
count as O.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError
from transduce.data.structures.label_schemes import (
    OUTSIDE,
    LabelSpan,
    labels_of,
    parts_of,
    scheme_of,
    spans_of,
)
from transduce.metrics.score import References, checked_references
from transduce.metrics.tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Sums = NDArray[Any]

NAMES = {"f1": "F1", "precision": "precision", "recall": "recall"}
Row = list[str]


def entity_tally(hypotheses: Sequence[str], references: References, figure: str = "f1", strict: bool = False) -> Tally:
    """Micro-averaged F1, precision or recall of spans, in per cent; 0 where there is none.

    Args:
        figure: f1, precision, recall.
        strict: only spans that are written as the scheme of the references' labels wants it.

    Raises:
        InputError: several references for one row; no rows, not equally many.
    """
    rows = _rows(hypotheses, references, "entity_" + figure)
    how, read = "conlleval", spans_of
    if strict:
        how = scheme_of({label for _, true in rows for label in true})
        read = partial(strict_spans, scheme=how)
    name = f"entity {NAMES[figure]}" + (" strict" if strict else "")
    return _span_tally(rows, read, figure, name, f"nrefs:1|unit:span|average:micro|scheme:{how}")


def strict_spans(labels: Sequence[str], scheme: str) -> list[LabelSpan]:
    """The spans of a row whose labels are those that the scheme has for them."""
    if scheme == "none":
        return spans_of(labels)
    found, written = spans_of(labels), [*map(parts_of, labels)]
    wanted = [*map(parts_of, labels_of(found, len(labels), scheme))]
    return [each for each in found if written[each.start : each.end] == wanted[each.start : each.end]]


def word_f1_tally(hypotheses: Sequence[str], references: References) -> Tally:
    """F1 of the words that rows of B, M, E, S divide characters into, in per cent. Errors as of `entity_tally`."""
    rows = _rows(hypotheses, references, "word_f1")
    return _span_tally(rows, segments, "f1", "word F1", "nrefs:1|unit:word|average:micro|scheme:bmes")


def segments(labels: Sequence[str]) -> list[LabelSpan]:
    """The words of a row of B, M, E, S, which hold every character: they begin at B and S, and behind E and S."""
    letters = [parts_of(label).letter for label in labels]
    inner = [n for n in range(1, len(letters)) if letters[n] in "BS" or letters[n - 1] in "ES"]
    bounds = [0, *inner, len(letters)] if letters else []
    return [LabelSpan(start, end, "") for start, end in pairwise(bounds)]


def label_accuracy_tally(hypotheses: Sequence[str], references: References) -> Tally:
    """The share of words, in per cent, with the label of the reference. Errors as of `entity_tally`."""
    import numpy as np

    rows = _rows(hypotheses, references, "accuracy")
    counts_S2 = np.array([(sum(map(str.__eq__, said, true)), len(true)) for said, true in rows], np.float64)
    return Tally("accuracy", "nrefs:1|unit:word|case:mixed", counts_S2, _accuracy)


def label_macro_f1_tally(hypotheses: Sequence[str], references: References) -> Tally:
    """The mean of the F1 of labels over those of outputs and references, in per cent. Errors as of `entity_tally`."""
    import numpy as np

    rows = _rows(hypotheses, references, "macro_f1")
    names = sorted({label for pair in rows for side in pair for label in side})
    place = {label: number for number, label in enumerate(names)}
    statistics_SN = np.zeros((len(rows), 3 * len(names)))
    for row, (said, true) in enumerate(rows):
        for one, other in zip(said, true, strict=True):
            statistics_SN[row, [len(names) + place[one], 2 * len(names) + place[other]]] += 1
            statistics_SN[row, place[one]] += one == other
    return Tally("macro-F1", "nrefs:1|unit:word|case:mixed|average:macro", statistics_SN, _macro_f1)


def labels_in(text: str) -> Row:
    """The labels of a row."""
    return text.split(" ") if text else []


def _rows(hypotheses: Sequence[str], references: References, metric: str) -> list[tuple[Row, Row]]:
    """What was said and what is true, equally long."""
    listed = checked_references(hypotheses, references)
    if any(len(several) > 1 for several in listed):
        raise InputError(f"{metric}: expected one row of labels as the reference of each output; got several.")
    pairs = [(labels_in(said), labels_in(true)) for said, [true] in zip(hypotheses, listed, strict=True)]
    return [(said if len(said) == len(true) else [OUTSIDE] * len(true), true) for said, true in pairs]


def _span_tally(
    rows: Sequence[tuple[Row, Row]], read: Callable[[Row], list[LabelSpan]], figure: str, name: str, signature: str
) -> Tally:
    import numpy as np

    both = [(set(read(said)), set(read(true))) for said, true in rows]
    counts_S3 = np.array([(len(said & true), len(said), len(true)) for said, true in both], np.float64)
    return Tally(name, signature, counts_S3, SHARES[figure])


def _f1(sums_3: "Sums") -> float:
    """In the order of operations of seqeval, so that the last digit is the same."""
    found, said, true = map(float, sums_3)
    precision, recall = _share(found, said), _share(found, true)
    return 100 * (2 * precision * recall / (precision + recall)) if found else 0.0


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


SHARES: dict[str, Callable[["Sums"], float]] = {
    "f1": _f1,
    "precision": lambda sums_3: 100 * _share(float(sums_3[0]), float(sums_3[1])),
    "recall": lambda sums_3: 100 * _share(float(sums_3[0]), float(sums_3[2])),
}


def _accuracy(sums_2: "Sums") -> float:
    return 100 * float(sums_2[0]) / float(sums_2[1]) if sums_2[1] else 0.0


def _macro_f1(sums_N: "Sums") -> float:
    import numpy as np

    both_C, said_C, true_C = np.split(sums_N, 3)
    seen_C = said_C + true_C > 0
    return 100 * float(np.mean(2 * both_C[seen_C] / (said_C + true_C)[seen_C])) if seen_C.any() else 0.0
