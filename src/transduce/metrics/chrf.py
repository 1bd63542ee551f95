"""chrF: F-score of character n-grams, recall counting twice as much; chrF++ adds words and pairs of words.

Sources: Popović 2015 and 2017; computed by sacrebleu.
"""

from collections.abc import Sequence

from transduce.metrics.score import Score


def chrf(
    hypotheses: Sequence[str], references: Sequence[str], *, word_order: int = 0, lowercase: bool = False
) -> Score:
    """Corpus chrF, 0 to 100; word_order=2 gives chrF++.

    Raises:
        InputError: no sentences, or not equally many.
    """
    from sacrebleu.metrics.chrf import CHRF

    from transduce.metrics.sacrebleu_score import sacrebleu_score

    metric = CHRF(word_order=word_order, lowercase=lowercase)
    return sacrebleu_score(metric, hypotheses, references, name="chrF" + "+" * word_order)
