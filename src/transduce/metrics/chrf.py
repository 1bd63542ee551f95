"""chrF: F-score of character n-grams, recall counting twice as much; chrF++ adds words and pairs of words.

Sources: Popović 2015 and 2017; computed by sacrebleu.
"""

from collections.abc import Sequence

from transduce.metrics.score import References
from transduce.metrics.tally import Tally


def chrf_tally(
    hypotheses: Sequence[str], references: References, *, word_order: int = 0, lowercase: bool = False
) -> Tally:
    """Corpus chrF, 0 to 100; word_order=2 gives chrF++. Of several references each sentence gets the best.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    from sacrebleu.metrics.chrf import CHRF

    from transduce.metrics.sacrebleu_score import sacrebleu_tally

    metric = CHRF(word_order=word_order, lowercase=lowercase)
    return sacrebleu_tally(metric, hypotheses, references, name="chrF" + "+" * word_order)
