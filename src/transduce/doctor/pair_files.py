"""The two sides of pairs in any kind of file, as lines that can be examined."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from transduce.data.corpus import read_pairs
from transduce.data.pair_files import PairFiles
from transduce.doctor.lines import LineSample, column_of


@dataclass(frozen=True)
class PairSide(LineSample):
    """One side of pairs, each text in one line; several columns are joined as they are learnt."""

    files: PairFiles | None = None
    root: Path = Path()
    side: int = 0

    def whole(self) -> Iterator[bytes]:
        """The texts of this side. Raises InputError as `read_pairs`."""
        assert self.files is not None
        return (pair[self.side].replace("\n", " ").encode() for _, *pair in read_pairs(self.files, self.root))

    def __str__(self) -> str:
        return f"{self.path}, {'target' if self.side else 'source'}"


def sides_of(files: PairFiles, root: Path) -> tuple[LineSample, LineSample]:
    """Source and target. Lines of text files and cells of single columns may be anything, which is examined.

    Other sides raise InputError, when they are read, for rows that are none.
    """
    paths = files.paths(root)
    if files.of_two_files:
        return LineSample(paths[0]), LineSample(paths[1])
    if files.format_name == "tsv" and len(files.sources) == 1:
        separator = files.separator or "\t"
        return column_of(paths[0], files.sources[0], separator), column_of(paths[0], files.target_column, separator)
    source = PairSide(paths[0], header=files.reader.header(paths[0]), files=files, root=root)
    return source, replace(source, side=1)
