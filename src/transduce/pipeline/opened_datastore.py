"""A datastore that a pipeline predicts with: checked to be of its model, and opened once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Protocol

import torch

from transduce.core.errors import InputError
from transduce.inference.memory_use import FuzzyIndex
from transduce.inference.prediction import Prediction
from transduce.search.datastore import BUILD, ModelIdentity, load_datastore
from transduce.search.knn import Memory

Stamp = tuple[str, int, int]  # what of a file changes when it does


class HasIdentity(Protocol):
    """A model that knows which one it is."""

    device: torch.device

    @property
    def identity(self) -> ModelIdentity: ...


@dataclass(frozen=True)
class OpenedDatastore:
    """A datastore in memory. stamp: of its file when it was read."""

    memory: Memory
    stamp: Stamp

    @classmethod
    def of(cls, path: str | PathLike[str], model: HasIdentity, last: "OpenedDatastore | None") -> "OpenedDatastore":
        """The datastore at a path.

        Args:
            last: the one that was opened before, which is returned if it is this one.

        Raises:
            InputError: it is missing, damaged, or of another model.
        """
        stamp = _stamp(Path(path))
        if last is not None and last.stamp == stamp:
            return last
        store = load_datastore(path)
        if store.model.fingerprint != model.identity.fingerprint:
            raise InputError(
                f'{path}: this datastore was built for the model "{store.model.name}" '
                f'({store.model.fingerprint[:12]}), and this is "{model.identity.name}" '
                f"({model.identity.fingerprint[:12]}): their states differ. Build one for this model: {BUILD}"
            )
        return cls(Memory(store, model.device), stamp)

    def used(self, asked: Mapping[str, Any]) -> "OpenedDatastore":
        """The same, with these settings in place of its own. Raises InputError for settings that cannot be."""
        if not asked:
            return self
        settings = self.memory.store.settings.changed(asked)
        return _with_memory(self, self.memory.with_settings(settings))

    def with_matches(self, predictions: Sequence[Prediction], texts: Sequence[str], least: int) -> list[Prediction]:
        """The predictions with the pairs of the memory that are nearly their texts.

        Raises:
            InputError: rapidfuzz is not installed; `least` is no percentage.
        """
        if not 0 < least <= 100:
            raise InputError(f"matches = {least}: expected a similarity in percent, from 1 to 100.")
        index = self.index
        return [
            replace(each, matches=index.matches(text, least)) for each, text in zip(predictions, texts, strict=True)
        ]

    @cached_property
    def index(self) -> FuzzyIndex:
        """Of the sources of its pairs."""
        store = self.memory.store
        return FuzzyIndex(store.sources, store.targets, store.numbers.tolist())


def _with_memory(opened: OpenedDatastore, memory: Memory) -> OpenedDatastore:
    other = replace(opened, memory=memory)
    if "index" in vars(opened):
        vars(other)["index"] = opened.index
    return other


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except OSError as error:
        raise InputError(f"{path}: there is no such datastore ({error.strerror}). Make one: {BUILD}") from None
    return fspath(path), found.st_mtime_ns, found.st_size
