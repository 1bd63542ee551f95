"""Bits of a sequence: how many are wrong after rounding, and how many it takes to say it with a model's probabilities.

Both are called "bits per sequence" in the literature. Graves et al. 2014 plot the cost.
"""

import json
import math
from collections.abc import Sequence

from transduce.core.errors import InputError
from transduce.metrics.score import References, checked_references, reference_count
from transduce.metrics.tally import Tally


def wrong_bits_tally(hypotheses: Sequence[str], references: References, per: str = "sequence") -> Tally:
    """The mean number of wrong bits of a sequence, or of one of its vectors; both are rows of 0 and 1 as JSON.

    Every bit is wrong of a vector that one of the two has not.

    Raises:
        InputError: no sequences, not equally many, one without a reference, or one that cannot be read.
    """
    import numpy as np

    listed = checked_references(hypotheses, references)
    counted = [
        min((_wrong(said, each) for each in several), key=lambda found: found[0])
        for said, several in zip(hypotheses, listed, strict=True)
    ]
    statistics_S2 = np.array([[wrong, vectors if per == "vector" else 1] for wrong, vectors in counted], np.float64)
    signature = f"nrefs:{reference_count(listed)}|unit:bit|per:{per}|rounded:0.5"
    name = f"wrong bits a {per}"
    return Tally(name, signature, statistics_S2, lambda sums_2: float(sums_2[0] / sums_2[1]), lower_is_better=True)


def cost_tally(nats: Sequence[float]) -> Tally:
    """The mean cost of a sequence in bits, -log2 p, by the log-probability of each in nats."""
    import numpy as np

    statistics_S2 = np.array([[-each / math.log(2), 1.0] for each in nats])
    signature = "base:2|unit:bit|per:sequence"
    return Tally("cost, bits a sequence", signature, statistics_S2, lambda sums_2: float(sums_2[0] / sums_2[1]), True)


def _wrong(output: str, right: str) -> tuple[int, int]:
    """Wrong bits, and vectors of the reference."""
    hypothesis, reference = _rows(output), _rows(right)
    width = len(reference[0])
    both = zip(hypothesis, reference, strict=False)
    wrong = sum(a != b for one, other in both for a, b in zip(one, other, strict=False))
    wrong += sum(abs(len(one) - len(other)) for one, other in zip(hypothesis, reference, strict=False))
    return wrong + width * abs(len(hypothesis) - len(reference)), len(reference)


def _rows(text: str) -> list[list[int]]:
    try:
        rows = json.loads(text)
        found = [[round(each) for each in row] for row in rows]
        if not found or not found[0]:
            raise ValueError
        return found
    except (ValueError, TypeError, RecursionError, OverflowError):
        raise InputError(f'metrics: expected rows of 0 and 1 as JSON, such as [[0, 1]]; got "{text[:60]}".') from None
