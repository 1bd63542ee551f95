"""Exact match: the share of hypotheses equal to their reference, to the last character."""

from collections.abc import Sequence

from transduce.metrics.score import Score, check_corpus


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Per cent, 0 to 100. Nothing is stripped, folded or normalised.

    Raises:
        InputError: no sentences, or not equally many.
    """
    import numpy as np

    from transduce.metrics.bootstrap import bootstrap_interval

    check_corpus(hypotheses, references)
    equal_S1 = np.array(
        [[hypothesis == reference] for hypothesis, reference in zip(hypotheses, references, strict=True)]
    )
    sentences = len(equal_S1)
    interval = bootstrap_interval(equal_S1, lambda sums_1: 100 * float(sums_1[0]) / sentences)
    value = 100 * int(equal_S1.sum()) / sentences
    return Score(value, "nrefs:1|case:mixed|space:kept", interval, "exact match")
