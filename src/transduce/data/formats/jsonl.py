"""A JSON object a line; `translation.en` is the key `en` of an object in the object."""

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transduce.core.errors import InputError
from transduce.core.printable import NAMED
from transduce.data.files import read_lines
from transduce.data.formats.base import Format, Key, Row, named_lines
from transduce.data.tokenizers.patterns import SURROGATE

NOTHING = object()  # what a line holds that is no JSON


class JsonLine(NamedTuple):
    """What is at a line, and how it is written."""

    line: int
    value: Any
    written: str


class Jsonl(Format):
    """Objects may lack keys, so its columns are those of all objects."""

    counted = False
    sparse = True
    row_per_line = True
    what = "keys"

    def objects(self, path: Path) -> Iterator[JsonLine]:
        """What each line holds; blank lines hold nothing. Numbers are as they are written."""
        for number, line in enumerate(read_lines(path), 1):
            if line.strip():
                yield JsonLine(number, _parsed(line), line)

    def columns(self, path: Path) -> list[str]:
        """The keys of all objects, with those of objects in them."""
        found: dict[str, None] = {}
        for each in self.objects(path):
            found |= dict.fromkeys(_keys(each.value))
        return [*found]

    def text_columns(self, path: Path) -> list[str]:
        """The keys of the first object that hold texts."""
        first = next(iter(self.objects(path)), None)
        return _text_keys(first.value) if first else []

    def rows(self, path: Path, keys: Sequence[Key], optional: Collection[Key] = ()) -> Iterator[Row]:
        """As `Format.rows`.

        Raises:
            InputError: lines that are no objects, lack a key, or have something else there than text, a number or
                true; half a character, which JSON can write and UTF-8 cannot.
        """
        names, wrong, halves = [str(key) for key in keys], list[JsonLine](), list[int]()
        for each in self.objects(path):
            texts = _texts(each.value, names, optional)
            if texts is None:
                wrong.append(each)
            elif "\\u" in each.written and any(map(SURROGATE.search, texts)):
                halves.append(each.line)
            elif not wrong and not halves:
                yield each.line, texts
        if wrong:
            raise _no_objects(path, names, wrong)
        if halves:
            raise InputError(
                f"{path}, {named_lines(halves)}: expected text; got half a character (a lone surrogate), such as "
                "\\ud83d without the \\ude00 that makes it 😀. Correct or delete it."
            )


def parsed(text: str) -> Any:
    """JSON with numbers as they are written. Raises ValueError, RecursionError where it is none."""
    return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=_no_number)


class _Number(str):
    """A number as it is written."""


def _parsed(line: str) -> Any:
    try:
        return parsed(line)
    except (ValueError, RecursionError):
        return NOTHING


def _no_number(name: str) -> str:
    raise ValueError(f"{name} is no JSON")


def _texts(found: Any, names: Sequence[str], optional: Collection[Key]) -> list[str] | None:
    """The texts of an object; None: it lacks one of them."""
    try:
        texts = [_or_empty(found, name) if name in optional else _value(found, name) for name in names]
    except (KeyError, TypeError):
        return None
    return None if None in texts else [str(text) for text in texts]


def _value(found: Any, key: str) -> str | None:
    """A text; a number or true, as written; None: anything else. Raises KeyError, TypeError where there is none."""
    if not isinstance(found, dict):
        raise TypeError
    if key not in found and "." in key:
        outer, _, inner = key.partition(".")
        return _value(found[outer], inner)
    value = found[key]
    if isinstance(value, bool):
        return json.dumps(value)
    return value if isinstance(value, str) else None


def _or_empty(found: Any, key: str) -> str | None:
    """The same, "" for null and where there is none."""
    inner = found
    for part in [key] if key in found else key.split(".", 1):
        inner = inner.get(part) if isinstance(inner, dict) else inner
    return "" if inner is None else _value(found, key)


def _keys(found: Any) -> Iterator[str]:
    for key, value in found.items() if isinstance(found, dict) else ():
        yield key
        if isinstance(value, dict):
            yield from (f"{key}.{inner}" for inner in value)


def _text_keys(found: Any, above: str = "") -> list[str]:
    keys = list[str]()
    for key, value in found.items() if isinstance(found, dict) else ():
        if isinstance(value, str) and not isinstance(value, _Number):
            keys.append(f"{above}{key}")
        elif not above:
            keys += _text_keys(value, f"{key}.")
    return keys


def _no_objects(path: Path, names: Sequence[str], wrong: Sequence[JsonLine]) -> InputError:
    first, wanted = wrong[0], ", ".join(f'"{name}": ..' for name in names)
    more = f"; {named_lines([each.line for each in wrong])} are wrong" if len(wrong) > 1 else ""
    others = _text_keys(first.value)
    hint = ""
    if others and not {*names} <= {*others}:
        hint = f". It has texts in {', '.join(others[:NAMED])}: name the columns that are meant."
    return InputError(
        f"{path}, line {first.line}: expected an object {{{wanted}}} of texts; got {first.written[:60]}{more}{hint}"
    )
