"""Held-out parts that are drawn from training pairs: always the same lines of the same text.

Which pairs are held out is decided by hashes of their text, not by their order, a seed, or what else a recipe says.
What belongs together stays on one side:

1. pairs one side of which is the same, but for case, digits, punctuation and white space;
2. pairs one side of which shares more than 0.7 of its n-grams with a held-out one; see `near_duplicates`. They go
   to the side of the held-out ones, and so do theirs.

Where the files are of several directions (`to` differs, or the targets of one are the sources of another), the same
text and near-duplicates are looked for on both sides: what is a reference in one direction is no source of another.

Where texts are made from few templates, that would hold out much more than was asked for, or nothing: then (2) is left
out and only the same text belongs together, or only the same source; which of these it was, is told.

Memory is a few numbers a pair, and the held-out texts; time is linear.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
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
from transduce.data.near_duplicates import Index, NearDuplicatePairs, indices_of, normalized

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

    sizes = [sum(1 for _ in read_pairs(files, root)) for files in corpora]
    pairs, wanted = _Pairs(corpora, root, sum(sizes)), amounts.counts(sum(sizes))
    names = ", ".join(str(path) for files in corpora for path in files.paths(root))
    if sum(wanted) >= sum(sizes):
        raise InputError(
            f"{names}: data.hold_out: expected fewer than there are; got {sum(wanted):,} of {sum(sizes):,} pairs."
        )
    for draw in (_near, _exact, _same_source):
        if (found := draw(pairs, wanted)) is not None:
            parts, near, together = found
            cut = np.cumsum(sizes)[:-1]
            return Split(tuple(np.split(parts, cut)), sum(wanted), near, together)
    raise InputError(
        f"{names}: data.hold_out: nothing can be held out, since all pairs have the same source. Check that it is the "
        "source that you mean; or name files for data.validation and data.test."
    )


@dataclass(frozen=True)
class _Pairs:
    """All pairs of some entries, in the files' order; read as often as needed."""

    entries: tuple[PairFiles, ...]
    root: Path
    count: int

    def read(self) -> Iterator[tuple[int, str, str]]:
        """(number of the entry, source, target)."""
        for number, files in enumerate(self.entries):
            yield from ((number, source, target) for _, source, target in read_pairs(files, self.root))

    @cached_property
    def directions(self) -> int:
        """How many there may be. With one, sources are not compared with targets."""
        languages = len({files.to for files in self.entries})
        return max(languages * (languages - 1), 2 if _turned(self.entries) else 1)

    @cached_property
    def indices(self) -> list[tuple[Index, Index]]:
        """In which indices the sources and the targets of each entry are looked for."""
        step = max(1, self.count // LOOKED_AT)  # files may be sorted by length
        if self.directions == 1:
            return indices_of(islice(self.read(), 0, None, step), len(self.entries), sides_apart=True)
        each = (replace(self, entries=(files,)).read() for files in self.entries)
        sample = ((entry, *pair[1:]) for entry, some in enumerate(each) for pair in islice(some, 0, None, step))
        return indices_of(sample, len(self.entries), sides_apart=False)

    def together(self, what: str) -> str:
        """What is kept on one side, in words."""
        return what if self.directions == 1 else f"{what}, in any direction"


def _turned(entries: Sequence[PairFiles]) -> bool:
    """Whether the targets of one are sources of another."""
    sources = defaultdict[tuple[str, int | str], set[int]](set)
    for entry, files in enumerate(entries):
        name = next(iter(files.names.values()))
        for column in files.sources:
            sources[name, column].add(entry)
    targets = ((*files.names.values(),)[-1] for files in entries)
    columns = (0 if files.of_two_files else files.target_column for files in entries)
    return any(sources.get(side, set()) - {entry} for entry, side in enumerate(zip(targets, columns, strict=True)))


Found = tuple[Parts, int, str] | None


def _near(pairs: _Pairs, wanted: tuple[int, int]) -> Found:
    """With near-duplicates; None where they are too many."""
    groups = _Groups(pairs, normalized)
    held = groups.draw(sum(wanted), half=True)
    if held is None:
        return None
    drawn, new, links = int(held[groups.labels].sum()), held.copy(), list[tuple[int, int]]()
    for _ in range(PASSES):
        found = _links(pairs, groups.labels, new)
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
    together = pairs.together("pairs whose source or target is the same or nearly so")
    parts = groups.shared(held, links, wanted)
    return parts, int((parts != TRAIN).sum()) - drawn, together


def _exact(pairs: _Pairs, wanted: tuple[int, int]) -> Found:
    groups = _Groups(pairs, _same)
    held = groups.draw(sum(wanted), half=True)
    if held is None:
        return None
    together = pairs.together("pairs whose source or target is the same")
    return groups.shared(held, [], wanted), 0, f"{together} (the texts are too much alike to keep more together)"


def _same_source(pairs: _Pairs, wanted: tuple[int, int]) -> Found:
    """In several directions: the same text on the side that is rarer, which is that of both a pair and its reverse."""
    groups = _Groups(pairs, _same, one_side=True)
    held = groups.draw(sum(wanted), half=False)
    if held is None:
        return None
    together = "pairs with the same source (many have the same target)"
    if pairs.directions > 1:
        together = "pairs that share the rarer of their two texts (many share the other), in any direction"
    return groups.shared(held, [], wanted), 0, together


def _same(text: str) -> str:
    return " ".join(text.casefold().split())


class _Groups:
    """Pairs that stay together, as a label each: those with one source or one target, whoever links them.

    Args:
        same: texts that are equal after it are one.
        one_side: only the sources count, or of several directions the rarer text of each pair.
    """

    def __init__(self, pairs: _Pairs, same: Key, one_side: bool = False) -> None:
        hashes = (_hash(same(text)) for _, *pair in pairs.read() for text in pair)
        sides = np.fromiter(hashes, np.uint64, 2 * pairs.count).reshape(-1, 2)
        self.labels = _components(_numbered(sides, pairs.directions > 1, one_side))
        self.usual = pairs.directions  # pairs that say the same, if each direction has one
        self.keys = np.full(int(self.labels.max()) + 1, np.iinfo(np.uint64).max)
        mixed = sides[:, 0] * np.uint64(0x9E3779B97F4A7C15) ^ sides[:, 1]
        np.minimum.at(self.keys, self.labels, mixed)
        self.sizes = np.bincount(self.labels)

    def draw(self, wanted: int, half: bool) -> NDArray[np.bool_] | None:
        """Which labels are held out: by their hashes, until there are enough pairs. Large groups stay.

        half: None where most pairs are in large groups.
        """
        large = self.sizes > max(self.usual, wanted // 10)
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


def _numbered(sides_N2: NDArray[np.uint64], either: bool, one_side: bool) -> list[Numbers]:
    """By which numbers pairs are linked: those with an equal one. either: a text is the same on either side."""
    if not either:
        source, target = (np.unique(sides_N2[:, side], return_inverse=True)[1] for side in (0, 1))
        return [source] if one_side else [source, target + len(target)]
    _, numbers, counts = np.unique(sides_N2, return_inverse=True, return_counts=True)
    source, target = numbers.reshape(-1, 2).T
    if not one_side:
        return [source, target]
    often = counts[source] * len(counts) + source, counts[target] * len(counts) + target
    return [np.where(often[0] < often[1], source, target)]


def _components(numbered: list[Numbers]) -> Numbers:
    """Labels from 0 of rows that are linked by an equal number, in the same column or in two."""
    leaders, first = list(range(len(numbered[0]))), dict[int, int]()
    for column in numbered:
        for row, number in enumerate(column.tolist()):
            other = first.setdefault(number, row)
            if other != row:
                leaders[_leader(leaders, row)] = _leader(leaders, other)
    return np.unique([_leader(leaders, row) for row in range(len(leaders))], return_inverse=True)[1]


def _links(pairs: _Pairs, labels: Numbers, new: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """(label of a pair, label of a new held-out pair that it nearly repeats), over all pairs."""
    of, wanted = labels.tolist(), new[labels].tolist()
    chosen = ((row, at, pair) for row, (at, *pair) in enumerate(pairs.read()) if wanted[row])
    index, found = NearDuplicatePairs(chosen, pairs.indices), set[tuple[int, int]]()
    for row, (at, *pair) in enumerate(pairs.read()):
        found |= {(of[row], of[other]) for other in index.of(at, pair) if of[other] != of[row]}
    return sorted(found)


def _leader(leaders: list[int], label: int) -> int:
    while leaders[label] != label:
        leaders[label] = leaders[leaders[label]]
        label = leaders[label]
    return label


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
