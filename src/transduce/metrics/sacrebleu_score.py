"""One sacrebleu metric over one corpus, as a `Tally` with sacrebleu's signature: chrF and TER, and BLEU in `bleu`.

chrF is an F-score of character n-grams, recall counting twice as much; chrF++ adds words and pairs of words (Popović
2015 and 2017). TER, translation edit rate, is how many edits make the hypothesis the reference, a moved phrase counting
as one (Snover et al. 2006); sacrebleu computes it as tercom did.

Shapes: S sentences, N statistics a sentence (lengths, n-gram counts).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transduce.metrics.score import References, checked_references
from transduce.metrics.tally import Tally
from transduce.metrics.writing import writing

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sacrebleu.metrics.base import Metric


def sacrebleu_tally(
    metric: "Metric",
    hypotheses: Sequence[str],
    references: References,
    *,
    name: str,
    changes: dict[str, str] | None = None,
    lower_is_better: bool = False,
    note: str = "",
) -> Tally:
    """Counts over `hypotheses`; `changes` overwrites or adds entries of sacrebleu's signature.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    import numpy as np

    listed = checked_references(hypotheses, references)
    most = max(map(len, listed))
    streams: Any = [[several[n] if n < len(several) else None for several in listed] for n in range(most)]
    # What `metric.corpus_score` does, in its two halves: its own resampling gives mean and half-width only,
    # and reads its seed from the environment.
    statistics_SN = np.asarray(metric._extract_corpus_statistics(hypotheses, streams))

    def aggregate(sums_N: "NDArray[Any]") -> float:
        return float(metric._compute_score_from_stats(sums_N.tolist()).score)

    signature = metric.get_signature()
    for key, change in (changes or {}).items():
        signature.update(key, change)
    return Tally(name, str(signature), statistics_SN, aggregate, lower_is_better, note)


def chrf_tally(
    hypotheses: Sequence[str], references: References, *, word_order: int = 0, lowercase: bool = False
) -> Tally:
    """Corpus chrF, 0 to 100; word_order=2 gives chrF++. Of several references each sentence gets the best.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF(word_order=word_order, lowercase=lowercase)
    return sacrebleu_tally(metric, hypotheses, references, name="chrF" + "+" * word_order)


def ter_tally(
    hypotheses: Sequence[str], references: References, *, lowercase: bool = True, language: str | None = None
) -> Tally:
    """Edits in per cent of the reference's words: 0 is perfect, and over 100 is possible.

    Of several references the nearest gives the edits, and all of them together the length they are divided by. Where
    the target's language writes Chinese characters, each is a word (`norm:yes|asian:yes`).

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    from sacrebleu.metrics.ter import TER

    kind = writing(language, checked_references(hypotheses, references)).kind
    asian = kind in ("chinese", "japanese")
    metric = TER(case_sensitive=not lowercase, normalized=asian, asian_support=asian)
    note = "TER of whole sentences: it splits no words of a script without spaces." if kind == "unspaced" else ""
    return sacrebleu_tally(metric, hypotheses, references, name="TER", lower_is_better=True, note=note)
