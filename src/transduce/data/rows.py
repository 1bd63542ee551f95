"""Rows of tables in text: .csv with a header, .jsonl with an object a line, tab-separated lines; by columns."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.printable import listed
from transduce.data.files import read_lines, text_lines
from transduce.data.patterns import SURROGATE

NAMED = 5  # lines of a message
LONGEST_CELL = 1 << 24  # characters, in a .csv
ROW_LINES = 100_000  # of a row
ROWS_IN_A_CELL = 3  # lines that are rows of the .csv, from which a cell is taken to have swallowed them
Key = int | str  # a column's number from 0, or its name
Row = tuple[int, list[str]]  # line number from 1, the columns asked for, in their order


def tsv_rows(path: Path, keys: Sequence[Key]) -> Iterator[Row]:
    """Of a tab-separated file. Raises InputError naming lines with fewer columns; for a column by name."""
    return _picked(path, keys, ((number, line.split("\t")) for number, line in enumerate(text_lines(path), 1)))


def csv_header(path: Path) -> list[str]:
    """The names of a .csv's columns. Raises InputError where its first row cannot be read."""
    return next((row for _, row in _csv(path)), [])


def csv_has(path: Path, key: Key) -> bool:
    """Whether a .csv has a column. Raises InputError as `csv_header`."""
    header = csv_header(path)
    return key in header if isinstance(key, str) else key < len(header)


def csv_rows(path: Path, keys: Sequence[Key]) -> Iterator[Row]:
    """Of a .csv; a row has the number of its last line.

    Raises InputError for columns that its header does not have or has twice, naming lines with fewer or more; for a
    quote that swallows rows.
    """
    rows = _csv(path)
    header = next((row for _, row in rows), [])
    places = places_of(path, header, keys)
    found = [places.get(key, key) if isinstance(key, str) else key for key in keys]
    if wrong := [each for each in found if isinstance(each, str)]:
        wanted, there = listed([*dict.fromkeys(wrong)]), listed(header) or "nothing"
        raise InputError(f"{path}: expected columns {wanted}; its header has {there}.")
    return _picked(path, found, _as_wide(path, rows, len(header)))


def places_of(path: Path, header: Sequence[str], keys: Sequence[Key]) -> dict[str, int]:
    """Where each column is. Raises InputError where one of those asked for by name is there twice."""
    if twice := [key for key in dict.fromkeys(keys) if isinstance(key, str) and header.count(key) > 1]:
        raise InputError(f"{path}, line 1: the column {twice[0]} is there twice. Rename one of them, or leave it out.")
    return {name: place for place, name in enumerate(header)}


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
            f"({_lines(wide)}). Put a text that has a comma between quotes, or name the column in the header."
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


def jsonl_rows(path: Path, keys: Sequence[str], optional: str = "") -> Iterator[Row]:
    """Of objects, one a line; `translation.en` is the key of an object in an object. Blank lines are none.

    optional: one of the keys, which gives "" where it is missing or null.

    Raises InputError for lines that are no objects, lack a key, or have something else than text or a number there; for
    half characters, which JSON can write and UTF-8 cannot.
    """
    wrong: list[tuple[int, str]] = []
    halves: list[int] = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_int=str, parse_float=str, parse_constant=_no_number)
            found = [_or_empty(row, key) if key == optional else _value(row, key) for key in keys]
        except (ValueError, KeyError, TypeError, RecursionError):
            found = [None]
        if None in found:
            wrong.append((number, line))
        elif "\\u" in line and any(SURROGATE.search(each) for each in found if each):
            halves.append(number)
        elif not wrong and not halves:
            yield number, [each for each in found if each is not None]
    if halves and not wrong:
        raise InputError(
            f"{path}, {_lines(halves)}: expected text; got half a character (a lone surrogate), such as "
            "\\ud83d without the \\ude00 that makes it 😀. Correct or delete it."
        )
    if wrong:
        (number, line), wanted = wrong[0], ", ".join(f'"{key}": ..' for key in keys)
        others = _others(line, keys)
        more = f"; {_lines([each for each, _ in wrong])} are wrong" if len(wrong) > 1 else ""
        raise InputError(
            f"{path}, line {number}: expected an object {{{wanted}}} of texts; got {line[:60]}{more}{others}"
        )


def jsonl_keys(path: Path) -> list[str]:
    """The keys that objects have, of which some may lack some; `translation.en` is one of an object in an object."""
    found: dict[str, None] = {}
    for line in read_lines(path):
        if line.strip():
            found |= dict.fromkeys(_keys_of(line))
    return [*found]


def text_keys(path: Path) -> list[str]:
    """The keys of the first object that hold texts; `translation.en` is one of an object in an object."""
    first = next((line for line in read_lines(path) if line.strip()), "")
    try:
        return _text_keys(json.loads(first))
    except (ValueError, RecursionError):  # which `jsonl_rows` tells
        return []


def _keys_of(line: str) -> Iterator[str]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):  # which `jsonl_rows` tells
        return
    for key, value in row.items() if isinstance(row, dict) else ():
        yield key
        if isinstance(value, dict):
            yield from (f"{key}.{inner}" for inner in value)


def _no_number(name: str) -> str:
    raise ValueError(f"{name} is no JSON")


def _value(row: Any, key: str) -> str | None:
    """A text; a number or true, as written; None: anything else. Raises KeyError, TypeError where there is none."""
    if not isinstance(row, dict):
        raise TypeError
    if key not in row and "." in key:
        outer, _, inner = key.partition(".")
        return _value(row[outer], inner)
    value = row[key]
    if isinstance(value, bool):
        return json.dumps(value)
    return value if isinstance(value, str) else None


def _or_empty(row: Any, key: str) -> str | None:
    """The same, "" for null and where there is none."""
    inner = row
    for part in [key] if key in row else key.split(".", 1):
        inner = inner.get(part) if isinstance(inner, dict) else inner
    return "" if inner is None else _value(row, key)


def _others(line: str, keys: Sequence[str]) -> str:
    """What a line has instead of the keys, as a hint."""
    try:
        names = _text_keys(json.loads(line))
    except (ValueError, RecursionError):
        return ""
    if not names or {*keys} <= {*names}:
        return ""
    return f". It has texts in {', '.join(names[:NAMED])}: name the columns that are meant."


def _text_keys(row: Any, above: str = "") -> list[str]:
    if not isinstance(row, dict):
        return []
    found = list[str]()
    for key, value in row.items():
        if isinstance(value, str):
            found.append(f"{above}{key}")
        elif not above:
            found += _text_keys(value, f"{key}.")
    return found


def _picked(path: Path, keys: Sequence[Key], rows: Iterable[Row]) -> Iterator[Row]:
    if wrong := [each for each in keys if isinstance(each, str)]:
        raise InputError(f"{path}: columns have names in .csv and .jsonl alone; expected numbers, got {wrong}.")
    places = [int(key) for key in keys]
    wanted = max(places) + 1
    short: list[int] = []
    for number, row in rows:
        if len(row) < wanted:
            short.append(number)
        elif not short:
            yield number, [row[each] for each in places]
    if short:
        raise InputError(
            f"{path}: expected {wanted} columns in every line; {len(short):,} have fewer ({_lines(short)})."
        )


def _lines(numbers: Sequence[int]) -> str:
    named = ", ".join(map(str, numbers[:NAMED])) + (", …" if len(numbers) > NAMED else "")
    return f"line {named}" if len(numbers) == 1 else f"lines {named}"
