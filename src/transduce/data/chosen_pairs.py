"""Which pairs `data.train.pairs` takes: those whose numbers have the smallest hashes, whatever else a recipe says."""

from hashlib import blake2b
from heapq import nsmallest
from pathlib import Path

from transduce.core.errors import InputError


def chosen_numbers(count: int, pairs: int, path: Path) -> set[int]:
    """The numbers, from 1, of `count` of the pairs. Raises InputError where there are fewer in `path`."""
    if count > pairs:
        raise InputError(f"{path} has {pairs:,} pairs; data.train.pairs asks for {count:,}.")
    return set(nsmallest(count, range(1, pairs + 1), key=_hashed))


def _hashed(number: int) -> bytes:
    return blake2b(str(number).encode(), digest_size=8).digest()
