"""Held-out parts that are drawn from training pairs: by one version of the draw, always the same of the same text.

Which pairs are held out is decided by hashes of their text, not by their order, a seed, or what else a recipe says; a
pair and its reverse have one hash, so a model and its reverse hold out the same. What belongs together stays on one
side:

1. pairs one side of which is the same, but for case, digits, punctuation and white space;
2. pairs one side of which shares more than 0.7 of its n-grams with a held-out one; see `near_duplicates`. They go
   to the side of the held-out ones, and so do theirs.

Where the files are of several directions (`to` differs, or the targets of one are the sources of another), the same
text and near-duplicates are looked for on both sides: what is a reference in one direction is no source of another.

Entries with a `tag`, such as those whose sources a model wrote, are not drawn from: the parts are the same without
them. Their pairs that belong to a held-out one are left out of training. Where all entries have a tag, all are drawn
from.

Pairs with an empty side belong to nothing, and none is drawn. A large group of pairs with one text is trained on, and
so is what nearly repeats one of them: else that text would fill a part.

Where texts are made from few templates, that would hold out much more than was asked for, or nothing: then (2) is left
out and only the same text belongs together, or only the same source, which is that of the target for a reverse model;
which of these it was, is told.

What is drawn has a version (`VERSION`): raise it with any change that draws other pairs. Version 1 drew pairs with an
empty side and large groups, too, and not the same for the reverse model; runs that it began go on with it.

Memory is a few numbers a pair, and the held-out texts; time is linear in the pairs for as many held out.
"""

import hashlib
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import numpy as np
from pydantic import Field, model_validator

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.files import fingerprint
from transduce.data.near_duplicates import NearDuplicatePairs, normalized
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.pairs.pair_groups import Links, Mask, PairGroups, Pairs, Parts, same_text, text_hash

VERSION: Literal[2] = 2  # of the draw
VERSIONS = (1, 2)
TRAIN, VALIDATION, TEST, LEFT_OUT = 0, 1, 2, 3
HELD_OUT = "held_out"  # the test set that was drawn; of several languages "held_out.zh" and so on
PASSES = 8  # over the corpus in search of near-duplicates of near-duplicates

Amount = Annotated[float, Field(ge=0)]


class HoldOut(Config):
    """How many training pairs are not trained on, but pick the best weights, or are the final test.

    Numbers below 1 are shares. They are drawn by hashes of their text, near-duplicates with them: the same file always
    gives the same parts, also for a model of the other direction. Files with a `tag` are not drawn from, nor are pairs
    with an empty side.
    """

    validation: Amount = 0
    """How many pairs pick the best weights; below 1: their share of all that are drawn from."""
    test: Amount = 0
    """How many pairs are the test set `held_out`; below 1: their share of all that are drawn from. Of several target
    languages, each is a set of its own: `held_out.fr`."""

    version: Literal[1, 2] = VERSION
    """Of the draw. A run that has begun goes on with its own; 1 draws what the first versions of Transduce drew."""

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

    @property
    def draws(self) -> bool:
        """Whether anything is held out."""
        return bool(self.validation or self.test)

    def counts(self, pairs: int) -> tuple[int, int]:
        """Of validation and test, out of so many."""
        first, second = (
            int(each) if each >= 1 or each == 0 else max(1, round(each * pairs))
            for each in (self.validation, self.test)
        )
        return first, second


class _Drawn(Protocol):
    """What is drawn: numbers of examples, or shares of them."""

    @property
    def validation(self) -> float: ...

    @property
    def test(self) -> float: ...


def check_drawn_once(drawn: _Drawn | None, validation: object, test: Container[str]) -> None:
    """Raises ValueError where files are named for a part that is drawn, too."""
    if drawn and drawn.validation and validation:
        raise ValueError("validation and hold_out both give validation examples: leave out either")
    if drawn and drawn.test and HELD_OUT in test:
        raise ValueError(f"hold_out.test is the test set {HELD_OUT}; give the other one another name")


def digest(parts: Parts, part: int) -> list[str | int]:
    """What tells a part from any other, for keys of a cache."""
    return [hashlib.sha256(parts.tobytes()).hexdigest(), part]


@dataclass(frozen=True)
class DrawnParts:
    """Where each example belongs.

    parts: of each file, a number an example: TRAIN, VALIDATION or TEST.
    """

    parts: tuple[Parts, ...]

    def count(self, part: int) -> int:
        """Examples of a part, in all files."""
        return sum(int((each == part).sum()) for each in self.parts)

    @property
    def held_out_parts(self) -> dict[str, int]:
        """The parts that have examples, by the names of their sets."""
        parts = {"validation": VALIDATION, HELD_OUT: TEST}
        return {name: part for name, part in parts.items() if self.count(part)}

    @property
    def held_out(self) -> str:
        """How many of each part, in words; "" where there are none."""
        counts = {"validation": self.count(VALIDATION), "the test": self.count(TEST)}
        return " and ".join(f"{count:,} for {name}" for name, count in counts.items() if count)


@dataclass(frozen=True)
class Split(DrawnParts):
    """Where each pair belongs.

    parts: of each corpus, a number a pair: TRAIN, VALIDATION or TEST; LEFT_OUT where it has a tag and nearly repeats
        a held-out pair.
    drawn: pairs that were asked for; near: those that came with them, as they nearly repeat one.
    grouping: what was kept on one side, in words.
    tagged: pairs of entries with a tag, or hold_out = false, from which none is drawn.
    """

    drawn: int
    near: int
    grouping: str
    tagged: int = 0

    def report(self) -> str:
        near = f", {self.near:,} of which nearly repeat one that was drawn" if self.near else ""
        told = ""
        if self.tagged:
            told = (
                f" None is drawn from the {self.tagged:,} pairs with a tag or hold_out = false; "
                f"{self.count(LEFT_OUT):,} of them are too much like a held-out pair, and are left out of training."
            )
        pairs = sum(map(len, self.parts)) - self.tagged
        return f"Held out of {pairs:,} pairs: {self.held_out or 'none'}{near}. Kept on one side: {self.grouping}.{told}"


def split_pairs(corpora: Sequence[PairFiles], root: Path, amounts: HoldOut) -> Split:
    """Where each pair of the corpora belongs. What was found is remembered as long as the process lives.

    Raises:
        InputError: what `read_pairs` refuses; there are too few pairs, or none that can be told from the others.
    """
    prints = tuple(fingerprint(path) for files in corpora for path in files.paths(root))
    return _split(tuple(corpora), root, amounts, prints)


def drawn_from(entries: Sequence[PairFiles]) -> list[PairFiles]:
    """Those without a tag, unless their `hold_out` says otherwise; all where there are none."""
    drawn = ((files, files.tag is None if files.hold_out is None else files.hold_out) for files in entries)
    return [files for files, is_drawn in drawn if is_drawn] or list(entries)


def part_of(pairs: Iterator[tuple[int, str, str]], parts: Parts, part: int) -> Iterator[tuple[int, str, str]]:
    """The pairs of one part, out of all in the files' order."""
    return (pair for pair, belongs in zip(pairs, parts.tolist(), strict=True) if belongs == part)


@lru_cache(maxsize=4)
def _split(corpora: tuple[PairFiles, ...], root: Path, amounts: HoldOut, prints: tuple[str, ...]) -> Split:
    """prints: of the files, which may change under the same names."""
    chosen = set(drawn_from(corpora))
    numbers = [number for number, files in enumerate(corpora) if files in chosen]
    others = [number for number, files in enumerate(corpora) if files not in chosen]
    first = amounts.version == 1
    pairs = Pairs.of(tuple(corpora[number] for number in numbers), root, empty=first, version=amounts.version)
    tagged = Pairs.of(tuple(corpora[number] for number in others), root, empty=True)  # a tag is a source, too
    wanted = amounts.counts(pairs.count)
    names = ", ".join(str(path) for files in pairs.entries for path in files.paths(root))
    if sum(wanted) >= pairs.count:
        raise InputError(
            f"{names}: data.hold_out: expected fewer than there are; got {sum(wanted):,} of {pairs.count:,} pairs."
        )
    for draw in (_near, _exact, _same_source):
        if (found := draw(pairs, wanted)) is not None:
            parts = [*pairs.by_entry(found.parts), *tagged.by_entry(_left_out(found, pairs, tagged))]
            ordered = [part for _, part in sorted(zip([*numbers, *others], parts, strict=True), key=itemgetter(0))]
            return Split(tuple(ordered), sum(wanted), found.near, found.grouping, tagged.count)
    raise InputError(
        f"{names}: data.hold_out: nothing can be held out: pairs with the same source stay together, and too few "
        "sources are different. Check that it is the source that you mean; or name files for data.validation and "
        "data.test."
    )


@dataclass(frozen=True)
class _Found:
    """What was drawn.

    near: pairs that came with those that were drawn. grouping: what is on one side, in words.
    groups: of the pairs. nearly: near-duplicates are on one side, too.
    """

    parts: Parts
    near: int
    grouping: str
    groups: PairGroups
    nearly: bool = False


def _near(pairs: Pairs, counts: tuple[int, int]) -> _Found | None:
    """With near-duplicates; None where they are too many."""
    groups = pairs.groups(normalized)
    held = groups.draw(sum(counts), half=True)
    if held is None:
        return None
    drawn, new, links, large = held.copy(), held.copy(), Links(len(held)), groups.large(sum(counts))
    for _ in range(PASSES):
        near = _linked(pairs, groups, held | large, new, links, 2 * sum(counts) + int(groups.sizes[large].sum()))
        if near is None:
            return None
        new = near & ~held & ~large
        held |= new
        if not new.any():
            break
    else:
        return None  # one is like the next, and that like another: there is no end
    together = pairs.grouping("pairs whose source or target is the same or nearly so")
    held &= ~_linked_with(large, links)
    if 2 * groups.sizes[held].sum() < sum(counts):
        return None
    near_pairs = int(groups.sizes[held & ~drawn].sum())
    return _Found(_shared(groups, held, links, counts), near_pairs, together, groups, nearly=True)


def _exact(pairs: Pairs, counts: tuple[int, int]) -> _Found | None:
    groups = pairs.groups(same_text)
    held = groups.draw(sum(counts), half=True)
    if held is None:
        return None
    together = pairs.grouping("pairs whose source or target is the same")
    together += " (the texts are too much alike to keep more together)"
    return _Found(_shared(groups, held, Links(len(held)), counts), 0, together, groups)


def _same_source(pairs: Pairs, counts: tuple[int, int]) -> _Found | None:
    """In several directions: the same text on the side that is rarer, which is that of both a pair and its reverse."""
    groups = pairs.groups(same_text, one_side=True)
    held = groups.draw(sum(counts), half=False)
    if held is None:
        return None
    together = "pairs with the same source (many have the same target)"
    if pairs.directions > 1:
        together = "pairs that share the rarer of their two texts (many share the other), in any direction"
    return _Found(_shared(groups, held, Links(len(held)), counts), 0, together, groups)


def _left_out(found: _Found, pairs: Pairs, tagged: Pairs) -> Parts:
    """The parts of pairs that none was drawn from: what would belong to a held-out pair is not trained on."""
    every, held = pairs + tagged, found.parts != TRAIN
    texts = [set(column[held].tolist()) for column in found.groups.texts]
    texts = [set().union(*texts)] * 2 if every.directions > 1 else texts
    indices = every.indices if every.directions > 1 else pairs.indices[:1] * len(every.entries)
    drawn = ((row, entry, pair) for row, (entry, *pair) in enumerate(pairs.read()) if held[row])
    index = NearDuplicatePairs(drawn if found.nearly else (), indices)
    out = np.zeros(tagged.count, np.uint8)
    for row, (entry, *pair) in enumerate(tagged.read()):
        same = any(text_hash(found.groups.same(text)) in some for text, some in zip(pair, texts, strict=False))
        if same or any(True for _ in index.of(len(pairs.entries) + entry, pair)):
            out[row] = LEFT_OUT
    return out


def _shared(groups: PairGroups, held: Mask, links: Links, counts: tuple[int, int]) -> Parts:
    """Each pair's part: linked labels together, each time to the part that lacks more of what it is to have."""
    clusters: dict[int, list[int]] = {}
    for label in np.flatnonzero(held)[np.argsort(groups.keys[held], kind="stable")].tolist():
        clusters.setdefault(links.leader(label), []).append(label)
    part, have = np.zeros(len(held), np.uint8), [0, 0]
    for labels in clusters.values():
        left = [(goal - got) / goal if goal else -np.inf for goal, got in zip(counts, have, strict=True)]
        which = int(np.argmax(left))
        part[labels] = (VALIDATION, TEST)[which]
        have[which] += int(groups.sizes[labels].sum())
    return part[groups.labels]


def _linked(pairs: Pairs, groups: PairGroups, held: Mask, new: Mask, links: Links, max_pairs: int) -> Mask | None:
    """The labels of pairs that nearly repeat a new held-out pair, which `links` learns; None: too many would be held.

    max_pairs: pairs that are held out in the end.
    """
    of, wanted, sizes = groups.labels.tolist(), new[groups.labels].tolist(), groups.sizes.tolist()
    chosen = ((row, at, pair) for row, (at, *pair) in enumerate(pairs.read()) if wanted[row])
    index, near, count = NearDuplicatePairs(chosen, pairs.indices), np.zeros_like(held), int(groups.sizes[held].sum())
    for row, (at, *pair) in enumerate(pairs.read()):
        others = {of[other] for other in index.of(at, pair)} - {of[row]}
        if others and not near[of[row]]:
            near[of[row]] = True
            count += 0 if held[of[row]] else sizes[of[row]]
        if count > max_pairs:
            return None
        for other in others:
            links.join(of[row], other)
    return near


def _linked_with(some: Mask, links: Links) -> Mask:
    """The labels that are linked with one of `some`, and those themselves."""
    leaders = np.array([links.leader(label) for label in range(len(some))])
    return np.isin(leaders, leaders[some])
