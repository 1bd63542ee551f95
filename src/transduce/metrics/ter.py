"""TER, translation edit rate: how many edits make the hypothesis the reference, a moved phrase counting as one.

Sources: Snover et al. 2006; computed by sacrebleu as tercom did.
"""

from collections.abc import Sequence

from transduce.metrics.score import References, checked_references
from transduce.metrics.tally import Tally
from transduce.metrics.writing import writing


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

    from transduce.metrics.sacrebleu_score import sacrebleu_tally

    kind = writing(language, checked_references(hypotheses, references)).kind
    asian = kind in ("chinese", "japanese")
    metric = TER(case_sensitive=not lowercase, normalized=asian, asian_support=asian)
    note = "TER of whole sentences: it splits no words of a script without spaces." if kind == "unspaced" else ""
    return sacrebleu_tally(metric, hypotheses, references, name="TER", lower_is_better=True, note=note)
