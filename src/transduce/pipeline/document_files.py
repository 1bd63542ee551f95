"""Translate a document: its file in, the same file with translated text out. Nothing here imports torch."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from transduce.core.destination import check_output
from transduce.core.errors import InputError
from transduce.data.files import read_whole, suffix_of, writing
from transduce.documents.bilingual import FileLanguages
from transduce.documents.formats import format_of, opened
from transduce.documents.runs import Link, Piece
from transduce.inference.loaded_model import LoadedModel
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import Prediction
from transduce.inference.sentences import Split
from transduce.inference.splitting import LongText, Pieces

OF_EACH = ("must", "prefix", "constraints", "lattice", "on_step")  # options that are about single outputs


class ReadsPieces(LoadedModel, Protocol):
    """A model that tells how it reads texts."""

    def pieces(self, texts: Sequence[str], split: Split = "auto", long: LongText = "split") -> Pieces: ...


@runtime_checkable
class ShowsAttention(Protocol):
    """A model that shows what it attended to. attends: whether it does."""

    @property
    def attends(self) -> bool: ...

    def attention(self, prediction: Prediction) -> Any: ...


class TranslatedDocument(NamedTuple):
    """A file, and what the model said of each segment of its text, in order."""

    content: bytes
    predictions: list[Prediction]


def translated_document(
    model: ReadsPieces, name: str, content: bytes, options: PredictionOptions
) -> TranslatedDocument:
    """The file with its text translated.

    Args:
        name: says its format, and is what messages call it.

    Raises:
        InputError: it cannot be read; the model does not translate; something is asked of single outputs.
    """
    check_translates(model)
    if refused := [each for each in options.asked_of_outputs if each in OF_EACH]:
        raise InputError(f"{', '.join(refused)}: a document has many texts; these are for single ones. Leave them out.")
    languages = languages_of(model.config, options.to)
    cut = opened(name, content, languages).cut(lambda text: _is_whole(model, text, options.split), languages.source)
    texts = [piece.text for piece in cut.pieces]
    found = model.predict_all(texts, replace(options, split="none")) if texts else []
    outputs = [(each.text, links_of(model, piece, each)) for piece, each in zip(cut.pieces, found, strict=True)]
    return TranslatedDocument(cut.rejoined(outputs), found)


def translate_file(
    model: ReadsPieces, source: str | os.PathLike[str], output: str | os.PathLike[str], options: PredictionOptions
) -> list[Prediction]:
    """Translate a document into another file, which appears when all of it is there.

    Returns:
        What the model said of each segment of the text, in order.

    Raises:
        InputError: as `translated_document`; the output's name has another ending, or is that of the source.
    """
    path = Path(source)
    check_ending(path, os.fspath(output))
    check_output(output, [path])
    content, predictions = translated_document(model, path.name, read_whole(path), options)
    with writing(os.fspath(output)) as file:
        file.write(content)
    return predictions


def check_ending(source: Path, output: str) -> None:
    """Raises InputError where an output is named as another format than its source; for a source of no format."""
    format_of(source.name)
    if suffix_of(Path(output)) != suffix_of(source):
        raise InputError(
            f"{output}: {source.name} is translated as a document, which stays in its format: name the output with "
            f"{source.suffix}."
        )


def check_translates(model: LoadedModel) -> None:
    """Raises InputError for a model that does not translate texts."""
    kind = _task(model.config).get("kind")
    if kind != "translation" or model.source_tokenizer is None:
        raise InputError(f"documents are for models that translate; this one does {str(kind).replace('_', ' ')}.")


def languages_of(config: Mapping[str, Any], to: str = "") -> FileLanguages:
    """What a model reads and writes, as its recipe says. to: which of several languages it is to write."""
    task = _task(config)
    return FileLanguages(str(task.get("source") or ""), to or str(task.get("target") or ""))


def links_of(model: LoadedModel, piece: Piece, prediction: Prediction) -> Sequence[Link]:
    """Which words belong together, where a piece has codes inside and the model attends to all of it."""
    if not piece.tags or not isinstance(model, ShowsAttention) or not model.attends or not prediction.text.strip():
        return ()
    from transduce.interpret.links import links

    try:
        found = links(prediction, model.attention(prediction))
    except InputError:  # it was read in parts, or by several models
        return ()
    tag = len(prediction.source) - len(piece.text)  # of the language to write, in front of the text
    moved = (Link((start - tag, end - tag), output) for (start, end), output in found)
    return [each for each in moved if each.source[0] >= 0]


def _task(config: Mapping[str, Any]) -> Mapping[str, Any]:
    task = config.get("task")
    return task if isinstance(task, Mapping) else {}


def _is_whole(model: ReadsPieces, text: str, split: Split) -> bool:
    """Whether the model reads a text in one piece."""
    return len(model.pieces([text], split, "split").cuts[0]) <= 1
