"""Lines cut into blocks: what a worker is given at once, and what is done again where a worker is lost.

The cut is the same for every engine, so the batches that a model sees are too, and with them every bit of the output.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

LINES = 2048
"""Of a block: enough to put like lengths together, little to do again."""


class LineBlock(NamedTuple):
    """Neighbouring lines of an input.

    number: of the block, from 0. first: the number of its first line in the whole input, from 0.
    rows: what is said of each line, for JSON: its text under "text", and what else the job needs.
    """

    number: int
    first: int
    rows: list[dict[str, Any]]


def blocks_of(rows: Iterable[dict[str, Any]], size: int | None = None) -> Iterator[LineBlock]:
    """The rows in blocks of `size` (None = `LINES`), the last of which may be smaller. Memory holds one."""
    remaining, number, first = iter(rows), 0, 0
    while block := list(islice(remaining, size or LINES)):
        yield LineBlock(number, first, block)
        number, first = number + 1, first + len(block)
