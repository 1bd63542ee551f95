"""Which lines of an input a model refuses, with the name of their file: asked only when it has refused some.

The work is done in blocks, by columns and predictors that know no file, so what they say names no line of it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from transduce.data.columns import Column

AT_ONCE = 256  # lines that are looked at together


class GivenLines(NamedTuple):
    """Lines of an input, and the column that reads them.

    name: what a message calls one before its number: "a.txt, line". joined: what is done with texts first.
    """

    name: str
    texts: Iterable[str]
    column: "Column"
    joined: Callable[[Sequence[str]], Sequence[str]] = list

    def encode(self, texts: Sequence[str]) -> object:
        """Raises InputError for what the column cannot read."""
        return self.column.encode(self.joined(texts))


def place_name(path: Path | None, by_line: bool = True) -> str:
    """What a message calls an input before its number; by_line: the n-th is the n-th line of the file."""
    return f"{path or 'standard input'}, {'line' if by_line else 'input'}"


@contextmanager
def naming_lines(
    given: Sequence[GivenLines], rows: Iterable[Any] = (), use: Callable[[list[Any]], object] | None = None
) -> Iterator[None]:
    """Let what a model refuses name file and line, and how many more there are.

    Args:
        rows, use: what is done with the lines; it is done again where each line by itself can be read, as a line may
            not fit the one that it belongs to. The rows are named as the last of `given`.

    Raises:
        InputError: the one that was raised, with the lines where they are found.
    """
    from transduce.core.errors import InputError
    from transduce.core.printable import PROBLEMS

    try:
        yield
    except InputError as error:
        problems, more = list[str](), 0
        for each in given:
            for number, problem in _refused(each.texts, each.encode):
                if len(problems) < PROBLEMS:
                    problems.append(f"{each.name} {number}: {problem}")
                else:
                    more += 1
        if not problems and use and given:
            found = islice(_refused(rows, use), PROBLEMS)
            problems = [f"{given[-1].name} {number}: {problem}" for number, problem in found]
        if not problems:
            raise
        rest = [f"{more:,} more lines like these."] if more else []
        raise InputError([*problems, *rest]) from error


def _refused(items: Iterable[Any], use: Callable[[list[Any]], object]) -> Iterator[tuple[int, str]]:
    """The numbers, from 1, of the items that `use` refuses by themselves, and why."""
    from transduce.core.errors import InputError

    remaining, before = iter(items), 0
    while some := list(islice(remaining, AT_ONCE)):
        try:
            use(some)
        except InputError:
            for number, item in enumerate(some, before + 1):
                try:
                    use([item])
                except InputError as error:
                    yield number, " ".join(error.problems)
        before += len(some)
