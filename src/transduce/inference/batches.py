"""Which rows go together: those of like lengths, as shorter ones are padded."""

from collections.abc import Iterator, Sequence
from typing import Any

from transduce.core.errors import InputError


def check_batch_size(size: int) -> None:
    """Raises InputError where a batch would hold nothing."""
    if size < 1:
        raise InputError(f"batch_size = {size}: expected at least 1.")


def by_length(rows: Sequence[Any], size: int, longest_first: bool = False) -> Iterator[list[int]]:
    """The places of rows, `size` at once, the shortest first. Raises InputError where a batch would hold nothing."""
    check_batch_size(size)
    order = sorted(range(len(rows)), key=lambda place: len(rows[place]), reverse=longest_first)
    return (order[first : first + size] for first in range(0, len(order), size))
