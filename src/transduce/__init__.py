"""Transduce: attention and sequence models, trained, searched, scored and seen.

    model = transduce.load("runs/multi30k-en-de")
    model.predict(["Two dogs run."])[0].text

Importing this package imports neither torch nor anything else that is slow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError, Interrupted, TransduceError
from transduce.version import __version__

if TYPE_CHECKING:
    from transduce.api.evaluate import evaluate
    from transduce.api.explorer import ExplorerPage, explorer
    from transduce.api.train import TrainedRun, TrainingUpdate, train
    from transduce.attention.capture import capture
    from transduce.attention.interventions import Place
    from transduce.evaluation.result import Evaluation
    from transduce.metrics.score import Score
    from transduce.pipeline.pipeline import Pipeline, load
    from transduce.recipe.recipe import Recipe

__all__ = [
    "Evaluation",
    "ExplorerPage",
    "InputError",
    "Interrupted",
    "Pipeline",
    "Place",
    "Recipe",
    "Score",
    "TrainedRun",
    "TrainingUpdate",
    "TransduceError",
    "__version__",
    "capture",
    "evaluate",
    "explorer",
    "load",
    "train",
]

LATE = {  # imported when they are first used
    "Evaluation": "transduce.evaluation.result",
    "ExplorerPage": "transduce.api.explorer",
    "Pipeline": "transduce.pipeline.pipeline",
    "Place": "transduce.attention.interventions",
    "Recipe": "transduce.recipe.recipe",
    "Score": "transduce.metrics.score",
    "TrainedRun": "transduce.api.train",
    "TrainingUpdate": "transduce.api.train",
    "capture": "transduce.attention.capture",
    "evaluate": "transduce.api.evaluate",
    "explorer": "transduce.api.explorer",
    "load": "transduce.pipeline.pipeline",
    "train": "transduce.api.train",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in LATE:
        return getattr(import_module(LATE[name]), name)
    raise AttributeError(f"module 'transduce' has no attribute {name!r}")
