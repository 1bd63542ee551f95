"""Where a side's lines come from: a file of its own, or one column of a tab-separated file."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from transduce.data.files import raw_text_lines
from transduce.data.formats import Key
from transduce.data.formats.base import too_short
from transduce.data.formats.tsv import Tsv


@dataclass(frozen=True)
class ScannedFile:
    """Lines of text.

    Args:
        path: the file, compressed or not.
        column: which column (from 0) is the text, of lines whose columns have `separator` between; None for the whole
            line. A blank line is an empty text.
        header: whether the first line names the columns and is no text.
    """

    path: Path
    column: int | None = None
    header: bool = False
    separator: str = "\t"

    @property
    def first_line(self) -> int:
        """The line number of row 0, as an editor shows it."""
        return 2 if self.header else 1

    def __str__(self) -> str:
        return str(self.path) if self.column is None else f"{self.path}, column {self.column}"

    def raw_lines(self) -> Iterator[bytes]:
        """The text of each line as training reads it, undecoded. Raises InputError for lines that lack the column."""
        lines = islice(raw_text_lines(self.path), 1 if self.header else 0, None)
        return lines if self.column is None else self._cells(lines, self.column)

    def _cells(self, lines: Iterator[bytes], column: int) -> Iterator[bytes]:
        separator, short = self.separator.encode(), list[int]()
        for number, line in enumerate(lines, self.first_line):
            cells = line.split(separator)
            if len(cells) == 1 and not line.strip():  # no row, but a line that is counted
                cells = [b""] * (column + 1)
            if len(cells) <= column:
                short.append(number)
            elif not short:
                yield cells[column]
        if short:
            raise too_short(self.path, column + 1, short, Tsv(self.separator).what)

    def texts_at(self, rows: list[int]) -> list[str]:
        """The text of some rows, in the order asked for; bytes that are not UTF-8 become U+FFFD."""
        wanted, found = set(rows), dict[int, str]()
        for row, raw in enumerate(islice(self.raw_lines(), max(rows, default=-1) + 1)):
            if row in wanted:
                found[row] = raw.decode("utf-8", errors="replace")
        return [found[row] for row in rows]


@dataclass(frozen=True)
class LineSample(ScannedFile):
    """Some stretches of a file's lines, one behind the other: `length` lines from each of `starts` on, from 0.

    Without `starts`: all of them.
    """

    starts: tuple[int, ...] = ()
    length: int = 0

    def raw_lines(self) -> Iterator[bytes]:
        """As those of the whole file."""
        lines, at = self.all_lines(), 0
        if not self.starts:
            yield from lines
        for start in self.starts:
            yield from islice(lines, max(start - at, 0), max(start - at, 0) + self.length)
            at = max(start, at) + self.length

    def all_lines(self) -> Iterator[bytes]:
        return super().raw_lines()

    def count(self) -> int:
        """How many lines there are in all."""
        return sum(1 for _ in self.all_lines())


def as_text_file(file: str | Path | ScannedFile) -> ScannedFile:
    """A path stands for the whole file."""
    return file if isinstance(file, ScannedFile) else ScannedFile(Path(file))


def column_of(path: Path, column: Key, separator: str = "\t") -> LineSample:
    """The texts of one column. Raises InputError where the file has no column of this name."""
    (place,), header = Tsv(separator).places(path, [column])
    return LineSample(path, place, header, separator)
