"""A JSON reader for untrusted files, whose time and memory are bounded by the length of the text.

Python objects can take 20 times the memory of the JSON text. So implausible input is rejected before it is converted.
"""

import json
import math
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]  # which typeshed leaves out
from typing import Any

TABLE_LIMIT, VALUES_LIMIT = 1_000_000, 4_000  # characters and values of settings and figures
DEPTH_LIMIT, DIGITS_LIMIT = 50, 20  # tables in tables, digits of a whole number
NAME_LIMIT, VALUE_LIMIT, MEMBERS_LIMIT = 500, 1000, 20_000  # characters, characters, number
DECODER = json.JSONDecoder()
SPACES = re.compile(r"[ \t\n\r]*")

Read = Callable[[str, int], tuple[Any, int]]  # of a name's value, which begins there: what it is, and where it ends


def table_of_settings(text: str) -> dict[str, Any]:
    """A JSON object that is no longer, no deeper and with no longer numbers than settings and figures are.

    Raises:
        ValueError: it is none such; what is wrong with it goes on from "it".
    """
    if len(text) > TABLE_LIMIT:
        raise ValueError(f"has {len(text):,} characters; the limit is {TABLE_LIMIT:,}")
    found = json.loads(text, parse_int=_integer, parse_float=_float, parse_constant=_float)
    if not isinstance(found, dict):
        raise ValueError("is not a table")
    waiting: list[tuple[Any, int]] = [(found, 1)]
    values = 0
    while waiting:
        value, depth = waiting.pop()
        values += len(value)
        if depth > DEPTH_LIMIT or values > VALUES_LIMIT:
            raise ValueError(f"is nested more than {DEPTH_LIMIT} deep, or has more than {VALUES_LIMIT:,} values")
        below = value.values() if isinstance(value, dict) else value
        waiting += [(each, depth + 1) for each in below if isinstance(each, dict | list)]
    json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is in no UTF-8
    return found


def table_of_texts(text: str) -> dict[str, str]:
    """A JSON object whose values are texts, which may be long.

    Raises:
        ValueError: it is none such; what is wrong with it goes on from "it".
    """
    if text and text[_skip(text, 0) : _skip(text, 0) + 1] in ("[", '"'):
        raise ValueError("is not a table")
    return _whole_text(text, lambda name, at: _value_text(text, at, "does not map names to texts"))


def table_of_values(text: str, long: str) -> dict[str, Any]:
    """A JSON object of short values by name, and under the name `long` a table of texts, which may be long.

    Raises:
        ValueError: it is none such; what is wrong with it goes on from "it".
    """

    def read(name: str, at: int) -> tuple[Any, int]:
        if name != long:
            return _short(text, at)
        return _members(text, at, lambda key, place: _value_text(text, place, "has metadata that is not text"))

    return _whole_text(text, read)


def what(error: Exception) -> str:
    """What is wrong with a text, of what was raised by the above."""
    return str(error) if type(error) is ValueError else f"is not JSON ({error})"


def _whole_text(text: str, read: Read) -> dict[str, Any]:
    found, end = _members(text, 0, read)
    if _skip(text, end) != len(text):
        raise ValueError(f"is not JSON (something follows its end at character {end})")
    return found


def _members(text: str, at: int, read: Read) -> tuple[dict[str, Any], int]:
    """The JSON object that begins at `at`, and where it ends."""
    found: dict[str, Any] = {}
    at = _skip(text, at)
    if text[at : at + 1] != "{":
        raise ValueError("is not a JSON object")
    at = _skip(text, at + 1)
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        if text[at : at + 1] != '"':
            raise ValueError(f"is not JSON (expected a name at character {at})")
        name, at = _text(text, at)
        if name in found:
            raise ValueError(f'is not JSON (a key appears twice: "{name[:80]}")')
        if len(name) > NAME_LIMIT or len(found) == MEMBERS_LIMIT:
            raise ValueError(f"has more than {MEMBERS_LIMIT:,} members, or a name of more than {NAME_LIMIT} characters")
        found[name], at = read(name, _skip(text, _sign(text, at, ":") + 1))
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return found, at + 1
        at = _skip(text, _sign(text, at, ",") + 1)


def _sign(text: str, at: int, sign: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] != sign:
        raise ValueError(f'is not JSON (expected "{sign}" at character {at})')
    return at


def _skip(text: str, at: int) -> int:
    found = SPACES.match(text, at)
    assert found
    return found.end()


def _text(text: str, at: int) -> tuple[str, int]:
    """The JSON text that begins at `at`, and where it ends."""
    found, end = scanstring(text, at + 1)
    found.encode()  # half of a surrogate pair is in no UTF-8
    return found, end


def _value_text(text: str, at: int, otherwise: str) -> tuple[str, int]:
    if text[at : at + 1] != '"':
        raise ValueError(otherwise)
    return _text(text, at)


def _short(text: str, at: int) -> tuple[Any, int]:
    """Any JSON value of at most `VALUE_LIMIT` characters, and where it ends."""
    piece = text[at : at + VALUE_LIMIT]
    try:
        value, length = DECODER.raw_decode(piece)
    except json.JSONDecodeError:
        if len(piece) == VALUE_LIMIT:
            raise ValueError(f"is not JSON, or has a value of more than {VALUE_LIMIT} characters") from None
        raise
    return value, at + length


def _integer(digits: str) -> int:
    if len(digits) > DIGITS_LIMIT:
        raise ValueError(f"has a number of {len(digits):,} digits")
    return int(digits)


def _float(digits: str) -> float:
    if not math.isfinite(number := float(digits)):
        raise ValueError(f"has the number {digits[:20]}")
    return number
