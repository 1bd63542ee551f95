"""From texts to their likeliest labels, by a model that classifies.

Shapes: B texts of a batch, C labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from torch import Tensor

from transduce.data.columns import Columns
from transduce.data.columns.protocols import TextCut
from transduce.inference.batch_predictor import outputs_of
from transduce.inference.prediction import Prediction
from transduce.inference.protocols import Advance
from transduce.search.settings import Search

LISTED = 10  # labels beside the likeliest


@dataclass(frozen=True, repr=False)
class LabelPrediction(Prediction):
    """The likeliest label of a text; `text` is the label.

    probabilities: of every label, the likeliest first.
    """

    probabilities: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The likeliest."""
        return self.text

    def __repr__(self) -> str:
        return f"LabelPrediction({self.label!r}, probability={self.probabilities[self.label]:.4g})"

    def details(self) -> dict[str, Any]:
        """The probability of each label, and how much was read of a text that was cut."""
        return {"probabilities": self.probabilities, **super().details()}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"source": self.source, "label": self.label, **self.details()}


@dataclass(frozen=True)
class LabelPredictor:
    """Each text its likeliest label; see `transduce.inference.protocols.Predictor`."""

    columns: Columns

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[LabelPrediction]:
        """One a text, in their order; there is nothing to search, so `settings` mean nothing."""
        texts, labels = [self.shown(text) for text in texts], self.columns["target"]
        names = labels.tokens(range(labels.spec.size))

        def run(inputs: Any) -> list[list[float]]:
            normed_BC: Tensor = model.classify(inputs).double().log_softmax(-1)
            return normed_BC.tolist()

        together = self.together(batch_size, len(texts))
        found, cuts = outputs_of(model, self.columns["source"], texts, run, together, advance)
        made = (_prediction(*each, names) for each in zip(texts, found, cuts, strict=True))
        return [self.completed(each, model, names) for each in made]

    def shown(self, text: str) -> str:
        """The source of a prediction: the text as it came."""
        return text

    def together(self, batch_size: int, texts: int) -> int:
        """How many of the texts are read at once."""
        return batch_size

    def completed(self, made: LabelPrediction, model: Any, names: Sequence[str]) -> LabelPrediction:
        """A prediction with all that it says beside its label."""
        return made


def _prediction(
    text: str, log_probabilities: Sequence[float], cut: TextCut | None, names: Sequence[str]
) -> LabelPrediction:
    likeliest = sorted(range(len(names)), key=lambda each: -log_probabilities[each])
    probabilities = {names[each]: float(np.exp(log_probabilities[each])) for each in likeliest}

    def one(label: str, score: float) -> LabelPrediction:
        return LabelPrediction(text, label, score, score, (label,), (score,), probabilities=probabilities, cut=cut)

    listed = tuple(one(names[each], log_probabilities[each]) for each in likeliest[:LISTED])
    return replace(listed[0], alternatives=listed)
