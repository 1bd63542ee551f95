"""One sacrebleu metric over one corpus, as a `Score` with its interval and signature.

Shapes: S sentences, N statistics a sentence (lengths, n-gram counts).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transduce.metrics.score import Score, check_corpus

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from sacrebleu.metrics.base import Metric


def sacrebleu_score(
    metric: "Metric",
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    name: str,
    changes: dict[str, str] | None = None,
) -> Score:
    """Scores `hypotheses`; `changes` overwrites or adds entries of sacrebleu's signature.

    Raises:
        InputError: no sentences, or not equally many.
    """
    import numpy as np

    from transduce.metrics.bootstrap import bootstrap_interval

    check_corpus(hypotheses, references)
    # What `metric.corpus_score` does, in its two halves: its own resampling gives mean and half-width only,
    # and reads its seed from the environment.
    statistics_SN = np.asarray(metric._extract_corpus_statistics(hypotheses, [references]))

    def figure(sums_N: "NDArray[Any]") -> float:
        return float(metric._compute_score_from_stats(sums_N.tolist()).score)

    value = figure(statistics_SN.sum(axis=0))
    interval = bootstrap_interval(statistics_SN, figure)
    signature = metric.get_signature()
    for key, change in (changes or {}).items():
        signature.update(key, change)
    return Score(value, str(signature), interval, name)
