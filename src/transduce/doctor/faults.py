"""What is wrong with single pairs, as far as their words, numbers, brackets, ends and lengths tell.

A pair that has a fault of its own (a copy, a URL) is not looked at for what needs a sentence (another language, a wrong
partner). What many pairs of a corpus have belongs to it and is no fault.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from transduce.doctor.association import places_of
from transduce.doctor.contents import BRACKET, ENDS, NOTE, REPEATS, URL
from transduce.doctor.languages import NO_LANGUAGE, Strangers, of_one_language, strangers, swapped_mask
from transduce.doctor.pair_checks import (
    COPY_LETTERS,
    COPY_WORDS,
    MANY,
    MOST,
    Paired,
    copy_mask,
    duplicate_mask,
    empty_masks,
    later_copies,
    pair_hash,
    ratio_mask,
)
from transduce.doctor.partners import Partners, wrong_partners
from transduce.doctor.report import Finding, Mask, Rows, Severity, about_rows, plural
from transduce.doctor.scan import ScannedSide
from transduce.doctor.side_checks import foreign_mask, spoken_letters
from transduce.doctor.words import BUCKETS

ALIKE = 0.6  # share of the words of both sides that stand on either, from which one is nearly a copy of the other
BELONGS = 0.1  # share of the pairs from which something belongs to the corpus
MOSTLY_ENDS = 0.8  # share of the targets that end as sentences where their sources do, from which others are cut
SHORT = 0.15  # nats by which a cut side is shorter than usual; a cut of a tenth is 0.1
VERY_SHORT = 0.4  # nats from which it is left out of a cleaned copy: two thirds of the usual length
FEW = 20  # pairs with the same target, and
CONSTANT = 0.01  # this share of them, from which it is no answer to its source;
DIFFERENT = 0.1  # different targets, as a share of the pairs, of fewer the targets are labels
NOTHING_ELSE = 0.9  # share of the pairs with the same target, from which nothing can be learnt
SWAPPED = 0.05  # share of swapped pairs, above which nothing is learnt well
PAIRS_AT_ONCE = 65_536

Ratios = NDArray[np.float64]


@dataclass(frozen=True)
class Faults:
    """Masks over pairs. Each is found when it is asked for, and once."""

    paired: Paired
    rows: tuple[Rows, Rows] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", (self.paired.pairs.source_rows, self.paired.pairs.target_rows))

    @cached_property
    def spoken(self) -> Mask:
        """Pairs with a text on either side, of which neither is a URL."""
        one, both = empty_masks(self.paired)
        return ~(one | both | self.url_only)

    @cached_property
    def url_only(self) -> Mask:
        """Pairs of which a side is a URL and nothing else."""
        source, target = self.has(URL)
        return source | target

    @cached_property
    def copy(self) -> Mask:
        return copy_mask(self.paired) & ~self.url_only

    @cached_property
    def near_copy(self) -> Mask:
        """Pairs whose sides have most words in common, where most pairs have not."""
        near = self._alike & ~self.copy & ~self.url_only
        return near & ((near | self.copy).mean() < MOST)

    @cached_property
    def _alike(self) -> Mask:
        source, target = self.paired.source, self.paired.target
        (source_rows, target_rows), alike = self.rows, [np.zeros(0, np.bool_)]
        long = (spoken_letters(source) >= COPY_LETTERS) & (not source.words.by_character)
        for first in range(0, len(source_rows), PAIRS_AT_ONCE):
            part = slice(first, first + PAIRS_AT_ONCE)
            both, either = _words_of_both(source, target, source_rows[part], target_rows[part])
            alike.append((both >= ALIKE * either) & (both >= COPY_WORDS) & long[source_rows[part]])
        return np.concatenate(alike)

    @cached_property
    def swapped(self) -> Mask:
        return swapped_mask(self.paired.source.words, self.paired.target.words, self.paired.pairs)

    @cached_property
    def translated(self) -> bool:
        """Whether the sides are in two languages, so that each says what the other does."""
        sides = self.paired
        return not of_one_language(sides.source.words, sides.target.words, sides.pairs, self.swapped)

    @cached_property
    def constant_target(self) -> Mask:
        """Pairs with a target that stands beside many sources, where targets are no labels."""
        sides = self.paired
        pairs = pair_hash(sides.source.folded[self.rows[0]], sides.target.folded[self.rows[1]])
        targets = sides.target.folded[self.rows[1]]
        _, first = np.unique(pairs, return_index=True)
        values, counts = np.unique(targets[first], return_counts=True)
        often = values[counts >= max(FEW, CONSTANT * len(pairs))]
        labels = len(values) < DIFFERENT * len(first) and counts.max() < NOTHING_ELSE * len(first)
        return np.isin(targets, often) & self.spoken & ~self.repetition & (not labels)

    @cached_property
    def repetition(self) -> Mask:
        """Pairs with a phrase again and again on one side alone."""
        source, target = self.has(REPEATS)
        return self._unless_usual(source ^ target)

    @cached_property
    def placeholders_differ(self) -> Mask:
        source, target = (side.placeholders[rows] for side, rows in self._sides())
        return (source != target) & self.spoken

    @cached_property
    def numbers_differ(self) -> Mask:
        """Pairs with a number in digits on either side that the other lacks; one of them may write it in words."""
        source, target = (side.numbers[rows] for side, rows in self._sides())
        return ((source & ~target) > 0) & ((target & ~source) > 0) & self.spoken & self.translated

    @cached_property
    def note(self) -> Mask:
        """Pairs of which a side says that it is a note of the translator."""
        source, target = self.has(NOTE)
        return self._unless_usual(source ^ target)

    @cached_property
    def bracket(self) -> Mask:
        """Pairs with brackets on one side alone."""
        source, target = self.has(BRACKET)
        return self._unless_usual(source ^ target) & self.translated

    def cut(self, side: int, short: float = SHORT) -> Mask:
        """Pairs whose other side ends as a sentence, and this one does not and is shorter than usual."""
        ends = self.has(ENDS)
        other_ends = ends[1 - side] & self.spoken
        if (ends[side] & other_ends).sum() < MOSTLY_ENDS * max(int(other_ends.sum()), 1):
            return np.zeros(len(other_ends), np.bool_)
        shorter = self._deviation * (1 if side else -1) < -short
        spoken, rows = self._sides()[side]
        return self.translated & other_ends & ~ends[side] & shorter & (spoken.letters[rows] > 0) & ~self._told_already

    @cached_property
    def near_duplicate(self) -> Mask:
        """Pairs that stood there before but for case, punctuation, digits and white space."""
        source, target = (side.loose[rows] for side, rows in self._sides())
        again = later_copies(pair_hash(source, target)) & (source > 0) & (target > 0)
        return again & ~duplicate_mask(self.paired) & self.spoken & (not self.paired.source.words.by_character)

    @cached_property
    def languages(self) -> tuple[Strangers, Strangers]:
        """The lines of either side in another language."""
        words = self.paired.source.words, self.paired.target.words
        judged = [_lines(side, rows[~self._told_already]) for side, rows in self._sides()]
        return strangers(words[0], words[1], judged[0]), strangers(words[1], words[0], judged[1])

    @cached_property
    def other_language(self) -> Mask:
        source, target = (found.lines[rows] for found, rows in zip(self.languages, self.rows, strict=True))
        return source | target

    @cached_property
    def partners(self) -> Partners:
        sides = self.paired
        if not self.translated:
            return Partners(np.zeros(0, np.int64), np.zeros(len(sides.pairs), np.bool_))
        judged = ~(self._told_already | self.other_language | self.cut(0) | self.cut(1) | ratio_mask(self.paired))
        return wrong_partners(sides.source.words, sides.target.words, sides.pairs, judged)

    def has(self, bit: int) -> tuple[Mask, Mask]:
        """Which pairs have the bit of `contents` on the source side, and on the target side."""
        source, target = ((side.bits[rows] & bit) > 0 for side, rows in self._sides())
        return source, target

    def _sides(self) -> tuple[tuple[ScannedSide, Rows], tuple[ScannedSide, Rows]]:
        return (self.paired.source, self.rows[0]), (self.paired.target, self.rows[1])

    def _unless_usual(self, mask: Mask) -> Mask:
        return mask & self.spoken & (mask.mean() < BELONGS)

    @cached_property
    def _deviation(self) -> Ratios:
        """Nats by which the target is longer than usual for its source."""
        source, target = (np.log(side.length[rows] + 1.0) for side, rows in self._sides())
        ratio = target - source
        return ratio - np.median(ratio[self.spoken]) if self.spoken.any() else ratio

    @cached_property
    def _told_already(self) -> Mask:
        """Pairs that have a fault by which they are no sentence and its translation."""
        faults = self.copy | self.near_copy | self.swapped | self.constant_target | self.repetition | ~self.spoken
        foreign = [foreign_mask(side)[rows] for side, rows in self._sides()]
        return faults | foreign[0] | foreign[1]

    def reasons_to_drop(self) -> dict[str, Mask]:
        """Why `clean` leaves pairs out, those first that are surest."""
        return {
            "url_only": self.url_only,
            "near_copy": self.near_copy,
            "constant_target": self.constant_target,
            "repetition": self.repetition,
            "placeholders_differ": self.placeholders_differ,
            "numbers_differ": self.numbers_differ,
            "note_one_side": self.note,
            "cut": self.cut(0, VERY_SHORT) | self.cut(1, VERY_SHORT),
            "other_language": self.other_language,
            "wrong_partner": self.partners.sure,
        }


def _lines(side: ScannedSide, rows: Rows) -> Mask:
    mask = np.zeros(len(side), np.bool_)
    mask[rows] = True
    return mask


def _words_of_both(source: ScannedSide, target: ScannedSide, source_rows: Rows, target_rows: Rows) -> tuple[Rows, Rows]:
    """How many words each pair has on both sides, and on either; punctuation and digits do not count."""
    codes = []
    for side, rows in ((source, source_rows), (target, target_rows)):
        places, owner = places_of(side.words, rows)
        ids = side.words.ids[places].astype(np.int64)
        code = owner * BUCKETS + ids
        codes.append(code[_IS_WORD[ids]])
    every = np.sort(np.concatenate(codes))
    again = every[1:][every[1:] == every[:-1]] // BUCKETS
    both = np.bincount(again, minlength=len(source_rows))
    return both, np.bincount(every // BUCKETS, minlength=len(source_rows)) - both


_IS_WORD = np.ones(BUCKETS, np.bool_)
_IS_WORD[NO_LANGUAGE] = False


def check_faults(faults: Faults) -> list[Finding]:
    """A finding for each fault that pairs have."""
    swapped = Severity.ERROR if faults.swapped.mean() > SWAPPED else Severity.WARNING
    constant = Severity.ERROR if faults.constant_target.mean() > NOTHING_ELSE else Severity.WARNING
    return [
        *_told(faults, "swapped", faults.swapped, "with exchanged sides: each is in the other's language", swapped),
        *_told(faults, "constant_target", faults.constant_target, "with one target that many sources have", constant),
        *_told(faults, "near_copy", faults.near_copy, "nearly copied: most words stand on both sides"),
        *_languages(faults),
        *_partners(faults),
        *_told(faults, "url_only", faults.url_only, "with a URL in place of a text"),
        *_told(faults, "placeholders_differ", faults.placeholders_differ, "whose placeholders (%s, {{name}}) differ"),
        *_told(faults, "numbers_differ", faults.numbers_differ, "whose numbers differ"),
        *_told(faults, "repetition", faults.repetition, "with a phrase again and again on one side"),
        *_told(faults, "cut_source", faults.cut(0), "whose source is short and lacks a full stop that its target has"),
        *_told(faults, "cut_target", faults.cut(1), "whose target is short and lacks a full stop that its source has"),
        *_notes(faults),
        *_told(
            faults,
            "near_duplicate",
            faults.near_duplicate,
            "that stood there before but for case, punctuation and digits",
            Severity.NOTE,
        ),
    ]


def _told(faults: Faults, kind: str, mask: Mask, what: str, severity: Severity | None = None) -> list[Finding]:
    """A warning; a note where they are few."""
    often = Severity.WARNING if mask.mean() > MANY else Severity.NOTE
    rows, first = faults.rows[0][mask], faults.paired.source.file.first_line
    return about_rows(kind, severity or often, f"{{pairs}} {what}.", rows, side="pair", first_line=first)


def _languages(faults: Faults) -> list[Finding]:
    findings = []
    names = (("source", "target"), ("target", "source"))
    for (side, other), found, rows in zip(names, faults.languages, faults.rows, strict=True):
        which = f"the language of the {other}s" if found.of_other_side else "another language than the others"
        findings += _told(faults, "other_language", found.lines[rows], f"whose {side} is in {which}", Severity.WARNING)
    return findings


def _partners(faults: Faults) -> list[Finding]:
    worst, sure = faults.partners.worst, int(faults.partners.sure.sum())
    rows, first = faults.rows[0][worst], faults.paired.source.file.first_line
    sentence = (
        f"About {plural(len(worst), 'pair')} whose sides are no translations of one another, by their words; the worst "
        f"are named first. A cleaned copy leaves out the surest {sure:,}."
    )
    return about_rows("wrong_partner", Severity.WARNING, sentence, rows, side="pair", first_line=first)


def _notes(faults: Faults) -> list[Finding]:
    """Those that say what they are come first."""
    said, other = faults.rows[0][faults.note], faults.rows[0][faults.bracket & ~faults.note]
    rows, first = np.concatenate([said, other]), faults.paired.source.file.first_line
    severity = Severity.WARNING if len(rows) > MANY * max(len(faults.rows[0]), 1) else Severity.NOTE
    sentence = "{pairs} with words in brackets on one side alone, such as a translator's note"
    if len(said):
        sentence += f"; {len(said):,} say that they are one, and a cleaned copy leaves those out"
    return about_rows("note_one_side", severity, f"{sentence}.", rows, side="pair", first_line=first)
