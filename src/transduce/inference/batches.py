"""Which rows go together: those of like lengths, as shorter ones are padded."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from transduce.core.errors import InputError

PADDED = 65_536  # tokens of a batch at most, with its padding: 64 texts of 1,024


def check_batch_size(size: int) -> None:
    """Raises InputError where a batch would hold nothing."""
    if size < 1:
        raise InputError(f"batch_size = {size}: expected at least 1.")


def by_length(rows: Sequence[Any], size: int, longest_first: bool = False) -> Iterator[list[int]]:
    """The places of rows, `size` at once, the shortest first. Raises InputError where a batch would hold nothing."""
    check_batch_size(size)
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]), reverse=longest_first)
    return (order[first : first + size] for first in range(0, len(order), size))


def within_memory(order: Sequence[int], length: Callable[[int], int], size: int) -> list[list[int]]:
    """`order`, whose longest come first, in batches of `size`, or of fewer where padding would exceed `PADDED`.

    A text that is longer by itself is alone.
    """
    batches: list[list[int]] = []
    first = 0
    while first < len(order):
        fitting = PADDED // max(1, length(order[first]))
        last = first + min(size, max(1, fitting))
        batches.append(list(order[first:last]))
        first = last
    return batches
