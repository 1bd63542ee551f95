"""From texts to their vectors, by a model that embeds.

Shapes: B texts of a batch, H numbers of a vector.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transduce.data.columns import Columns
from transduce.inference.batch_predictor import outputs_of
from transduce.inference.prediction import Prediction
from transduce.inference.protocols import Advance
from transduce.search.settings import Search


@dataclass(frozen=True, repr=False)
class EmbeddingPrediction(Prediction):
    """The vector of a text; `text` is its numbers as JSON."""

    vector: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return f"EmbeddingPrediction({self.source!r}, {len(self.vector)} numbers)"

    def details(self) -> dict[str, Any]:
        """The numbers, and how much was read of a text that was cut."""
        return {"vector": list(self.vector), **super().details()}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"source": self.source, **self.details()}


@dataclass(frozen=True)
class EmbeddingPredictor:
    """Each text its vector; see `transduce.inference.protocols.Predictor`."""

    columns: Columns

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[EmbeddingPrediction]:
        """One a text, in their order; there is nothing to search, so `settings` mean nothing."""

        def run(inputs: Any) -> Any:
            return model.embed_text(inputs).float().cpu().numpy()

        found, cuts = outputs_of(model, self.columns["source"], texts, run, batch_size, advance)
        said = [self.columns["target"].decode(row) for row in found]
        return [
            EmbeddingPrediction(text, line, 0.0, 0.0, (), (), vector=tuple(row.tolist()), cut=cut)
            for text, line, row, cut in zip(texts, said, found, cuts, strict=True)
        ]
