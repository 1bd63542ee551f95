"""Second searches for models that the kernels compute: torch is loaded when an output first lacks something."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import Prediction
from transduce.inference.second_search import Wanted
from transduce.inference.splitting import Pieces

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

Again = Callable[[PredictionOptions, Pieces, Sequence[Wanted]], list[Prediction | None]]


def searching_again(load: "Callable[[], Pipeline]") -> Again:
    """What `transduce.without_torch.translator.Translator.again` is, with the same model as `load` gives it."""
    loaded = cache(load)

    def again(options: PredictionOptions, pieces: Pieces, wanted: Sequence[Wanted]) -> list[Prediction | None]:
        from transduce.inference.decode import search_again  # late: it imports torch
        from transduce.search.settings import search_settings

        pipeline = loaded()
        settings = search_settings(pipeline.recipe.search, options.search)
        return search_again(pipeline.searched, settings, options, (), pieces, wanted)

    return again
