"""Rows of tables in text: .csv with a header, .jsonl with an object a line, tab-separated lines; by columns."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError
from transduce.data.files import read_lines, text_lines

if TYPE_CHECKING:
    from _csv import Reader

NAMED = 5  # lines of a message
Key = int | str  # a column's number from 0, or its name
Row = tuple[int, list[str]]  # line number from 1, the columns asked for, in their order


def tsv_rows(path: Path, keys: Sequence[Key]) -> Iterator[Row]:
    """Of a tab-separated file. Raises InputError naming lines with fewer columns; for a column by name."""
    return _picked(path, keys, ((number, line.split("\t")) for number, line in enumerate(text_lines(path), 1)))


def csv_header(path: Path) -> list[str]:
    """The names of a .csv's columns."""
    return next(_csv(path), [])


def csv_rows(path: Path, keys: Sequence[Key]) -> Iterator[Row]:
    """Of a .csv. Raises InputError for columns that its header does not have, naming lines with fewer."""
    read = _csv(path)
    header = next(read, [])
    places = {name: place for place, name in enumerate(header)}
    found = [places.get(key, key) if isinstance(key, str) else key for key in keys]
    if wrong := [each for each in found if isinstance(each, str)]:
        raise InputError(
            f"{path}: expected columns {', '.join(wrong)}; its header has {', '.join(header) or 'nothing'}."
        )
    return _picked(path, found, ((read.line_num, row) for row in read))


def _csv(path: Path) -> "Reader":
    """Its rows, the header first. Where that has no comma, as Excel writes in many countries, semicolons or tabs."""
    first = next(iter(read_lines(path)), "")
    between = next((each for each in ",;\t" if each in first), ",")
    return csv.reader((line + "\n" for line in read_lines(path)), delimiter=between)


def jsonl_rows(path: Path, keys: Sequence[str]) -> Iterator[Row]:
    """Of objects, one a line; `translation.en` is the key of an object in an object. Blank lines are none.

    Raises InputError for lines that are no objects, lack a key, or have something else than text or a number there.
    """
    wrong: list[tuple[int, str]] = []
    for number, line in enumerate(read_lines(path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            found = [_value(row, key) for key in keys]
        except (ValueError, KeyError, TypeError, RecursionError):
            found = [None]
        if None in found:
            wrong.append((number, line))
        elif not wrong:
            yield number, [str(each) for each in found]
    if wrong:
        (number, line), wanted = wrong[0], ", ".join(f'"{key}": ..' for key in keys)
        others = _others(line, keys)
        more = f"; {_lines([each for each, _ in wrong])} are wrong" if len(wrong) > 1 else ""
        raise InputError(
            f"{path}, line {number}: expected an object {{{wanted}}} of texts; got {line[:60]}{more}{others}"
        )


def _value(row: Any, key: str) -> str | int | float | None:
    """None: it is neither text nor a number. Raises KeyError, TypeError where there is none."""
    if not isinstance(row, dict):
        raise TypeError
    if key not in row and "." in key:
        outer, _, inner = key.partition(".")
        return _value(row[outer], inner)
    value = row[key]
    return value if isinstance(value, str | int | float) else None


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
