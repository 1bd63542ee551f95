"""Text pairs are looked at before a model learns from them: what is certainly wrong is refused, the rest told.

It is the doctor's examination, of a sample where a corpus is large, done once for the same files. What of the named
validation and tests is in the training data is told, too; see `overlap`. So is what they are not of: see
`held_out_sides`.

Validation and tests are compared with the training data, side by side: exchanged sides, another language or writing.

What is compared is how often each character stands there. A text of one side is told from one of the other within a few
lines, in pairs of languages that share a script as well; docs/planning.md has measured figures.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from transduce.core.cache import kept
from transduce.core.errors import InputError
from transduce.data.character_profile import CharacterProfile, counted
from transduce.data.corpus import about_pairs, read_pairs
from transduce.data.files import fingerprint, read_blocks
from transduce.data.pairs.pair_data import PairData
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.shards import sampled_shards
from transduce.data.store import cache_key
from transduce.doctor import Finding, Report, Severity, examine
from transduce.doctor.examine import sides_of
from transduce.doctor.lines import LineSample
from transduce.doctor.writing import extras
from transduce.recipe.recipe import Recipe
from transduce.tasks.base import pairs_of
from transduce.training.overlap import known_overlap, warnings

PAIRS, LINES = (
    10_000,
    200_000,
)  # pairs that are looked at in a file, evenly spread over so many lines from its beginning
LONG = 500  # characters of a side from which it is judged
EXCHANGED = (0.03, 0.1)  # nats a character by which each side is rather the other: doubtful, certain
UNSEEN = (0.1, 0.5)  # share of characters that training has not: doubtful, certain
UNLIKE = 0.2  # nats from which a side is of another language, or of another kind of text
SIDES = ("source", "target")


class Judgement(NamedTuple):
    """A sentence, and whether what it says is certain."""

    sentence: str
    certain: bool = False


class _Sides(NamedTuple):
    """The characters of both sides of some pairs."""

    source: "Counter[str]"
    target: "Counter[str]"


def judged_sides(data: PairData, train: Sequence[PairFiles]) -> Iterator[Judgement]:
    """What is wrong with the sides of the validation and the tests that are named; nothing where files cannot be read.

    train: entries of the training data, those of a test's language first of all.
    """
    root, known = Path(data.root), dict[str | None, tuple[CharacterProfile, CharacterProfile]]()
    named = {"data.validation": data.validation, **{f"data.test.{name}": files for name, files in data.test.items()}}
    for name, files in named.items():
        if files is None:
            continue
        try:
            if files.to not in known:
                entries = [each for each in train if each.to == files.to] or train
                known[files.to] = _profiles(entries, root)
            yield from _judged(name, _sides([files], root), known[files.to])
        except InputError:  # of a file, which is told where it is read
            continue


def _judged(name: str, held_out: _Sides, train: tuple[CharacterProfile, CharacterProfile]) -> Iterator[Judgement]:
    if min(each.total() for each in held_out) < LONG:
        return
    rather = [train[1 - side].nearness(train[side], held_out[side]) for side in (0, 1)]
    if min(rather) > EXCHANGED[0]:
        yield Judgement(
            f"{name}: its sources look like the targets of the training data, and its targets like the sources: are "
            "its files or columns exchanged?",
            min(rather) > EXCHANGED[1],
        )
        return
    for side, characters, profile in zip(SIDES, held_out, train, strict=True):
        unseen = profile.unseen(characters)
        if unseen > UNSEEN[0]:
            yield Judgement(
                f"{name}: {unseen:.0%} of the characters of its {side}s are in no {side} of the training data. Is it "
                "in another language, or are columns wrong?",
                unseen > UNSEEN[1],
            )
        elif profile.divergence(characters) > UNLIKE:
            yield Judgement(
                f"{name}: its {side}s have other characters than those of the training data, by how often each stands "
                "there. Is it in another language?"
            )


def _profiles(entries: Sequence[PairFiles], root: Path) -> tuple[CharacterProfile, CharacterProfile]:
    source, target = (CharacterProfile.of_counted(each) for each in _sides(entries, root))
    return source, target


def _sides(entries: Iterable[PairFiles], root: Path) -> _Sides:
    found = _Sides(Counter(), Counter())
    for files in entries:
        step = max(1, min(about_pairs(files, root), LINES) // PAIRS)
        pairs = list(islice(read_pairs(files, root), 0, LINES, step))
        for place, side in enumerate(found, 1):
            side.update(counted(str(pair[place]) for pair in pairs))
    return found


HOW = ("certain", "doubtful")  # what is found
VERSION = 5  # of what is found: raise it where the doctor learns to see more
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
    root, named = Path(getattr(recipe.data, "root", ".")), getattr(recipe.data, "train", ())
    entries = named if isinstance(named, tuple) else ()  # else a split or a list of a graph's nodes
    train = tuple(sampled_shards(entries, root))  # all are checked when they are encoded
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
