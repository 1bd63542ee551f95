"""Comma-separated values with a header; semicolons or tabs separate them where the header has no comma."""

import csv
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from transduce.core.errors import InputError
from transduce.data.files import read_lines
from transduce.data.formats.base import Format, Key, Row, named_lines, picked, places_of

LONGEST_CELL = 1 << 24  # characters
ROW_LINES = 100_000  # of a row
ROWS_IN_A_CELL = 3  # lines that are rows, from which a cell is taken to have swallowed them


class Csv(Format):
    """Its first line is a header always; a row has the number of its last line."""

    def header(self, path: Path) -> bool:
        """Always."""
        return True

    def columns(self, path: Path) -> list[str]:
        """The cells of its first row. Raises InputError where it cannot be read."""
        return next((row for _, row in _csv(path)), [])

    def rows(self, path: Path, keys: Sequence[Key], optional: Collection[Key] = ()) -> Iterator[Row]:
        """As `Format.rows`. Raises InputError also naming rows with more cells, and for a quote that swallows rows."""
        rows = _csv(path)
        header = next((row for _, row in rows), [])
        filled = ((number, row) for number, row in rows if len(row) > 1 or "".join(row).strip())
        return picked(path, places_of(path, header, keys), _as_wide(path, filled, len(header)))


def _as_wide(path: Path, rows: Iterable[Row], width: int) -> Iterator[Row]:
    """The rows. Raises InputError naming those with more cells than the header, but for empty ones at their ends."""
    wide: list[int] = []
    for number, row in rows:
        if len(row) > width and any(row[width:]):
            wide.append(number)
        elif not wide:
            yield number, row
    if wide:
        raise InputError(
            f"{path}: expected {width} cells in every row, as in the header; {len(wide):,} have more "
            f"({named_lines(wide)}). Put a text that has a comma between quotes, or name the column in the header."
        )


def _csv(path: Path) -> Iterator[Row]:
    """Its rows, the header first. Where that has no comma, as Excel writes in many countries, semicolons or tabs."""
    first = next(iter(read_lines(path)), "")
    between = next((each for each in ",;\t" if each in first), ",")
    lines = list[str]()  # of one row
    reader = csv.reader(_noted(path, read_lines(path), lines), delimiter=between)
    csv.field_size_limit(LONGEST_CELL)
    width = 0
    while True:
        before = reader.line_num
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise InputError(f"{path}, line {before + 1}: {_unreadable(error, lines)}") from error
        if row is None:
            return
        width = width or len(row)
        if len(lines) > 1 and _swallowed(lines, between, width):
            raise InputError(f"{path}, line {before + 1}: {_open_quote(before + 1, reader.line_num)}")
        lines.clear()
        yield reader.line_num, row


def _noted(path: Path, lines: Iterable[str], noted: list[str]) -> Iterator[str]:
    """The lines, of which `noted` keeps those of a row. Raises InputError for a row that does not end."""
    for number, line in enumerate(lines, 1):
        noted.append(line + "\n")
        if len(noted) > ROW_LINES:
            raise InputError(f"{path}, line {number - ROW_LINES}: {_open_quote(number - ROW_LINES, number)}")
        yield noted[-1]


def _unreadable(error: csv.Error, lines: Sequence[str]) -> str:
    """Why a row cannot be read, and what to do."""
    if "field larger" in str(error):
        return f"a cell has more than {LONGEST_CELL:,} characters. Is a quote in it that nothing closes?"
    if "\r" in lines[-1].rstrip("\r\n"):
        return "its lines end in a bare carriage return. Write them with line feeds: tr '\\r' '\\n' < OLD > NEW."
    return f"expected a row of a .csv; it cannot be read: {error}."


def _swallowed(lines: Sequence[str], between: str, width: int) -> bool:
    """Whether a cell of several lines is one by a stray quote: it is not closed well, or what it holds are rows."""
    try:
        [*csv.reader(lines, delimiter=between, strict=True)]
        rows = [len(row) for row in csv.reader(lines[1:-1], delimiter=between)]
    except csv.Error:
        return True
    return len(rows) >= ROWS_IN_A_CELL and {*rows} == {width}


def _open_quote(first: int, last: int) -> str:
    return (
        f'a cell begins with a quote (") and would hold everything up to line {last}. Write a quote that belongs to '
        f'the text twice, in a cell between quotes: """Yes"", she said."; or delete it.'
    )
