"""Every format that models are exported to: how it is written, and what runs the result."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from transduce.interop.export_argos import ArgosEngine, export_argos
from transduce.interop.export_ctranslate2 import CTranslate2Engine, export_ctranslate2
from transduce.interop.export_huggingface import HuggingFaceEngine, export_huggingface
from transduce.interop.export_marian import export_marian
from transduce.interop.export_onnx import OnnxEngine, export_onnx
from transduce.interop.marian_engine import MarianEngine
from transduce.interop.model_card import Languages
from transduce.interop.parity import Engine

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline


class Export(NamedTuple):
    """write: the model into a folder that exists; returns what is to be run there. engine: runs it."""

    write: "Callable[[Pipeline, Path, Languages], Path]"
    engine: "Callable[[Pipeline, Path], Engine]"


EXPORTS: dict[str, Export] = {
    "argos": Export(export_argos, ArgosEngine),
    "ctranslate2": Export(export_ctranslate2, CTranslate2Engine),
    "huggingface": Export(export_huggingface, HuggingFaceEngine),
    "marian": Export(export_marian, MarianEngine),
    "onnx": Export(export_onnx, OnnxEngine),
}
"""By the name that `transduce export --to` takes."""
