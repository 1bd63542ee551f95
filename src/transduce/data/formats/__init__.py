"""Formats of files that hold rows of texts in columns: one file each, which everything that reads tables goes through.

`format_of(path)` finds a format by the file's suffix; a recipe may name it, also a class of your own as
`my_file:MyFormat`. docs/extend.md shows how one is added.
"""

from functools import cache
from pathlib import Path

from transduce.core.errors import InputError
from transduce.core.registry import known, resolve
from transduce.data.files import suffix_of
from transduce.data.formats.base import Format, Key, Row
from transduce.data.formats.tsv import Tsv

__all__ = ["Format", "Key", "Row", "format_name", "format_of", "is_table", "suffixes"]


@cache
def suffixes() -> dict[str, str]:
    """The names of formats by the suffixes of their files."""
    return {f".{name}": name for name in known("data.formats")}


def is_table(path: Path) -> bool:
    """Whether a file's suffix is that of a format."""
    return suffix_of(path) in suffixes()


def format_name(path: Path) -> str:
    """The name of a file's format, by its suffix; any other file is tab-separated."""
    return suffixes().get(suffix_of(path), "tsv")


def format_of(path: Path, name: str | None = None, separator: str | None = None) -> Format:
    """The format of a file, by its suffix where no name is given; any other file is tab-separated.

    Args:
        name: of a format, or `my_file:MyFormat`.
        separator: what stands between the columns of a tab-separated file, where it is no tab.

    Raises:
        InputError: there is no format of this name, or it is code that was not allowed; a separator of another one.
    """
    kind = name or format_name(path)
    if separator and kind != "tsv":
        raise InputError(f"{path}: separator: {kind} has its own. Leave it out.")
    found: Format = Tsv(separator) if separator else resolve("data.formats", kind)()
    return found
