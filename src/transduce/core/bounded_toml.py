"""A TOML reader for untrusted files, whose time and memory are bounded by the length of the text.

tomllib takes time and memory that grow with the square of a dotted key's length, and reads hexadecimal numbers that
Python does not write again.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transduce.core.bounded_file import open_regular

LARGEST = 1_000_000  # bytes
DEEPEST = 16  # names with points between; keys of recipes have four
BITS = 64  # of a whole number, as TOML has them
PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
DEEP = re.compile(rf"(?<![\w-])(?:{PART}[ \t]*+\.[ \t]*+){{{DEEPEST}}}{PART}")


def toml_file(path: Path) -> dict[str, Any]:
    """The table in a file.

    Raises:
        OSError: it cannot be read, or is no regular file.
        ValueError, RecursionError: as `toml_table`; it is too large, or not UTF-8.
    """
    return toml_table(toml_text(path))


def toml_text(path: Path) -> str:
    """The text of a file, with lines that end as they do anywhere. Raises OSError and ValueError as `toml_file`."""
    with open_regular(path) as file:
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise ValueError(f"it has more than {LARGEST:,} bytes")
    return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")  # some editors begin with U+FEFF


def toml_table(text: str) -> dict[str, Any]:
    """The table in a text.

    Raises:
        ValueError, RecursionError: it is not TOML; its keys are too deep, or a number too large.
    """
    if found := DEEP.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"line {line}: expected keys with at most {DEEPEST} parts; got {found[0][:40]}…")
    table = tomllib.loads(text)
    if any(number.bit_length() > BITS for number in _whole_numbers(table)):
        raise ValueError(f"expected whole numbers of at most {BITS} bits; one has more")
    return table


def _whole_numbers(table: dict[str, Any]) -> Iterator[int]:
    waiting: list[Any] = [table]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list):
            waiting += value.values() if isinstance(value, dict) else value
        elif isinstance(value, int):
            yield value
