"""Examples that are computed when they are read, from (seed, row) alone: there is no file, and no end of them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.data.batches import Rows
from transduce.data.store import BLOCK, Ids, Store

EPOCH = 1024  # batches of an epoch, which ends nothing but a count


class GeneratedStore(Store):
    """A store without a file.

    Args:
        count: how many rows `len` says, and one pass reads; any row from 0 on can be read.
        generate: the fields of a row, by its number.
        fields: their names.
    """

    def __init__(self, count: int, generate: Callable[[int], tuple[Ids, ...]], fields: tuple[str, ...]) -> None:
        self.path, self.fields = Path("generated"), fields
        self.blocks = -(-count // BLOCK)
        self.metadata: dict[str, Any] = {"examples": count, "fields": list(fields), "fingerprints": []}
        self._generate = generate

    def lengths(self, field: str, block: int) -> NDArray[np.int64]:
        """Of the examples of the block."""
        rows = np.arange(block * BLOCK, min((block + 1) * BLOCK, len(self)))
        return np.array([len(each) for each in self.read(field, rows)], np.int64)

    def read(self, field: str, rows: NDArray[np.int64]) -> list[Ids]:
        """The rows, generated."""
        place = self.fields.index(field)
        return [self._generate(row)[place] for row in rows.tolist()]

    def release(self) -> None:
        """Nothing is held."""

    def verify(self) -> None:
        """Nothing can be damaged."""


class DrawnBatches:
    """Batches of `size` new rows each, `EPOCH` batches an epoch; no row comes twice in a training.

    Args:
        store: rows of one batch, n * size up to (n + 1) * size, should be equally long.
    """

    def __init__(self, store: Store, size: int) -> None:
        self.stores = [store]
        self._size = size

    def epoch(self, number: int, start: int = 0) -> Iterator[Rows]:
        """The batches of an epoch, from the `start`-th on."""
        for step in range(start, EPOCH):
            first = (number * EPOCH + step) * self._size
            yield Rows(np.zeros(self._size, np.int64), np.arange(first, first + self._size))

    def count(self, number: int) -> int:
        """How many batches each epoch has."""
        return EPOCH


def drawn(low: int, high: int, random: np.random.Generator) -> int:
    """A whole number between the two, both included."""
    return low + int(random.random() * (high - low + 1))


def generator(*seeds: int) -> np.random.Generator:
    """Random numbers of these seeds. Raises InputError for a negative one."""
    if min(seeds) < 0:
        raise InputError(f"seed: expected numbers of at least 0; got {min(seeds)}.")
    return np.random.Generator(np.random.PCG64([*seeds]))
