"""One sacrebleu metric over one corpus, as a `Tally` with sacrebleu's signature.

Shapes: S sentences, N statistics a sentence (lengths, n-gram counts).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from transduce.metrics.score import References, checked_references
from transduce.metrics.tally import Tally

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
