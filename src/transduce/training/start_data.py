"""What is still there of the pairs that a model to start from was trained with: its run directory says where.

A run notes its data in recipe.toml and data.json. Files count only while their fingerprints are the same.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.core.bounded_file import read_text
from transduce.core.errors import InputError
from transduce.core.folders import RESOLVED
from transduce.core.model_file import find_model_file
from transduce.data.corpus import read_tagged_pairs
from transduce.data.files import fingerprint
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.remote import url_of
from transduce.data.shards import shards_of
from transduce.recipe.recipe import load_run_recipe
from transduce.tasks.base import pairs_of
from transduce.training.run_directory import HELD_OUT, NOTED, is_run

Pair = tuple[str, str]


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
    try:
        if not is_run(run):
            return None
        noted = json.loads(read_text(run / NOTED))
        data = pairs_of(load_run_recipe(run / RESOLVED))
    except (OSError, ValueError, RecursionError, InputError):  # what cannot be read is not replayed
        return None
    if data is None or not isinstance(noted, dict):
        return None
    root, known = Path(data.root), _noted_fingerprints(noted)
    train = _unchanged(data.train, root, known)
    validation = _unchanged([data.validation] if data.validation else [], root, known) or _drawn(run, "validation")
    tests = _unchanged([*data.test.values()], root, known) or _drawn(run, "test")
    found = StartData(train, validation, tests, root)
    return found if found.train or found.validation or found.tests else None


def _noted_fingerprints(noted: Any) -> set[str]:
    """All SHA-256 sums in data.json."""
    if isinstance(noted, dict):
        return {each for value in noted.values() for each in _noted_fingerprints(value)}
    if isinstance(noted, list):
        return {each for value in noted for each in _noted_fingerprints(value)}
    return {noted} if isinstance(noted, str) else set()


def _unchanged(entries: Sequence[PairFiles], root: Path, known: set[str]) -> tuple[PairFiles, ...]:
    """The files that hold what they held, each as an entry of its own."""
    found = list[PairFiles]()
    for entry in entries:
        if any(map(url_of, entry.names.values())):
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
