"""From stories and questions to their likeliest answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transduce.core.errors import InputError
from transduce.data.stories import story_of
from transduce.inference.labels import LabelPrediction, LabelPredictor
from transduce.inference.protocols import Advance
from transduce.search.settings import Search


@dataclass(frozen=True)
class StoryPredictor(LabelPredictor):
    """Each question its likeliest answer. The source of a prediction from JSON is the story in numbered lines."""

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[LabelPrediction]:
        """One a question, in their order."""
        return super().predict(model, [_plain(text) for text in texts], settings, batch_size, advance)


def _plain(text: str) -> str:
    """As it is where it cannot be read: whoever encodes it says so, with its line."""
    try:
        return story_of(text).text
    except InputError:
        return text
