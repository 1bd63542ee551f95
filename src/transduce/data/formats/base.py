"""What a format of tables says of its files, and what is wrong with a row in any of them."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from transduce.core.errors import InputError
from transduce.core.printable import NAMED, first_of, listed
from transduce.data.files import count_lines

Key = int | str  # a column's number from 0, or its name
Row = tuple[int, list[str]]  # line number from 1, the columns asked for, in their order


class Format(ABC):
    """Files of rows of texts in columns.

    counted: columns may be asked for by their numbers, from 0; else by name alone.
    sparse: a row may lack a column, as an object may lack a key.
    languages: columns are languages, which are called by their codes.
    row_per_line: the n-th row stands in the n-th line that is not blank, so that a part can be read alone.
    """

    counted = True
    sparse = False
    languages = False
    row_per_line = False
    what = "columns"
    """What a message calls its columns."""

    @classmethod
    def keyed(cls) -> bool:
        """Whether its columns are keys of objects, of which the usual ones are "source" and "target"."""
        return not cls.counted and not cls.languages

    @abstractmethod
    def columns(self, path: Path) -> Sequence[Key]:
        """The names of a file's columns, in its order; their numbers where they have no names.

        Raises:
            InputError: the file cannot be read.
        """

    @abstractmethod
    def rows(self, path: Path, keys: Sequence[Key], optional: Collection[Key] = ()) -> Iterator[Row]:
        """The cells of each row in these columns, with the line at which it ends; blank lines are no rows.

        Args:
            optional: columns of a sparse format that give "" where a row lacks them.

        Raises:
            InputError: the file has none of these columns, or one of them twice; rows that lack one, naming their
                lines, after all were looked through.
        """

    def header(self, path: Path) -> bool:
        """Whether the first line names the columns, and is no row. Raises InputError as `columns`."""
        return False

    def notes(self, path: Path) -> Sequence[str]:
        """What to tell of a file before it is read: rows that are left out. Raises InputError as `columns`."""
        return ()

    def text_columns(self, path: Path) -> Sequence[Key]:
        """Those of the columns that hold texts, where the first row tells. Raises InputError as `columns`."""
        return self.columns(path)

    def about(self, path: Path) -> int:
        """About how many rows there are, without looking at all of them. Raises InputError as `columns`."""
        return count_lines(path)

    def place(self, path: Path, key: Key, columns: Sequence[Key]) -> Key | None:
        """A column that is asked for, as `columns` calls it; None: there is no such column."""
        if isinstance(key, int) and self.counted:
            return columns[key] if key < len(columns) else None
        return key if key in columns else None

    def asked(self, key: Key, usual: str) -> Key:
        """The column that a recipe's `key` means: objects have no columns to count, so a number is the usual name."""
        return usual if isinstance(key, int) and not self.counted else key


def places_of(path: Path, names: Sequence[str], keys: Sequence[Key]) -> list[int]:
    """Where the columns are. Raises InputError for those that the header does not have, or has twice."""
    named = [key for key in dict.fromkeys(keys) if isinstance(key, str)]
    if missing := [key for key in named if key not in names]:
        there = listed(names) or "nothing"
        raise InputError(f"{path}: expected columns {listed(missing)}; its header has {there}.")
    check_once(path, names, named)
    return [names.index(key) if isinstance(key, str) else key for key in keys]


def check_once(path: Path, names: Sequence[str], columns: Sequence[str]) -> None:
    """Raises InputError where one of the wanted columns is there twice."""
    if twice := [name for name in columns if names.count(name) > 1]:
        raise InputError(f"{path}, line 1: the column {twice[0]} is there twice. Rename one of them, or leave it out.")


def picked(path: Path, places: Sequence[int], rows: Iterable[Row], what: str = "columns") -> Iterator[Row]:
    """The cells of each row in these places. Raises InputError naming the lines with fewer cells, once all are read."""
    wanted, short = max(places) + 1, list[int]()
    for number, row in rows:
        if len(row) < wanted:
            short.append(number)
        elif not short:
            yield number, [row[place] for place in places]
    if short:
        raise too_short(path, wanted, short, what)


def too_short(path: Path, expected: int, lines: Sequence[int], what: str = "columns") -> InputError:
    """The error for lines that have fewer columns than are read."""
    have = "line has" if len(lines) == 1 else "lines have"
    return InputError(
        f"{path}: expected {expected} {what} in every line, but {len(lines):,} {have} fewer ({named_lines(lines)}). "
        "Correct or delete them, or choose other columns."
    )


def named_lines(numbers: Sequence[int]) -> str:
    """The first of them, for a message."""
    named = first_of(numbers, NAMED)
    return f"line {named}" if len(numbers) == 1 else f"lines {named}"
