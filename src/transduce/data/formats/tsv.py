"""Columns with a tab, or any other separator, between them. The first line may be a header."""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from pathlib import Path

from transduce.core.errors import InputError
from transduce.core.languages import BY_CODE
from transduce.data.files import text_lines
from transduce.data.formats.base import Format, Key, Row, picked, places_of

SIDES = {"source", "src", "input"}, {"target", "tgt", "trg", "output"}
WORDS = (
    *("text", "label", "labels", "id", "class", "category", "sentence", "sentence1", "sentence2", "premise"),
    *("hypothesis", "question", "answer"),
)
"""What columns are called, beside languages."""


class Tsv(Format):
    """Its first line is a header if all its cells are words for columns (source, text, label, English, en), or two
    of them are for source and target. It is one, too, where a column is asked for by a name that it has.

    With a header columns have names as well as numbers.
    """

    row_per_line = True

    def __init__(self, separator: str = "\t") -> None:
        self.separator = separator
        self.what = "tab-separated columns" if separator == "\t" else f'columns separated by "{separator}"'

    def first(self, path: Path) -> list[str]:
        """The cells of the first line."""
        return next(text_lines(path), "").split(self.separator)

    def header(self, path: Path) -> bool:
        """Whether all cells of the first line are words for columns."""
        return _is_header(self.first(path))

    def columns(self, path: Path) -> Sequence[Key]:
        """The names in the header; without one numbers, as many as the first line has cells."""
        first = self.first(path)
        return first if _is_header(first) else range(len(first))

    def place(self, path: Path, key: Key, columns: Sequence[Key]) -> Key | None:
        """As `Format.place`; a first line that is asked for by its cells is a header."""
        if isinstance(key, str) and key in self.first(path):
            return key
        return super().place(path, key, columns)

    def rows(self, path: Path, keys: Sequence[Key], optional: Collection[Key] = ()) -> Iterator[Row]:
        """As `Format.rows`. Raises InputError also for names of columns where the first line is no header."""
        places, header = self.places(path, keys)
        lines = ((number, line) for number, line in enumerate(text_lines(path), 1) if not self._blank(line))
        cells = ((number, line.split(self.separator)) for number, line in lines if number > header)
        return picked(path, places, cells, self.what)

    def _blank(self, line: str) -> bool:
        return not line.strip() and self.separator not in line

    def places(self, path: Path, keys: Sequence[Key]) -> tuple[list[int], bool]:
        """The numbers of columns, and whether the first line is a header. Raises InputError as `rows`."""
        first, named = self.first(path), [key for key in keys if isinstance(key, str)]
        header = _is_header(first) or any(key in first for key in named)
        if header:
            return places_of(path, first, keys), True
        if named:
            raise InputError(
                f"{path}: expected a header with {', '.join(named)}; its first line is "
                f'"{self.separator.join(first)[:60]}". Name columns by their numbers, from 0.'
            )
        return [int(key) for key in keys], False


def _is_header(cells: Sequence[str]) -> bool:
    words = {cell.strip().lower() for cell in cells}
    if len(words) < len(cells) or len(cells) < 2:
        return False
    return words <= _words() or all(words & side for side in SIDES)


@cache
def _words() -> frozenset[str]:
    languages = {*BY_CODE, *(name.lower() for name in BY_CODE.values())}
    return frozenset({*WORDS, *languages}.union(*SIDES))
