"""Encoded pairs whose lengths are all that matters."""

from collections.abc import Iterable
from pathlib import Path

from transduce.data.store import Store, write_store


def store_of(path: Path, lengths: Iterable[tuple[int, int]]) -> Store:
    """Pairs of so many tokens each, source and target, in a store file at `path`."""
    write_store(path, ({"source": [5] * s, "target": [6] * t} for s, t in lengths), {"source": 9, "target": 9}, {})
    return Store(path)
