"""What is still there of the pairs that a model to start from was trained with: its run directory says where.

A run notes its data in recipe.toml and data.json. Files count only while their fingerprints are the same.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from transduce.core.bounded_file import read_text
from transduce.core.errors import InputError
from transduce.core.folders import RESOLVED
from transduce.core.model_file import find_model_file
from transduce.data.corpus import NamesFiles, read_tagged_pairs
from transduce.data.files import fingerprint
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.remote import url_of
from transduce.data.shards import shards_of
from transduce.recipe.recipe import Recipe, load_run_recipe
from transduce.tasks.base import pairs_of
from transduce.training.run_directory import FILES, HELD_OUT, NOTED, is_run

Pair = tuple[str, str]
Entry = TypeVar("Entry", bound=NamesFiles)


@dataclass(frozen=True)
class StartData:
    """Pairs that a model was trained with, as far as their files are there and unchanged.

    train: what it learnt from; with data.hold_out, what was held out of it is in there, too.
    validation, tests: what it did not learn from.
    root: to which names of files are relative.
    """

    train: tuple[PairFiles, ...]
    validation: tuple[PairFiles, ...]
    tests: tuple[PairFiles, ...]
    root: Path

    def pairs(self, entries: tuple[PairFiles, ...]) -> Iterator[Pair]:
        """Each with its tags before the source. Raises InputError for files that cannot be read."""
        for files in entries:
            yield from ((source, target) for _, source, target in read_tagged_pairs(files, self.root))


def start_data(start: str) -> StartData | None:
    """Of the model that `training.start` names; None where there is no run directory beside it, or nothing is left.

    Raises:
        InputError: there is no such model.
    """
    run = find_model_file(start).parent
    found = _noted(run)
    data = pairs_of(found.recipe) if found else None
    if found is None or data is None:
        return None
    root, known = Path(data.root), found.fingerprints
    train = _unchanged(data.train, root, known)
    validation = _unchanged([data.validation] if data.validation else [], root, known) or _drawn(run, "validation")
    tests = _unchanged([*data.test.values()], root, known) or _drawn(run, "test")
    left = StartData(train, validation, tests, root)
    return left if left.train or left.validation or left.tests else None


def validation_of(start: str, task: str) -> dict[str, Any] | None:
    """The entry of [data] with which a model for this kind of task was validated, valid for any data.root.

    None where no run directory is beside the model, it is for another task, or the files are gone or have changed.

    Raises:
        InputError: there is no such model.
    """
    found = _noted(find_model_file(start).parent)
    data = found.recipe.data if found else None
    entry = getattr(data, "validation", None)
    if found is None or entry is None or not hasattr(entry, "paths"):
        return None
    root = Path(getattr(data, "root", "."))
    if found.recipe.task.kind != task or not _unchanged([entry], root, found.fingerprints):  # type: ignore[attr-defined]
        return None
    table = entry.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    paths = {path: path.absolute().as_posix() for path in entry.paths(root)}
    return {key: paths.get(root / each, each) if isinstance(each, str) else each for key, each in table.items()}


class _Noted(NamedTuple):
    """What a run notes: its recipe, and all SHA-256 sums of its data."""

    recipe: Recipe
    fingerprints: set[str]


def _noted(run: Path) -> _Noted | None:
    """None where this is no run, or cannot be read: nothing of it is then used."""
    try:
        if is_run(run):
            return _Noted(load_run_recipe(run / RESOLVED), _noted_fingerprints(json.loads(read_text(run / NOTED))))
    except (OSError, ValueError, RecursionError, InputError):
        pass
    return None


def _noted_fingerprints(noted: Any) -> set[str]:
    """All SHA-256 sums in data.json."""
    if isinstance(noted, dict):
        return {each for value in noted.values() for each in _noted_fingerprints(value)}
    if isinstance(noted, list):
        return {each for value in noted for each in _noted_fingerprints(value)}
    return {noted} if isinstance(noted, str) else set()


def _unchanged(entries: Sequence[Entry], root: Path, known: set[str]) -> tuple[Entry, ...]:
    """The files that hold what they held, each as an entry of its own."""
    found = list[Entry]()
    for entry in entries:
        if any(url_of(name) for key in FILES if isinstance(name := getattr(entry, key, None), str)):
            continue  # nothing is downloaded for this
        with suppress(InputError, OSError):  # files that are gone
            files = shards_of([entry], root)
            found += [each for each in files if known.issuperset(fingerprint(path) for path in each.paths(root))]
    return tuple(found)


def _drawn(run: Path, part: str) -> tuple[PairFiles, ...]:
    """What the run has drawn by data.hold_out."""
    here = f"{run.absolute()}/{HELD_OUT}/{part}"
    files = PairFiles(source=f"{here}.source", target=f"{here}.target")
    return (files,) if all(path.is_file() for path in files.paths(run)) else ()
