"""Where a side's lines come from: a file of its own, or one column of a tab-separated file."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from transduce.data.files import read_raw_lines
from transduce.errors import InputError


@dataclass(frozen=True)
class TextFile:
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
        return str(self.path) if self.column is None else f"{self.path} (column {self.column + 1})"

    def raw_lines(self) -> Iterator[bytes]:
        """The text of each line, undecoded; empty where a tab-separated line lacks the column."""
        lines = islice(read_raw_lines(self.path), 1 if self.header else 0, None)
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


def _cell(line: bytes, column: int) -> bytes:
    cells = line.split(b"\t")
    return cells[column] if column < len(cells) else b""


def as_text_file(file: str | Path | TextFile) -> TextFile:
    """A path stands for the whole file."""
    return file if isinstance(file, TextFile) else TextFile(Path(file))


def columns_of(tsv: str | Path) -> tuple[TextFile, TextFile]:
    """The source and the target in a tab-separated file.

    They are the columns that the first line names `source` and `target`; without such names, columns 1 and 2.

    Raises:
        InputError: the first line has fewer than two columns.
    """
    path = Path(tsv)
    names = [cell.strip().lower() for cell in next(read_raw_lines(path), b"").split(b"\t")]
    if len(names) < 2:
        raise InputError(f"{path}, line 1: two columns with a tab between them were wanted, there is one.")
    if b"source" in names and b"target" in names:
        source, target = names.index(b"source"), names.index(b"target")
        return TextFile(path, source, header=True), TextFile(path, target, header=True)
    return TextFile(path, 0), TextFile(path, 1)
