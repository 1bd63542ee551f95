"""ROUGE: the share of the references found in the hypothesis, by n-grams (ROUGE-N) or in sequence (ROUGE-L).

`rouge_tally` is the figure of summarisation tables: the library rouge-score's F1, on words of any script.
`notes_rouge_tally` is the textbook's recall. They treat several references differently, so do not mix them: rouge-score
takes for each sentence the reference with the best F1, the formula pools the n-grams of all.

Source: Lin 2004.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.metrics.bleu_formula import Tokens, ngrams, words
from transduce.metrics.score import References, checked_references, reference_count
from transduce.metrics.tally import Tally, mean_tally

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RougeWords:
    """`transduce.metrics.bleu_formula` with the interface of rouge-score's tokenizers."""

    def tokenize(self, text: str) -> list[str]:
        return words(text)


def rouge_tally(hypotheses: Sequence[str], references: References, kind: str = "L") -> Tally:
    """Mean F1 over sentences, 0 to 100, by rouge-score; of several references each sentence gets the best.

    Args:
        kind: "1" to "9" for n-grams of that length, "L" for the longest common subsequence.

    Raises:
        InputError: another kind; no sentences, not equally many, or one without a reference; rouge-score is not
            installed.
    """
    from importlib.metadata import version

    if kind not in {*"123456789", "L"}:
        raise InputError(f'ROUGE: expected 1 to 9 (n-grams) or L (longest common subsequence); got "{kind}".')
    rouge_scorer = library("rouge_score.rouge_scorer", "ROUGE", "rouge", called="rouge-score")
    listed = checked_references(hypotheses, references)
    name = f"rouge{kind}"
    scorer = rouge_scorer.RougeScorer([name], tokenizer=RougeWords())
    found = [
        float(scorer.score_multi(several, hypothesis)[name].fmeasure)
        for hypothesis, several in zip(hypotheses, listed, strict=True)
    ]
    signature = f"{_counted(listed, kind)}|figure:F1|refs:best|version:{version('rouge-score')}"
    return mean_tally(f"ROUGE-{kind}", signature, found)


def notes_rouge_tally(hypotheses: Sequence[str], references: References, order: int) -> Tally:
    """Recall in [0, 1]: matched n-grams over the references' n-grams, both summed over references and sentences.

        ROUGE-N(x) = Σ_k Σ_w min(c_w(x), c_w(s^k)) / Σ_k Σ_w c_w(s^k)

    Texts are split by `transduce.metrics.bleu_formula`.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    import numpy as np

    listed = checked_references(hypotheses, references)
    split = [[words(text) for text in several] for several in listed]
    rows = [_pooled(words(text), several, order) for text, several in zip(hypotheses, split, strict=True)]

    def aggregate(sums_2: "NDArray[Any]") -> float:
        return _recall(*sums_2.tolist())

    signature = f"{_counted(listed, order)}|figure:recall|refs:pooled|scale:0-1|formula:notes"
    return Tally(f"ROUGE-{order} by the formula", signature, np.array(rows), aggregate)


def _counted(references: list[list[str]], kind: str | int) -> str:
    """What is counted, as the signature begins."""
    return f"nrefs:{reference_count(references)}|type:{kind}|case:lc|tok:words|stem:no"


def _pooled(hypothesis: Tokens, references: Sequence[Tokens], order: int) -> tuple[int, int]:
    counts = ngrams(hypothesis, order)
    wanted: list[Counter[tuple[str, ...]]] = [ngrams(reference, order) for reference in references]
    return sum((counts & each).total() for each in wanted), sum(each.total() for each in wanted)


def _recall(matched: float, total: float) -> float:
    return matched / total if total else 0.0
