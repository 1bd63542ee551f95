"""TER, translation edit rate: how many edits make the hypothesis the reference, a moved phrase counting as one.

Sources: Snover et al. 2006; computed by sacrebleu as tercom did.
"""

from collections.abc import Sequence

from transduce.metrics.score import References, Score
from transduce.metrics.tally import Tally


def ter(hypotheses: Sequence[str], references: References, *, lowercase: bool = True) -> Score:
    """Edits in per cent of the reference's words: 0 is perfect, and over 100 is possible.

    Of several references the nearest gives the edits, and all of them together the length they are divided by.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    return ter_tally(hypotheses, references, lowercase=lowercase).score()


def ter_tally(hypotheses: Sequence[str], references: References, *, lowercase: bool = True) -> Tally:
    """What `ter` counts."""
    from sacrebleu.metrics.ter import TER

    from transduce.metrics.sacrebleu_score import sacrebleu_tally

    metric = TER(case_sensitive=not lowercase)
    return sacrebleu_tally(metric, hypotheses, references, name="TER", lower_is_better=True)
