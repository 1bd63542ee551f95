"""The formats that models are exported to, by file name: `onnx` is the class `ExportOnnx` of `export_onnx.py`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from transduce.core.registry import known, resolve

if TYPE_CHECKING:
    from transduce.interop.model_card import Languages
    from transduce.interop.parity import Engine
    from transduce.pipeline.pipeline import Pipeline

BEGINNING = "export_"


class Export(Protocol):
    """How a format is written, and what runs the result. A class with these needs no instance."""

    @staticmethod
    def write(pipeline: "Pipeline", folder: Path, languages: "Languages", **more: Any) -> Path:
        """The model into a folder that exists; returns what is to be run there.

        more: what only this format takes.

        Raises:
            InputError: this model cannot be written so.
        """
        ...

    @staticmethod
    def engine(pipeline: "Pipeline", written: Path) -> "Engine":
        """What runs what `write` returned, to be compared with the model."""
        ...


def export_names() -> list[str]:
    """What `transduce export --to` takes, read from the names of files."""
    return [name.removeprefix(BEGINNING) for name in known("interop") if name.startswith(BEGINNING)]


def export_format(name: str) -> type[Export]:
    """The class of a format. Raises InputError where there is none of this name."""
    found: type[Export] = resolve("interop", BEGINNING + name)
    return found
