"""Text pairs are looked at before a model learns from them: what is certainly wrong is refused, the rest told.

It is the doctor's examination, of a sample where a corpus is large, done once for the same files. What of the named
validation and tests is in the training data is told, too; see `overlap`. So is what they are not of: see
`held_out_sides`.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from transduce.core.cache import kept
from transduce.core.errors import InputError
from transduce.data.files import fingerprint, read_blocks
from transduce.data.pair_files import PairFiles
from transduce.data.shards import sampled_shards
from transduce.data.store import cache_key
from transduce.doctor import Finding, Report, Severity, examine
from transduce.doctor.lines import LineSample
from transduce.doctor.pair_files import sides_of
from transduce.doctor.writing import extras
from transduce.recipe.recipe import Recipe
from transduce.tasks.base import pairs_of
from transduce.training.held_out_sides import Judgement, judged_sides
from transduce.training.overlap import known_overlap, warnings

HOW = ("certain", "doubtful")  # what is found
VERSION = 4  # of what is found: raise it where the doctor learns to see more
SIDES_VERSION = 1  # of what is found in held-out files
SAMPLED, STRETCH = 30_000, 1_500  # lines that are looked at; so many at a time, since a slip shows in neighbours alone
CLEAR = 0.3  # nats a line from which the alignment is sure enough to refuse; it is 0.7 or more for real corpora
OF_LINES = ("shift", "shift_ends", "unmatched", "unequal_counts")  # findings that say where, which a sample cannot

Tell = Callable[[str], None]


def examine_data(recipe: Recipe, cache: Path, warn: Tell, force: bool = False) -> None:
    """Look at the files of `recipe`; what is found is told, and what is certainly wrong is an error.

    Args:
        force: tell that, too, and go on.

    Raises:
        InputError: a file is missing or empty; sides that slipped, or that are mostly empty or the same; lines that
            are not UTF-8; validation or tests with exchanged sides, or in another writing. All at once.
    """
    root, train = Path(getattr(recipe.data, "root", ".")), tuple(getattr(recipe.data, "train", ()))
    train = tuple(sampled_shards(train, root))  # all are checked when they are encoded
    _check_files(recipe, root, train)
    certain, doubtful = list[str](), list[str]()
    for files in train:
        if isinstance(files, PairFiles) and files.separator is None:
            found = _remembered(files, root, cache)
            certain += found["certain"]
            doubtful += found["doubtful"]
    advice = "`transduce doctor` says more and can write a cleaned copy; " if certain else ""
    for judgement in _judged_sides(recipe, train, cache):
        (certain if judgement.certain else doubtful).append(judgement.sentence)
    if certain and not force:
        raise InputError([*certain, f"{advice}--force trains anyway."])
    for sentence in chain(certain, doubtful):
        warn(sentence)
    for sentence in warnings(known_overlap(recipe, cache)):  # what cannot be read is an error of the training
        warn(sentence)


def _check_files(recipe: Recipe, root: Path, train: tuple[Any, ...]) -> None:
    """Raises InputError for files that are not there, or empty."""
    held_out = [getattr(recipe.data, "validation", None), *getattr(recipe.data, "test", {}).values()]
    known = [files for files in (*train, *held_out) if hasattr(files, "paths")]
    problems = list[str]()
    for path in dict.fromkeys(path for files in known for path in files.paths(root)):
        try:
            if not next(read_blocks(path), b""):
                problems.append(f"{path}: the file is empty; expected lines of text.")
        except InputError as error:
            problems += error.problems
    if problems:
        if place := getattr(recipe.data, "download", ""):
            problems.append(f"Get the files from {place} and put them into {root}, or set data.root to their folder.")
        raise InputError(problems)


def _remembered(files: PairFiles, root: Path, cache: Path) -> dict[str, list[str]]:
    """What `_examined` finds, or found earlier in the same files."""
    paths = files.paths(root)
    prints = [fingerprint(path) for path in paths]
    known = [each is not None for each in (extras().simplify, extras().repair)]  # with more, more is found
    parts = {"kind": "examined", "version": VERSION, "files": prints, "columns": files.columns, "extras": known}
    found = kept(cache / f"{cache_key(parts)}.json", _is_right, lambda: _examined(sides_of(files, root)))
    name = " and ".join(map(str, paths))
    return {how: [f"{name}: {sentence}" for sentence in found[how]] for how in HOW}


def _is_right(found: Any) -> bool:
    """Whether a note of the cache is of this kind."""
    return isinstance(found, dict) and all(isinstance(found.get(how), list) for how in HOW)


def _judged_sides(recipe: Recipe, train: tuple[Any, ...], cache: Path) -> list[Judgement]:
    """What is wrong with the sides of validation and tests, or was found earlier in the same files."""
    data = pairs_of(recipe)
    if data is None or not (data.validation or data.test):
        return []
    entries = {
        "train": train,
        "validation": (data.validation,),
        **{f"test {name}": (each,) for name, each in data.test.items()},
    }
    parts = {
        "kind": "sides",
        "version": SIDES_VERSION,
        **{name: _identity(each, Path(data.root)) for name, each in entries.items()},
    }
    found = kept(cache / f"{cache_key(parts)}.json", _are_judgements, lambda: [*judged_sides(data, train)])
    return [Judgement(*each) for each in found]


def _are_judgements(found: Any) -> bool:
    """Whether a note of the cache is of this kind."""
    pairs = found if isinstance(found, list) else [None]
    return all(isinstance(each, list) and [type(part) for part in each] == [str, bool] for each in pairs)


def _identity(entries: tuple[PairFiles | None, ...], root: Path) -> list[Any]:
    """What decides what the entries hold."""
    known = [files for files in entries if files]
    return [
        [[fingerprint(path) for path in files.paths(root)], files.columns, files.read_as, files.to] for files in known
    ]


def _examined(sides: tuple[LineSample, LineSample]) -> dict[str, list[str]]:
    """Sentences: what is certainly wrong, and what may be."""
    lines = [side.count() for side in sides]
    sample = ""
    if min(lines) <= SAMPLED or lines[0] != lines[1]:
        report = examine(*sides)
    else:
        starts = tuple(np.linspace(0, lines[0] - STRETCH, SAMPLED // STRETCH).astype(int).tolist())
        source, target = (replace(side, starts=starts, length=STRETCH) for side in sides)
        report = examine(source, target)
        sample = f"of {SAMPLED:,} of the {lines[0]:,} pairs: "
        if any(finding.kind in OF_LINES for finding in report.findings):
            report, sample = examine(*sides), ""
    found: dict[str, list[str]] = {"certain": [], "doubtful": []}
    for finding in report.findings:
        if finding.severity is not Severity.NOTE:
            found["certain" if _is_certain(finding, report) else "doubtful"].append(sample + finding.sentence)
    found["doubtful"] += [f"not looked for: {each}" for each in report.not_looked_for]
    return found


def _is_certain(finding: Finding, report: Report) -> bool:
    if finding.severity is not Severity.ERROR:
        return False
    slipped = finding.kind in ("shift", "unmatched")
    return not slipped or (report.alignment is not None and report.alignment.evidence >= CLEAR)
