"""From nodes or graphs to their likeliest labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from transduce.inference.labels import LabelPrediction, LabelPredictor
from transduce.inference.likelihood import Likelihood
from transduce.inference.protocols import Advance
from transduce.search.settings import Search

TINIEST = 5e-324  # the least probability that a number holds


@dataclass(frozen=True)
class GraphLabelPredictor(LabelPredictor):
    """Each graph its likeliest label, or each node; also says how probable given labels are."""

    def score(
        self, model: Any, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
    ) -> list[Likelihood]:
        """The likelihood of each label; see `transduce.inference.likelihood.Scores`."""
        labels = self.columns["target"]
        wanted = [labels.decode(np.asarray(ids).tolist()) for ids in labels.encode([label for _, label in pairs])]
        predictions = self.predict(model, [text for text, _ in pairs], None, batch_size, advance)
        found = []
        for label, prediction in zip(wanted, predictions, strict=True):
            value = log(max(prediction.probabilities[label], TINIEST))
            found.append(Likelihood(value, 1, (label,), (value,), "label"))
        return found


@dataclass(frozen=True)
class NodeLabelPredictor(GraphLabelPredictor):
    """Of nodes, all at once: each pass reads the whole graph anyway, and a node gets the same in any company."""

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[LabelPrediction]:
        """One a node, in their order."""
        return super().predict(model, texts, settings, max(batch_size, len(texts)), advance)
