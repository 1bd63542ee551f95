"""`transduce predict MODEL --source letter.docx --output letter.fr.docx`: a document in, a document out."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from transduce.inference.loaded_model import LoadedModel
    from transduce.inference.options import PredictionOptions
    from transduce.pipeline.document_files import ReadsPieces

OF_LINES = {".txt"}  # the same translated line by line, as all other files are
COMPRESSED = {".gz", ".zst", ".xz"}  # files of lines
TABLES = {".tmx", ".json", ".xlsx"}  # of inputs, unless the output is one, too


def is_document(source: Path | None, source_column: Sequence[str] | None, output: str | None) -> bool:
    """Whether a file is to be translated as a document.

    Those that are tables of inputs elsewhere (.tmx, .json, .xlsx) are documents where the output is named as such.

    Raises:
        InputError: it is a PDF, a picture, or another file without lines of text.
    """
    ending = source.suffix.lower() if source else ""
    if source is None or ending in OF_LINES | COMPRESSED:
        return False
    from transduce.documents.formats import FORMATS  # late: lines of text need none

    if ending not in FORMATS:
        _refuse_foreign(source)
    if ending not in FORMATS or source_column:
        return False
    return ending not in TABLES or (output is not None and Path(output).suffix.lower() == ending)


def _refuse_foreign(source: Path) -> None:
    from transduce.core.errors import InputError
    from transduce.core.foreign_files import told_of_foreign

    if source.is_file():
        with source.open("rb") as file:
            told = told_of_foreign(source.name, file.read(16))
        if told:
            raise InputError(f"{source}: there are no lines of text in it.{told}.")


def translates(model: "LoadedModel") -> "TypeGuard[ReadsPieces]":
    """Whether a model translates texts."""
    from transduce.core.errors import InputError
    from transduce.pipeline.document_files import check_translates

    try:
        check_translates(model)
    except InputError:
        return False
    return True


def write_document(
    model: "ReadsPieces", source: Path, output: str | None, options: "PredictionOptions", unfit: Mapping[str, object]
) -> None:
    """Translate a document into a file, or a text to standard output.

    Args:
        unfit: options about single outputs, by their names, with what was given.

    Raises:
        InputError: as `transduce.pipeline.document_files.translate_file`; an option is unfit; a binary file has no
            output.
    """
    from transduce.cli.text import bar, tell
    from transduce.core.errors import InputError
    from transduce.data.files import read_whole, writing
    from transduce.documents.formats import format_of
    from transduce.inference.prediction import told_lines
    from transduce.pipeline.document_files import check_ending, translated_document

    if given := [name for name, value in unfit.items() if value]:
        raise InputError(
            f"{', '.join(given)}: {source.name} is translated as a document. Leave this out, or translate its lines: "
            f"transduce predict MODEL < {source.name}"
        )
    if output is not None:
        check_ending(source, output)
    elif format_of(source.name).binary:
        raise InputError(f"{source}: cannot be written to a terminal; name a file: --output NAME{source.suffix}")
    content = read_whole(source)
    with bar("translating", None) as advance:
        made, predictions = translated_document(
            model, source.name, content, replace(options, tell=tell, advance=advance)
        )
    for line in told_lines(predictions):
        tell(line)
    if not predictions:
        tell(f"{source}: there was nothing to translate: no text, or a translation of all of it.")
    if output is not None:
        with writing(output) as file:
            file.write(made)
    elif sys.stdout is not None:
        sys.stdout.buffer.write(made)
