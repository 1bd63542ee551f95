"""Excel's workbooks: the first sheet, whose first row names the columns.

openpyxl (extra `excel`) reads them row by row.
"""

import zipfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.data.files import archive_of, existing_file
from transduce.data.formats.base import Format, Key, Row, picked, places_of
from transduce.data.limits import RATIO, REPETITIVE


class Xlsx(Format):
    """Its first row is a header always. An empty cell is an empty text, an empty row is none."""

    def header(self, path: Path) -> bool:
        """Always."""
        return True

    def columns(self, path: Path) -> list[str]:
        """The cells of the first row. Raises InputError where the file is no workbook."""
        with _rows(path) as rows:
            return _header(rows)

    def about(self, path: Path) -> int:
        """Its rows, which are counted."""
        with _rows(path) as rows:
            return sum(1 for _ in rows)

    def rows(self, path: Path, keys: Sequence[Key], optional: Collection[Key] = ()) -> Iterator[Row]:
        """As `Format.rows`."""
        with _rows(path) as rows:
            places = places_of(path, _header(rows), keys)
            filled = ((number, row) for number, row in enumerate(rows, 2) if any(row))
            yield from picked(path, places, filled)


@contextmanager
def _rows(path: Path) -> Iterator[Iterator[list[str]]]:
    """The rows of the first sheet."""
    openpyxl = library("openpyxl", "reading .xlsx", "excel")
    path = existing_file(path)
    if archive := archive_of(path):
        raise InputError(f"{path}: a workbook cannot be read within {archive.name}. Unpack it first.")
    try:
        _check_size(path)
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        try:
            yield ([*map(_text, row)] for row in book.worksheets[0].iter_rows(values_only=True))
        finally:
            book.close()
    except (zipfile.BadZipFile, KeyError, IndexError, OSError, ValueError) as error:
        raise InputError(f"{path}: expected a workbook of Excel (.xlsx); it cannot be read: {error}.") from error


def _check_size(path: Path) -> None:
    """Raises InputError for a file that unpacks to far more than any table."""
    with zipfile.ZipFile(path) as archive:
        size = sum(each.file_size for each in archive.infolist())
    if size > max(REPETITIVE, RATIO * path.stat().st_size):
        raise InputError(f"{path}: unpacks to more than {RATIO} times its size, which no table does.")


def _header(rows: Iterator[list[str]]) -> list[str]:
    first = next(islice(rows, 1), list[str]())
    while first and not first[-1]:
        first.pop()
    return first


def _text(cell: Any) -> str:
    """As Excel shows it, but for its formats: 3 for 3.0."""
    if cell is None:
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
