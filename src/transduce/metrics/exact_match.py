"""Exact match: the share of hypotheses that equal one of their references; length match: that are as long as one."""

from collections.abc import Sequence

from transduce.metrics.score import References, checked_references, reference_count
from transduce.metrics.tally import Tally, mean_tally


def exact_match_tally(hypotheses: Sequence[str], references: References) -> Tally:
    """Per cent, 0 to 100. Nothing is stripped, folded or normalised.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    listed = checked_references(hypotheses, references)
    found = [float(hypothesis in several) for hypothesis, several in zip(hypotheses, listed, strict=True)]
    return mean_tally("exact match", f"nrefs:{reference_count(listed)}|case:mixed|space:kept", found)


def length_match_tally(hypotheses: Sequence[str], references: References) -> Tally:
    """Per cent of hypotheses with as many characters as one of their references: of lines of verse, for example.

    Raises:
        InputError: no sentences, not equally many, or one without a reference.
    """
    listed = checked_references(hypotheses, references)
    found = [
        float(len(hypothesis) in map(len, several)) for hypothesis, several in zip(hypotheses, listed, strict=True)
    ]
    return mean_tally("length match", f"nrefs:{reference_count(listed)}|unit:character|space:kept", found)
