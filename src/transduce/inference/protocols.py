"""The contract of what turns texts into predictions: search is one such, taking the likeliest label another."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from transduce.inference.prediction import Prediction
from transduce.search.settings import Search

Advance = Callable[[int], None]  # told how many more texts are done


class Predictor(Protocol):
    """Texts in, predictions out; each is what it would be alone. Search is one, the likeliest label another."""

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> Sequence[Prediction]:
        """One a text, in their order.

        Args:
            settings: None = the quickest, as validation wants them.
            batch_size: texts at once.
        """
        ...
