"""Held-out parts that are drawn from training pairs: always the same lines of the same text.

Which pairs are held out is decided by hashes of their text, not by their order, a seed, or what else a recipe says.
What belongs together stays on one side:

1. pairs one side of which is the same, but for case, digits, punctuation and white space;
2. pairs one side of which shares more than 0.7 of its n-grams with a held-out one; see `near_duplicates`. They go
   to the side of the held-out ones, and so do theirs.

Where texts are made from few templates, that would hold out much more than was asked for, or nothing: then (2) is left
out and only the same text belongs together, or only the same source; which of these it was, is told.

Memory is a few numbers a pair, and the held-out texts; time is linear.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.corpus import PairFiles, read_pairs
from transduce.data.files import fingerprint
from transduce.data.near_duplicates import NearDuplicates, normalized, written_apart

TRAIN, VALIDATION, TEST = 0, 1, 2
PASSES = 8  # over the corpus in search of near-duplicates of near-duplicates
LOOKED_AT = 1000  # texts that say whether words are written apart
Numbers = NDArray[np.int64]
Parts = NDArray[np.uint8]
Key = Callable[[str], str]

Amount = Annotated[float, Field(ge=0)]


class HoldOut(Config):
    """How many training pairs are not trained on, but pick the best weights, or are the final test.

    Numbers below 1 are shares. They are drawn by hashes of their text, near-duplicates with them: the same file always
    gives the same parts.
    """

    validation: Amount = 0
    """How many pairs pick the best weights; below 1: their share of all."""
    test: Amount = 0
    """How many pairs are the test set `held_out`; below 1: their share of all."""

    @model_validator(mode="before")
    @classmethod
    def _share(cls, given: Any) -> Any:
        """A number alone is that of the validation."""
        return {"validation": given} if isinstance(given, int | float) and not isinstance(given, bool) else given

    @model_validator(mode="after")
    def _are_amounts(self) -> "HoldOut":
        if wrong := [each for each in (self.validation, self.test) if each >= 1 and each != int(each)]:
            raise ValueError(f"expected a whole number of pairs, or a share below 1; got {wrong[0]:g}")
        return self

    def counts(self, pairs: int) -> tuple[int, int]:
        """Of validation and test, out of so many."""
        first, second = (
            int(each) if each >= 1 or each == 0 else max(1, round(each * pairs))
            for each in (self.validation, self.test)
        )
        return first, second


@dataclass(frozen=True)
class Split:
    """Where each pair belongs.

    parts: of each corpus, a number a pair: TRAIN, VALIDATION or TEST.
    drawn: pairs that were asked for; near: those that came with them, as they nearly repeat one.
    together: what was kept on one side, in words.
    """

    parts: tuple[Parts, ...]
    drawn: int
    near: int
    together: str

    def count(self, part: int) -> int:
        """Pairs of a part."""
        return sum(int((each == part).sum()) for each in self.parts)

    def report(self) -> str:
        """One sentence for people."""
        near = f", {self.near:,} of which nearly repeat one that was drawn" if self.near else ""
        return (
            f"Held out of {sum(map(len, self.parts)):,} pairs: {self.count(VALIDATION):,} for validation and "
            f"{self.count(TEST):,} for the test{near}. Kept on one side: {self.together}."
        )


def split_pairs(corpora: Sequence[PairFiles], root: Path, amounts: HoldOut) -> Split:
    """Where each pair of the corpora belongs. What was found is remembered as long as the process lives.

    Raises:
        InputError: what `read_pairs` refuses; there are too few pairs, or none that can be told from the others.
    """
    prints = tuple(fingerprint(path) for files in corpora for path in files.paths(root))
    return _split(tuple(corpora), root, amounts, prints)


def part_of(pairs: Iterator[tuple[int, str, str]], parts: Parts, part: int) -> Iterator[tuple[int, str, str]]:
    """The pairs of one part, out of all in the files' order."""
    return (pair for pair, belongs in zip(pairs, parts.tolist(), strict=True) if belongs == part)


@lru_cache(maxsize=4)
def _split(corpora: tuple[PairFiles, ...], root: Path, amounts: HoldOut, prints: tuple[str, ...]) -> Split:
    """prints: of the files, which may change under the same names."""

    def read() -> Iterator[tuple[str, str]]:
        return ((source, target) for files in corpora for _, source, target in read_pairs(files, root))

    sizes = [sum(1 for _ in read_pairs(files, root)) for files in corpora]
    wanted = amounts.counts(sum(sizes))
    names = ", ".join(str(path) for files in corpora for path in files.paths(root))
    if sum(wanted) >= sum(sizes):
        raise InputError(
            f"{names}: data.hold_out: expected fewer than there are; got {sum(wanted):,} of {sum(sizes):,} pairs."
        )
    for draw in (_near, _exact, _same_source):
        if (found := draw(read, sum(sizes), wanted)) is not None:
            parts, near, together = found
            cut = np.cumsum(sizes)[:-1]
            return Split(tuple(np.split(parts, cut)), sum(wanted), near, together)
    raise InputError(
        f"{names}: data.hold_out: nothing can be held out, since all pairs have the same source. Check that it is the "
        "source that you mean; or name files for data.validation and data.test."
    )


Read = Callable[[], Iterator[tuple[str, str]]]
Found = tuple[Parts, int, str] | None


def _near(read: Read, pairs: int, wanted: tuple[int, int]) -> Found:
    """With near-duplicates; None where they are too many."""
    groups = _Groups(read, normalized, pairs)
    held = groups.draw(sum(wanted), half=True)
    if held is None:
        return None
    drawn, new, links = int(held[groups.labels].sum()), held.copy(), list[tuple[int, int]]()
    for _ in range(PASSES):
        found = _links(read, groups.labels, held, new)
        links += found
        near = np.zeros_like(held)
        near[[label for label, _ in found]] = True
        new = near & ~held
        held |= new
        if held[groups.labels].sum() > 2 * sum(wanted):
            return None
        if not new.any():
            break
    else:
        return None  # one is like the next, and that like another: there is no end
    together = "pairs whose source or target is the same or nearly so"
    parts = groups.shared(held, links, wanted)
    return parts, int((parts != TRAIN).sum()) - drawn, together


def _exact(read: Read, pairs: int, wanted: tuple[int, int]) -> Found:
    groups = _Groups(read, _same, pairs)
    held = groups.draw(sum(wanted), half=True)
    if held is None:
        return None
    together = "pairs whose source or target is the same (the texts are too much alike to keep more together)"
    return groups.shared(held, [], wanted), 0, together


def _same_source(read: Read, pairs: int, wanted: tuple[int, int]) -> Found:
    groups = _Groups(read, _same, pairs, sources_alone=True)
    held = groups.draw(sum(wanted), half=False)
    if held is None:
        return None
    together = "pairs with the same source (many have the same target)"
    return groups.shared(held, [], wanted), 0, together


def _same(text: str) -> str:
    return " ".join(text.casefold().split())


class _Groups:
    """Pairs that stay together, as a label each: those with one source or one target, whoever links them.

    Args:
        same: texts that are equal after it are one.
    """

    def __init__(self, read: Read, same: Key, pairs: int, sources_alone: bool = False) -> None:
        sides = np.fromiter((_hash(same(text)) for pair in read() for text in pair), np.uint64, 2 * pairs)
        sides = sides.reshape(-1, 2)
        numbered = [np.unique(sides[:, side], return_inverse=True)[1] for side in ((0,) if sources_alone else (0, 1))]
        self.labels = _components(numbered)
        self.keys = np.full(int(self.labels.max()) + 1, np.iinfo(np.uint64).max)
        mixed = sides[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ sides[:, 1]
        np.minimum.at(self.keys, self.labels, mixed)
        self.sizes = np.bincount(self.labels)

    def draw(self, wanted: int, half: bool) -> NDArray[np.bool_] | None:
        """Which labels are held out: by their hashes, until there are enough pairs. Large groups stay.

        half: None where most pairs are in large groups.
        """
        large = self.sizes > max(1, wanted // 10)
        if half and 2 * self.sizes[large].sum() > self.sizes.sum():
            return None
        order = np.argsort(self.keys, kind="stable")
        order = order[~large[order]] if half else order
        fits = np.cumsum(self.sizes[order])
        chosen = order[: int(np.searchsorted(fits, wanted)) + 1]
        if not len(chosen) or len(chosen) == len(self.sizes) or self.sizes[chosen].sum() > 2 * wanted:
            chosen = chosen[:-1]
        held = np.zeros(len(self.sizes), bool)
        held[chosen] = True
        return held if len(chosen) >= min(2, wanted) else None

    def shared(self, held: NDArray[np.bool_], links: Sequence[tuple[int, int]], wanted: tuple[int, int]) -> Parts:
        """Each pair's part: linked labels together, each time to the part that lacks more of what it is to have."""
        leaders = list(range(len(held)))
        for one, other in links:
            leaders[_leader(leaders, one)] = _leader(leaders, other)
        clusters: dict[int, list[int]] = {}
        for label in np.flatnonzero(held)[np.argsort(self.keys[held], kind="stable")].tolist():
            clusters.setdefault(_leader(leaders, label), []).append(label)
        part, have = np.zeros(len(held), np.uint8), [0, 0]
        for labels in clusters.values():
            left = [(goal - got) / goal if goal else -np.inf for goal, got in zip(wanted, have, strict=True)]
            which = int(np.argmax(left))
            part[labels] = (VALIDATION, TEST)[which]
            have[which] += int(self.sizes[labels].sum())
        return part[self.labels]


def _components(numbered: list[Numbers]) -> Numbers:
    """Labels from 0 of rows that are linked by an equal number in one of the columns."""
    leaders = list(range(len(numbered[0])))
    for column in numbered:
        first: dict[int, int] = {}
        for row, number in enumerate(column.tolist()):
            other = first.setdefault(number, row)
            if other != row:
                leaders[_leader(leaders, row)] = _leader(leaders, other)
    return np.unique([_leader(leaders, row) for row in range(len(leaders))], return_inverse=True)[1]


def _links(read: Read, labels: Numbers, held: NDArray[np.bool_], new: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(label of a pair, label of a new held-out pair that it nearly repeats), over all pairs."""
    looked = list(islice(read(), 0, None, max(1, len(labels) // LOOKED_AT)))  # files may be sorted by length
    apart = [written_apart([pair[side] for pair in looked]) for side in (0, 1)]
    of, wanted = labels.tolist(), new[labels].tolist()
    chosen = [(row, pair) for row, (pair, is_new) in enumerate(zip(read(), wanted, strict=True)) if is_new]
    indices = [NearDuplicates(((row, pair[side]) for row, pair in chosen), apart[side]) for side in (0, 1)]
    found = set[tuple[int, int]]()
    for row, pair in enumerate(read()):
        for index, text in zip(indices, pair, strict=True):
            found |= {(of[row], of[other]) for other in index.of(text) if of[other] != of[row]}
    return sorted(found)


def _leader(leaders: list[int], label: int) -> int:
    while leaders[label] != label:
        leaders[label] = leaders[leaders[label]]
        label = leaders[label]
    return label


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
