"""Transduce: attention and sequence models, trained, searched, scored and seen.

    model = transduce.load("runs/multi30k-en-de")
    model.predict(["Two dogs run."])[0].text

Importing this package imports neither torch nor anything else that is slow.
"""

from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError, Interrupted, TransduceError
from transduce.version import __version__

if TYPE_CHECKING:
    from transduce.attention.capture import capture
    from transduce.pipeline.pipeline import load

__all__ = ["InputError", "Interrupted", "TransduceError", "__version__", "capture", "load"]


def __getattr__(name: str) -> Any:
    if name == "load":
        from transduce.pipeline.pipeline import load

        return load
    if name == "capture":
        from transduce.attention.capture import capture

        return capture
    raise AttributeError(f"module 'transduce' has no attribute {name!r}")
