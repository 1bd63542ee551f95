"""Where a side's lines come from: a file of its own, or one column of a tab-separated file."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from transduce.core.errors import InputError
from transduce.data.files import raw_text_lines


@dataclass(frozen=True)
class ScannedFile:
    """Lines of text.

    Args:
        path: the file, compressed or not.
        column: which tab-separated column (from 0) is the text; None for the whole line.
        header: whether the first line names the columns and is no text.
    """

    path: Path
    column: int | None = None
    header: bool = False

    @property
    def first_line(self) -> int:
        """The line number of row 0, as an editor shows it."""
        return 2 if self.header else 1

    def __str__(self) -> str:
        return str(self.path) if self.column is None else f"{self.path}, column {self.column}"

    def raw_lines(self) -> Iterator[bytes]:
        """The text of each line as training reads it, undecoded; empty where a tab-separated line lacks the column."""
        lines = islice(raw_text_lines(self.path), 1 if self.header else 0, None)
        if self.column is None:
            return lines
        return (_cell(line, self.column) for line in lines)

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
        lines, at = self.whole(), 0
        if not self.starts:
            yield from lines
        for start in self.starts:
            yield from islice(lines, max(start - at, 0), max(start - at, 0) + self.length)
            at = max(start, at) + self.length

    def whole(self) -> Iterator[bytes]:
        """All lines."""
        return super().raw_lines()

    def count(self) -> int:
        """How many lines there are in all."""
        return sum(1 for _ in self.whole())


def _cell(line: bytes, column: int) -> bytes:
    cells = line.split(b"\t")
    return cells[column] if column < len(cells) else b""


def as_text_file(file: str | Path | ScannedFile) -> ScannedFile:
    """A path stands for the whole file."""
    return file if isinstance(file, ScannedFile) else ScannedFile(Path(file))


def columns_of(
    tsv: str | Path, source_column: int | None = None, target_column: int | None = None
) -> tuple[ScannedFile, ScannedFile]:
    """The source and the target in a tab-separated file, in these columns, counted from 0.

    Where no column is said, they are those that the first line names `source` and `target`; without such names, columns
    0 and 1.

    Raises:
        InputError: the file is empty; the first line has too few columns.
    """
    path = Path(tsv)
    first = next(raw_text_lines(path), None)
    if first is None:
        raise InputError(f"{path}: the file is empty; expected lines of text.")
    names = [cell.strip().lower() for cell in first.split(b"\t")]
    columns = 0 if source_column is None else source_column, 1 if target_column is None else target_column
    if len(names) <= max(columns):
        raise InputError(
            f"{path}, line 1: expected tab-separated columns {columns[0]} and {columns[1]}, counted from 0, but "
            f"there {'is 1 column' if len(names) == 1 else f'are {len(names)} columns'}."
        )
    if source_column is not None or target_column is not None:
        return ScannedFile(path, columns[0]), ScannedFile(path, columns[1])
    if b"source" in names and b"target" in names:
        source, target = names.index(b"source"), names.index(b"target")
        return ScannedFile(path, source, header=True), ScannedFile(path, target, header=True)
    return ScannedFile(path, 0), ScannedFile(path, 1)
