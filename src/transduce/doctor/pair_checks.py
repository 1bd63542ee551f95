"""What can be wrong with pairs: an empty side, a copy, a duplicate, unfit lengths, a leaked test set."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transduce.doctor.alignment import AlignedPairs
from transduce.doctor.contents import URL
from transduce.doctor.report import Finding, Mask, Severity, about_rows
from transduce.doctor.scan import ScannedSide
from transduce.doctor.side_checks import spoken_letters

Hashes = NDArray[np.uint64]

COPY_LETTERS, COPY_WORDS = 12, 4  # a copy of fewer may be a name or a number
RATIO = 5.0  # times the usual ratio of lengths
RATIO_SLACK = 15  # characters added to both, so that short lines may differ
MOST = 0.5  # share of pairs that are empty, or have one text on both sides, from which nothing can be learnt
MANY = 0.01  # share of duplicates or of leaked test pairs that is no accident
MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Paired:
    """Both sides, row by row as they belong together."""

    source: ScannedSide
    target: ScannedSide
    pairs: AlignedPairs

    @property
    def exact(self) -> Hashes:
        return pair_hash(self.source.exact[self.pairs.source_rows], self.target.exact[self.pairs.target_rows])

    def lengths(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Characters of the source and of the target."""
        return self.source.length[self.pairs.source_rows], self.target.length[self.pairs.target_rows]


def pair_hash(source: Hashes, target: Hashes) -> Hashes:
    """One hash of two, order matters."""
    return (source * MIX) ^ (target + (source >> np.uint64(29)))


def later_copies(values: Hashes) -> Mask:
    """Every occurrence of a value but its first."""
    _, first = np.unique(values, return_index=True)
    later = np.ones(len(values), np.bool_)
    later[first] = False
    return later


def empty_masks(paired: Paired) -> tuple[Mask, Mask]:
    """Pairs with one side empty, and with both."""
    source, target = paired.lengths()
    return (source == 0) ^ (target == 0), (source == 0) & (target == 0)


def copy_mask(paired: Paired) -> Mask:
    """Pairs whose target is the source again, apart from case; short ones (names, numbers) are let be."""
    words = paired.source.words
    long = (spoken_letters(paired.source) >= COPY_LETTERS) & (words.per_line() >= COPY_WORDS) & (not words.by_character)
    url = (paired.source.bits & URL) > 0
    return same_mask(paired) & (long & ~url)[paired.pairs.source_rows]


def same_mask(paired: Paired) -> Mask:
    """Pairs whose sides are the same, apart from case; empty ones are told elsewhere."""
    source_rows, target_rows = paired.pairs.source_rows, paired.pairs.target_rows
    same: Mask = paired.source.folded[source_rows] == paired.target.folded[target_rows]
    return same & (paired.source.length[source_rows] > 0)


def ratio_mask(paired: Paired) -> Mask:
    """Pairs whose ratio of lengths is more than five times off the usual one."""
    source, target = paired.lengths()
    spoken = (source > 0) & (target > 0)
    if not spoken.any():
        return np.zeros(len(source), np.bool_)
    usual = np.median(source[spoken]) / np.median(target[spoken])  # so that the slack is as much on either side
    ratio = np.log((target * usual + RATIO_SLACK) / (source + RATIO_SLACK))
    return spoken & (np.abs(ratio - np.median(ratio[spoken])) > np.log(RATIO))


def duplicate_mask(paired: Paired) -> Mask:
    """Pairs that stood there before; empty ones are told elsewhere."""
    source, target = paired.lengths()
    return later_copies(paired.exact) & (source > 0) & (target > 0)


def ambiguous_mask(paired: Paired) -> Mask:
    """Pairs whose source has another target elsewhere."""
    _, first_pairs = np.unique(paired.exact, return_index=True)
    sources = paired.source.exact[paired.pairs.source_rows]
    values, targets_of = np.unique(sources[first_pairs], return_counts=True)
    return np.isin(sources, values[targets_of > 1]) & (paired.source.length[paired.pairs.source_rows] > 0)


def check_pairs(paired: Paired) -> list[Finding]:
    """Every finding about pairs, apart from shift and test sets."""
    one, both = empty_masks(paired)
    duplicate, same = duplicate_mask(paired), same_mask(paired)
    often = Severity.WARNING if duplicate.mean() > MANY else Severity.NOTE
    mostly_empty, mostly_same = (one | both).mean() > MOST, same.mean() > MOST
    copied = (
        _about(paired, "same_sides", Severity.ERROR, same, "{pairs} with the same text on both sides: most of them.")
        if mostly_same
        else _about(paired, "copy", Severity.WARNING, copy_mask(paired), "{pairs} copied, not translated.")
    )
    empty = (Severity.ERROR, Severity.ERROR) if mostly_empty else (Severity.WARNING, Severity.NOTE)
    return [
        *_about(paired, "empty_one_side", empty[0], one, "{pairs} with one side empty."),
        *_about(paired, "empty_both_sides", empty[1], both, "{pairs} with both sides empty."),
        *copied,
        *_about(paired, "duplicate", often, duplicate, "{pairs} repeated word for word."),
        *_about(
            paired,
            "several_targets",
            Severity.NOTE,
            ambiguous_mask(paired),
            "{pairs} with a source that elsewhere has a different target.",
        ),
        *_about(
            paired,
            "extreme_ratio",
            Severity.WARNING,
            ratio_mask(paired),
            "{pairs} with lengths that hardly fit (5 times off the usual ratio).",
        ),
    ]


def _about(paired: Paired, kind: str, severity: Severity, mask: Mask, sentence: str) -> list[Finding]:
    rows = paired.pairs.source_rows[mask]
    return about_rows(kind, severity, sentence, rows, side="pair", first_line=paired.source.file.first_line)


def repeated_lines(side: ScannedSide, role: str) -> list[Finding]:
    """For a single file: lines that stood there before, and empty ones."""
    first = side.file.first_line
    again = np.flatnonzero(later_copies(side.exact) & (side.length > 0))
    empty = np.flatnonzero(side.length == 0)
    return [
        *about_rows("duplicate", Severity.NOTE, "{lines} repeated word for word.", again, side=role, first_line=first),
        *about_rows("empty", Severity.NOTE, "{lines} empty.", empty, side=role, first_line=first),
    ]


def check_leak(
    train: Hashes, test: Hashes, test_source: ScannedSide, what: str, worst: Severity, name: str
) -> list[Finding]:
    """Lines of the test set that the training set has, word for word; empty ones aside.

    `what` is `source`, `pair` or `line`; `worst` is the severity when there are too many for an accident; `name` is
    `test`, or `test NAME` of one among several.
    """
    rows = np.flatnonzero(np.isin(test, train) & (test_source.length > 0))
    severity = worst if len(rows) > MANY * len(test) else Severity.WARNING
    called = name.replace("test", "test set", 1)
    sentence = f"{len(rows):,} of the {called}'s {len(test):,} {what}s are in the training set too."
    first, role = test_source.file.first_line, f"{name} source"
    return about_rows(f"test_{what}_in_train", severity, sentence, rows, side=role, first_line=first)


def check_near_leak(paired: Paired, test_source: ScannedSide, test_target: ScannedSide, name: str) -> list[Finding]:
    """Pairs of the test set that the training set has but for case, punctuation and digits, and not word for word."""
    source_rows, target_rows = paired.pairs.source_rows, paired.pairs.target_rows
    train = pair_hash(paired.source.loose[source_rows], paired.target.loose[target_rows])
    nearly = np.isin(pair_hash(test_source.loose, test_target.loose), train)
    exactly = np.isin(pair_hash(test_source.exact, test_target.exact), paired.exact)
    rows = np.flatnonzero(nearly & ~exactly & (test_source.loose > 0) & (test_target.loose > 0))
    sentence = (
        f"{len(rows):,} of the {name.replace('test', 'test set', 1)}'s {len(test_source):,} pairs are in the training "
        "set but for case, punctuation and digits."
    )
    first, role = test_source.file.first_line, f"{name} source"
    return about_rows("test_pair_nearly_in_train", Severity.WARNING, sentence, rows, side=role, first_line=first)
