"""Which word of a pair of texts translates which, by IBM model 1 in both directions (`transduce.data.lexicon`).

    aligner = WordAligner.learnt(pairs)
    for link in aligner.links("a red house", "une maison rouge"):
        link.source, link.target                # (2, 5), (12, 17): characters of "red" and of "rouge"

Two words are linked where each is the other's likeliest (the intersection of both directions: Och and Ney 2003, "A
systematic comparison of various statistical alignment models"). A character of Chinese, Japanese or Thai writing is a
word here; neighbours that translate one word are linked to it together.

Shape letters: U different links, P pairs of words of one pair of texts.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from transduce.data.lexicon import Ints, LinkedPairs, Reals, translation_table
from transduce.data.words import SINGLE, WORD

RARE, OFTEN = 2, 0.1  # a word is known from so many texts on; one in more than this share of them is no term
PROBABLE = 0.1  # of t(f | e) and t(e | f), from which words are linked
FORM = 0.02  # of t(f | e), from which f may be another form of e's translation
MOST_PAIRS = 200_000  # learnt from
LONGEST = 100  # words of a side; of longer texts none are linked

Place = tuple[int, int]


class WordLink(NamedTuple):
    """Characters [start, end) of a source and of its target, each of which translates the other."""

    source: Place
    target: Place


class NumberedWord(NamedTuple):
    """A word of a text: its characters [start, end), and its number in a vocabulary, or 0."""

    start: int
    end: int
    number: int


@dataclass(frozen=True)
class Vocabulary:
    """numbers: of the words that are known, in lower case, from 1. common: those that stand in too many texts."""

    numbers: dict[str, int]
    common: frozenset[int]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """Of all words that stand in at least `RARE` texts."""
        found = Counter(word for text in texts for word in {each[0].lower() for each in WORD.finditer(text)})
        kept = [word for word, often in found.items() if often >= RARE]
        numbers = {word: number for number, word in enumerate(sorted(kept), 1)}
        most = max(RARE, OFTEN * len(texts))
        return cls(numbers, frozenset(numbers[word] for word in kept if found[word] > most))

    def words(self, text: str) -> list[NumberedWord]:
        """The words of a text, in order."""
        return [NumberedWord(*each.span(), self.numbers.get(each[0].lower(), 0)) for each in WORD.finditer(text)]

    @property
    def size(self) -> int:
        return len(self.numbers) + 1


@dataclass(frozen=True)
class TranslationTable:
    """t(f | e) of one direction; see `transduce.data.lexicon.translation_table`.

    code_U: e V + f in rising order, of `targets` V words. t_U: their t(f | e).
    """

    code_U: Ints
    t_U: Reals
    targets: int

    def of_pairs(self, source_P: Ints, target_P: Ints) -> Reals:
        """(P,) t of each; 0 of words that were never in one pair of texts, or are unknown."""
        code_P = source_P * self.targets + target_P
        place_P = np.minimum(np.searchsorted(self.code_U, code_P), len(self.code_U) - 1)
        known_P = (self.code_U[place_P] == code_P) & (source_P > 0) & (target_P > 0)
        return np.where(known_P, self.t_U[place_P], 0.0)

    def of_word(self, word: int) -> list[tuple[int, float]]:
        """What translates a word, with its probability."""
        first, last = np.searchsorted(self.code_U, (word * self.targets, (word + 1) * self.targets))
        return [
            (int(code) % self.targets, float(t))
            for code, t in zip(self.code_U[first:last], self.t_U[first:last], strict=True)
        ]


class WordAligner:
    """Finds the words of a pair of texts that translate each other.

    source, target: the words of each side. forward: t of a target's word given a source's. backward: the other way.
    """

    def __init__(
        self, source: Vocabulary, target: Vocabulary, forward: TranslationTable, backward: TranslationTable
    ) -> None:
        self.source, self.target, self.forward, self.backward = source, target, forward, backward
        self._spelled = {number: word for word, number in target.numbers.items()}

    @classmethod
    def learnt(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """From pairs of texts, of which those beyond `MOST_PAIRS` are left out evenly by whoever gives them."""
        listed = list(pairs)
        sides = [[pair[side] for pair in listed] for side in (0, 1)]
        source, target = (Vocabulary.of(side) for side in sides)
        read = [
            [[word.number for word in vocabulary.words(text)][:LONGEST] for text in side]
            for vocabulary, side in zip((source, target), sides, strict=True)
        ]
        forward, backward = (
            TranslationTable(*translation_table(_linked(*read[::way]), (a.size, b.size)), b.size)
            for way, a, b in ((1, source, target), (-1, target, source))
        )
        return cls(source, target, forward, backward)

    def links(self, source: str, target: str) -> list[WordLink]:
        """Pairs of words that translate each other, in the order of the source; none of the commonest words."""
        words, others = self.source.words(source), self.target.words(target)
        if not words or not others or max(len(words), len(others)) > LONGEST:
            return []
        forward_ST, backward_ST = self._probabilities(words, others)
        likeliest_S, likeliest_T = forward_ST.argmax(1), backward_ST.argmax(0)
        found = []
        for place, word in enumerate(words):
            other = int(likeliest_S[place])
            sure = min(forward_ST[place, other], backward_ST[place, other]) >= PROBABLE
            if not sure or likeliest_T[other] != place or word.number in self.source.common:
                continue
            start, end = _run(others, likeliest_T, place, other, target)
            found.append(WordLink((word.start, word.end), (start, end)))
        return _apart(found)

    def forms(self, source: str, translation: str) -> list[str]:
        """Other forms of a word's translation: words that translate it, too, and begin alike."""
        number = self.source.numbers.get(source.lower(), 0)
        written = translation.lower()
        stem = max(3, len(written) - 3)
        spelled = [self._spelled[f] for f, t in self.forward.of_word(number) if f and t >= FORM] if number else []
        return [word for word in spelled if word != written and word[:stem] == written[:stem] and len(written) >= 4]

    def _probabilities(self, words: Sequence[NumberedWord], others: Sequence[NumberedWord]) -> tuple[Reals, Reals]:
        shape = len(words), len(others)
        source_P = np.repeat([word.number for word in words], len(others))
        target_P = np.tile([word.number for word in others], len(words))
        forward = self.forward.of_pairs(source_P, target_P).reshape(shape)
        return forward, self.backward.of_pairs(target_P, source_P).reshape(shape)


def _linked(source: Sequence[Sequence[int]], target: Sequence[Sequence[int]]) -> LinkedPairs:
    def flat(side: Sequence[Sequence[int]]) -> Ints:
        return np.array([number for text in side for number in text], np.int64)

    source_length_N, target_length_N = (np.array([*map(len, side)], np.int64) for side in (source, target))
    return LinkedPairs(flat(source), flat(target), source_length_N, target_length_N, len(source))


def _run(others: Sequence[NumberedWord], likeliest_T: Ints, place: int, other: int, target: str) -> Place:
    """Characters of the target's word, and of its neighbours of a script without spaces that translate the same."""
    first = last = other
    if re.match(f"[{SINGLE}]", target[others[other].start]):
        while first and likeliest_T[first - 1] == place and others[first - 1].end == others[first].start:
            first -= 1
        while last + 1 < len(others) and likeliest_T[last + 1] == place and others[last + 1].start == others[last].end:
            last += 1
    return others[first].start, others[last].end


def _apart(links: Sequence[WordLink]) -> list[WordLink]:
    """Those that share no character of the target with an earlier one."""
    kept, taken = [], set[int]()
    for link in links:
        places = range(*link.target)
        if taken.isdisjoint(places):
            taken.update(places)
            kept.append(link)
    return kept
