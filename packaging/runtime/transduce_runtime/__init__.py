"""Translate with Transformers that Transduce trained, without torch.

model = transduce_runtime.load("runs/multi30k-en-de")
model.predict("Two dogs run.").text
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError, Interrupted, TransduceError
from transduce.version import __version__

if TYPE_CHECKING:
    from transduce.inference.prediction import Prediction
    from transduce.without_torch.translator import Translator, load

__all__ = ["InputError", "Interrupted", "Prediction", "TransduceError", "Translator", "__version__", "load"]

LATE = {  # imported when they are first used
    "Prediction": "transduce.inference.prediction",
    "Translator": "transduce.without_torch.translator",
    "load": "transduce.without_torch.translator",
}


def __getattr__(name: str) -> Any:
    if name in LATE:
        return getattr(import_module(LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
