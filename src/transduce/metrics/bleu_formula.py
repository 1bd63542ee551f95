"""BLEU as textbooks write it: unsmoothed, in [0, 1], on tokens, brevity by the shortest reference.

It can be followed by hand. Do not put it in one column with sacrebleu's score (`transduce.metrics.bleu`).

Source: Papineni et al. 2002. Shapes: S sentences, N counts a sentence.
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from transduce.metrics.score import References, checked_references, reference_count
from transduce.metrics.tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray


UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ")

Tokens = Sequence[str]
Counts = Sequence[float]


def notes_bleu_tally(hypotheses: Sequence[str], references: References, *, max_order: int = 4) -> Tally:
    """b · exp(Σ a_n log p_n) in [0, 1], nothing smoothed: 0 as soon as one order has no match.

    p_n: matched n-grams over n-grams, both summed over the corpus before dividing; an n-gram matches at most
    as often as it stands in the reference that has it most. b: 1 where the hypotheses are longer than the
    references, else exp(1 - l_s / l_x), l_s counting each sentence's shortest reference (sacrebleu: closest).
    a_n: 1 / max_order. Texts are split by `transduce.metrics.bleu_formula`.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    import numpy as np

    listed = checked_references(hypotheses, references)
    split = [[words(text) for text in several] for several in listed]
    rows = [_counts(words(text), several, max_order) for text, several in zip(hypotheses, split, strict=True)]
    weights = [1 / max_order] * max_order

    def aggregate(sums_N: "NDArray[Any]") -> float:
        return _formula(sums_N.tolist(), weights)

    signature = (
        f"nrefs:{reference_count(listed)}|case:lc|tok:words|smooth:none|brevity:shortest|"
        f"order:{max_order}|scale:0-1|formula:notes"
    )
    return Tally("BLEU by the formula", signature, np.array(rows), aggregate)


def _counts(hypothesis: Tokens, references: Sequence[Tokens], max_order: int) -> list[float]:
    """Length, shortest reference's length, then for each order the matched n-grams and all of them."""
    counted: list[float] = [len(hypothesis), min(map(len, references))]
    for order in range(1, max_order + 1):
        counts = ngrams(hypothesis, order)
        allowed: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            allowed |= ngrams(reference, order)
        counted += [(counts & allowed).total(), counts.total()]
    return counted


def _formula(sums: Counts, weights: Sequence[float]) -> float:
    hypothesis_length, reference_length, *pairs = sums
    logarithm = 0.0
    for weight, matches, total in zip(weights, pairs[::2], pairs[1::2], strict=True):
        if weight and not matches:
            return 0.0  # log 0
        logarithm += weight * math.log(matches / total) if weight else 0.0
    return _brevity(hypothesis_length, reference_length) * math.exp(logarithm)


def _brevity(hypothesis_length: float, reference_length: float) -> float:
    if hypothesis_length == 0:
        return 0.0
    return 1.0 if hypothesis_length > reference_length else math.exp(1 - reference_length / hypothesis_length)


def ngrams(tokens: Tokens, order: int) -> Counter[tuple[str, ...]]:
    """How often each run of `order` tokens stands in `tokens`."""
    return Counter(tuple(tokens[start : start + order]) for start in range(len(tokens) - order + 1))


def words(text: str) -> list[str]:
    """Lower-cased runs of letters, digits and the marks on them; where a script writes no spaces, each letter alone.

    Punctuation and symbols separate and are left out. Composed and decomposed accents are the same (NFC).
    """
    found: list[str] = []
    open_to = ""  # what may join the last word: "LNM" after a letter, "M" after one that stands alone
    for letter in unicodedata.normalize("NFC", text.lower()):
        kind = unicodedata.category(letter)[0]
        alone = kind in "LN" and _stands_alone(letter)
        if kind in open_to and not alone:
            found[-1] += letter
        elif kind in "LN":
            found.append(letter)
            open_to = "M" if alone else "LNM"
        else:
            open_to = ""
    return found


@cache
def _stands_alone(letter: str) -> bool:
    return unicodedata.name(letter, "").startswith(UNSPACED)
