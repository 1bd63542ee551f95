"""Validation and tests are compared with the training data, side by side: exchanged sides, another language or writing.

What is compared is how often each character stands there. A text of one side is told from one of the other within a few
lines, in pairs of languages that share a script as well; docs/planning.md has measured figures.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from transduce.core.errors import InputError
from transduce.data.character_profile import CharacterProfile, counted
from transduce.data.corpus import about_pairs, read_pairs
from transduce.data.pair_data import PairData
from transduce.data.pair_files import PairFiles

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
