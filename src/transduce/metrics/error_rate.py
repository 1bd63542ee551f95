"""Error rates: the least insertions, deletions and substitutions that make a hypothesis its reference.

    error rate = 100 (S + D + I) / N,  N the reference's words (WER), phonemes (PER) or characters with spaces (CER)

0 is perfect, and over 100 is possible. Of several references the one with the lowest rate counts.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from transduce.metrics.score import References, checked_references, reference_count
from transduce.metrics.tally import Tally
from transduce.metrics.writing import writing

if TYPE_CHECKING:
    from numpy.typing import NDArray


def character_error_rate_tally(hypotheses: Sequence[str], references: References) -> Tally:
    """CER in per cent; space at the ends of texts is not counted, other space is.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    return _tally("CER", "character|space:kept", hypotheses, references, lambda text: list(text.strip()))


def word_error_rate_tally(hypotheses: Sequence[str], references: References, language: str | None = None) -> Tally:
    """WER in per cent, of words between white space. A note says so where the target's language writes no spaces.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    tally = _tally("WER", "word", hypotheses, references, str.split)
    if writing(language, checked_references(hypotheses, references)).kind in ("spaces", "korean"):
        return tally
    return replace(tally, note="WER of whole sentences: the target's language writes no spaces; use cer.")


def phoneme_error_rate_tally(hypotheses: Sequence[str], references: References) -> Tally:
    """PER in per cent, of phonemes between white space, as pronunciations are written in the shared tasks.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    tally = _tally("PER", "phoneme", hypotheses, references, str.split)
    if any(len(each.split()) > 1 for several in checked_references(hypotheses, references) for each in several):
        return tally
    note = "PER counts what stands between spaces, and no reference has a space between its phonemes: use cer."
    return replace(tally, note=note)


def edits(hypothesis: Sequence[Hashable], reference: Sequence[Hashable]) -> int:
    """The Levenshtein distance (Levenshtein 1966), a row of the table at a time."""
    import numpy as np

    places: dict[Hashable, int] = {}
    said, wanted = (
        np.array([places.setdefault(each, len(places)) for each in side], np.int64) for side in (hypothesis, reference)
    )
    column = np.arange(len(wanted) + 1)
    row = column.copy()
    for count, symbol in enumerate(said.tolist(), 1):
        best = np.empty_like(row)
        best[0] = count
        np.minimum(row[:-1] + (wanted != symbol), row[1:] + 1, out=best[1:])
        row = np.minimum.accumulate(best - column) + column  # insertions follow one another along the row
    return int(row[-1])


def errors_at(hypothesis: Sequence[Hashable], reference: Sequence[Hashable]) -> "NDArray[Any]":
    """(N + 1,) where in the reference the least edits are: at each of its N symbols, and behind the last.

    An insertion is counted at the symbol before which it stands. Where several edits are least, a matched or replaced
    symbol is preferred, from the end on.
    """
    import numpy as np

    table = [list(range(len(reference) + 1))]
    for said in hypothesis:
        above, row_of = table[-1], [table[-1][0] + 1]
        for column, wanted in enumerate(reference):
            row_of.append(min(above[column] + (said != wanted), above[column + 1] + 1, row_of[column] + 1))
        table.append(row_of)
    errors_N = np.zeros(len(reference) + 1, np.int64)
    row, column = len(hypothesis), len(reference)
    while row or column:
        differs = int(row and column and hypothesis[row - 1] != reference[column - 1])
        if row and column and table[row][column] == table[row - 1][column - 1] + differs:
            row, column = row - 1, column - 1
            errors_N[column] += differs
        elif row and table[row][column] == table[row - 1][column] + 1:
            row -= 1
            errors_N[column] += 1
        else:
            column -= 1
            errors_N[column] += 1
    return errors_N


def _tally(
    name: str, unit: str, hypotheses: Sequence[str], references: References, units: Callable[[str], list[str]]
) -> Tally:
    """Edits and length of the reference, sentence by sentence."""
    import numpy as np

    listed = checked_references(hypotheses, references)
    statistics_S2 = np.array(
        [
            _nearest(units(said), [units(each) for each in several])
            for said, several in zip(hypotheses, listed, strict=True)
        ]
    )
    signature = f"nrefs:{reference_count(listed)}|unit:{unit}|case:mixed|punctuation:kept"
    return Tally(name, signature, statistics_S2, _rate, lower_is_better=True)


def _rate(sums_2: "NDArray[Any]") -> float:
    """Per cent; references without anything count as one unit, so that what is said to them still counts."""
    return 100 * float(sums_2[0]) / max(1.0, float(sums_2[1]))


def _nearest(hypothesis: list[str], references: list[list[str]]) -> tuple[float, float]:
    counts = [(float(edits(hypothesis, each)), float(len(each))) for each in references]
    return min(counts, key=lambda count: count[0] / max(1.0, count[1]))
