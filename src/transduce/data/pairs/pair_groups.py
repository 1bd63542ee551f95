"""Pairs that stay together, as one of their texts is the same: those linked by it have one label."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transduce.data.corpus import read_pairs
from transduce.data.near_duplicates import Index, indices_of
from transduce.data.pairs.pair_files import PairFiles

LOOKED_AT = 1000  # texts that say whether words are written apart
LARGE = 5  # times as large as that of the median pair: such a group is not held out
Hashes = NDArray[np.uint64]
Numbers = NDArray[np.int64]
Parts = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Key = Callable[[str], str]


@dataclass(frozen=True)
class Pairs:
    """The pairs of some entries, in the files' order; read as often as needed.

    chosen: of each entry, which of its pairs are meant. version: of the draw, see `transduce.data.hold_out`.
    """

    entries: tuple[PairFiles, ...]
    root: Path
    chosen: tuple[Mask, ...]
    version: int = 2

    @classmethod
    def of(cls, entries: tuple[PairFiles, ...], root: Path, empty: bool = False, version: int = 2) -> "Pairs":
        """empty: with those that have no text on one side."""
        read = (read_pairs(files, root) for files in entries)
        masks = ([empty or bool(source.strip() and target.strip()) for _, source, target in each] for each in read)
        return cls(entries, root, tuple(np.array(each, bool) for each in masks), version)

    def __add__(self, other: "Pairs") -> "Pairs":
        return replace(self, entries=(*self.entries, *other.entries), chosen=(*self.chosen, *other.chosen))

    def groups(self, same: Key, one_side: bool = False) -> "PairGroups":
        """Those that stay together; see `PairGroups`."""
        return (FirstPairGroups if self.version == 1 else PairGroups)(self, same, one_side)

    @property
    def count(self) -> int:
        return sum(int(each.sum()) for each in self.chosen)

    def by_entry(self, parts: Parts) -> list[Parts]:
        """An array an entry, of a number for each pair; 0 for pairs that are not meant."""
        found, sizes = [np.zeros(len(each), np.uint8) for each in self.chosen], [each.sum() for each in self.chosen]
        for each, chosen, own in zip(found, self.chosen, np.split(parts, np.cumsum(sizes)[:-1]), strict=False):
            each[chosen] = own
        return found

    def read(self) -> Iterator[tuple[int, str, str]]:
        """(number of the entry, source, target)."""
        for number, (files, chosen) in enumerate(zip(self.entries, self.chosen, strict=True)):
            pairs = compress(read_pairs(files, self.root), chosen.tolist())
            yield from ((number, source, target) for _, source, target in pairs)

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
        apart = zip(self.entries, self.chosen, strict=True)
        each = (replace(self, entries=(files,), chosen=(chosen,)).read() for files, chosen in apart)
        sample = ((entry, *pair[1:]) for entry, some in enumerate(each) for pair in islice(some, 0, None, step))
        return indices_of(sample, len(self.entries), sides_apart=False)

    def grouping(self, what: str) -> str:
        """What is kept on one side, in words."""
        return what if self.directions == 1 else f"{what}, in any direction"


def _turned(entries: Sequence[PairFiles]) -> bool:
    """Whether the targets of one are sources of another."""
    sources = defaultdict[tuple[str, int | str], set[int]](set)
    for entry, files in enumerate(entries):
        name = next(iter(files.names.values()))
        for column in (0,) if files.of_two_files else files.sources:
            sources[name, column].add(entry)
    targets = ((*files.names.values(),)[-1] for files in entries)
    columns = (0 if files.of_two_files else files.target_column for files in entries)
    return any(sources.get(side, set()) - {entry} for entry, side in enumerate(zip(targets, columns, strict=True)))


class PairGroups:
    """Pairs that stay together, as a label each: those with one source or one target, whoever links them.

    Args:
        same: texts that are equal after it are one.
        one_side: only the sources count, or of several directions the rarer text of each pair.
    """

    def __init__(self, pairs: Pairs, same: Key, one_side: bool = False) -> None:
        hashes = (text_hash(same(text)) for _, *pair in pairs.read() for text in pair)
        sides = np.fromiter(hashes, np.uint64, 2 * pairs.count).reshape(-1, 2)
        self.same, self.texts = same, _linking(sides, pairs.directions > 1, one_side)
        self.labels = _components(self.texts, pairs.directions > 1)
        self.usual = pairs.directions  # pairs that say the same, if each direction has one
        self.keys = np.full(int(self.labels.max()) + 1, np.iinfo(np.uint64).max)
        np.minimum.at(self.keys, self.labels, self.hashed(sides))
        self.sizes = np.bincount(self.labels)

    @staticmethod
    def hashed(sides_N2: Hashes) -> Hashes:
        """A hash of each pair, which is that of its reverse."""
        return _mixed(sides_N2.min(1), sides_N2.max(1))

    def draw(self, count: int, half: bool) -> Mask | None:
        """Which labels are held out: by their hashes, until there are enough pairs. Large groups stay.

        half: None where most pairs are in groups that are too large.
        """
        staying = self.staying(count, half)
        if staying is None:
            return None
        order = np.argsort(self.keys, kind="stable")
        order = order[~staying[order]]
        fits = np.cumsum(self.sizes[order])
        chosen = order[: int(np.searchsorted(fits, count)) + 1]
        if not len(chosen) or len(chosen) == len(self.sizes) or self.sizes[chosen].sum() > 2 * count:
            chosen = chosen[:-1]
        held = np.zeros(len(self.sizes), bool)
        held[chosen] = True
        return held if len(chosen) >= min(2, count) else None

    def staying(self, count: int, half: bool) -> Mask | None:
        """Which labels are not drawn; half: None where most pairs are in groups of over a tenth of what is wanted."""
        return None if half and self._median > max(self.usual, count // 10) else self.large(count)

    def large(self, count: int) -> Mask:
        """Which labels have more pairs than 5 % of what is wanted, or than five usual groups: they would fill a part.

        Usual groups are not large.
        """
        return self.sizes > max(self.usual, self._median, min(LARGE * self._median, count // 20))

    @cached_property
    def _median(self) -> int:
        """At least half of the pairs are in groups of no more than so many."""
        return int(np.quantile(self.sizes[self.labels], 0.5, method="inverted_cdf"))


class FirstPairGroups(PairGroups):
    """As version 1 of the draw had them: a pair and its reverse differ, and large groups may be drawn."""

    @staticmethod
    def hashed(sides_N2: Hashes) -> Hashes:
        return _mixed(sides_N2[:, 0], sides_N2[:, 1])

    def staying(self, count: int, half: bool) -> Mask | None:
        """With half: groups of more than a tenth of what is wanted; None where most pairs are in them."""
        large: Mask = self.sizes > max(self.usual, count // 10)
        if not half:
            return self.large(count)
        return None if 2 * self.sizes[large].sum() > self.sizes.sum() else large

    def large(self, count: int) -> Mask:
        return np.zeros(len(self.sizes), bool)


def _mixed(one_N: Hashes, other_N: Hashes) -> Hashes:
    return one_N * np.uint64(0x9E3779B97F4A7C15) ^ other_N


def _linking(sides_N2: Hashes, either: bool, one_side: bool) -> list[Hashes]:
    """The texts by which pairs are linked. either: a text is the same on either side."""
    source, target = sides_N2.T
    if not one_side:
        return [source, target]
    if not either:
        return [source]
    _, numbers, counts = np.unique(sides_N2, return_inverse=True, return_counts=True)
    often = counts[numbers.reshape(-1, 2)]
    return [np.where((often[:, 0] < often[:, 1]) | ((often[:, 0] == often[:, 1]) & (source < target)), source, target)]


def _components(columns: Sequence[Hashes], either: bool) -> Numbers:
    """Labels from 0 of rows that are linked by an equal number in one of the columns; either: or in two of them."""
    links, first = Links(len(columns[0])), dict[int, int]()
    for column in columns:
        first = first if either else {}
        for row, number in enumerate(column.tolist()):
            other = first.setdefault(number, row)
            if other != row:
                links.join(row, other)
    return np.unique([links.leader(row) for row in range(len(columns[0]))], return_inverse=True)[1]


class Links:
    """Which of N things are linked, also by way of others: a number each (union-find)."""

    def __init__(self, count: int) -> None:
        self._leaders = list(range(count))

    def join(self, one: int, other: int) -> None:
        """Link two, and all that are linked with either."""
        self._leaders[self.leader(one)] = self.leader(other)

    def leader(self, one: int) -> int:
        """The one that stands for all that are linked with `one`; the way to it gets shorter."""
        leaders = self._leaders
        while leaders[one] != one:
            leaders[one] = leaders[leaders[one]]
            one = leaders[one]
        return one


def same_text(text: str) -> str:
    """What is equal of texts that are the same but for case and white space."""
    return " ".join(text.casefold().split())


def text_hash(text: str) -> int:
    """64 bits of a hash."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
