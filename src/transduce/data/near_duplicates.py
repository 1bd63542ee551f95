"""Which texts nearly repeat some chosen ones: those that share more than 0.7 of their n-grams with one (Jaccard).

    J(a, b) = |a & b| / |a | b|,   a, b the sets of pairs of neighbours (words, or characters) of two texts

One pass over all texts, with an inverted index of the chosen ones. J(a, b) > t needs more than t |a| common n-grams, so
one of the |a| - t |a| + 1 n-grams of `a` that are rarest among the chosen is common to both: only those are looked up
(prefix filtering, Chaudhuri et al. 2006; Bayardo et al. 2007). Most texts are done after a handful of look-ups.

Where there are few different n-grams, as in strings over four letters, this finds most of the chosen. Then the n-grams
common with each of them are counted at once, from the places of all: about a nanosecond for each common one.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache

import numpy as np
import regex
from numpy.typing import NDArray

TENTHS = 7  # the threshold
FEW = 16  # places that are looked at one by one
WORD = regex.compile(r"\p{L}[\p{L}\p{M}]*")  # the vowels of Devanagari, Tamil or Thai are marks
Gram = tuple[str, str]
Grams = frozenset[Gram]
Index = tuple[int, bool]  # the side that it is of, 0 where it is of both; whether by words


def normalized(text: str) -> str:
    """Lower case in NFC, words with one space between; digits, punctuation and symbols are left out.

    A text of nothing else stays as it is, without spaces at its ends.
    """
    return " ".join(WORD.findall(unicodedata.normalize("NFC", text.casefold()))) or text.strip()


@lru_cache(maxsize=4096)  # held-out texts are looked at in each pass
def grams(text: str, by_words: bool) -> Grams:
    """Pairs of neighbours in the normalised text, its two ends included; without words: of its characters."""
    units = normalized(text).split(" ") if by_words else [*normalized(text)]
    return frozenset(zip(["", *units], [*units, ""], strict=True))


def written_apart(texts: Sequence[str]) -> bool:
    """Whether these are texts of several words with spaces between, so that words are what may be shared."""
    words = [word for text in texts for word in normalized(text).split(" ")]
    return len(words) >= 3 * max(1, len(texts)) and sum(map(len, words)) <= 12 * len(words)


class NearDuplicates:
    """An index of chosen texts.

    Args:
        chosen: with the number that each is found by; several may have one number.
        by_words: whether n-grams are of words, or of characters.
    """

    def __init__(self, chosen: Iterable[tuple[int, str]], by_words: bool) -> None:
        texts = list(chosen)
        self._by_words = by_words
        self._numbers = [number for number, _ in texts]
        self._chosen = [grams(text, by_words) for _, text in texts]
        self._often = Counter(gram for each in self._chosen for gram in each)
        self._index: defaultdict[Gram, list[int]] = defaultdict(list)
        for place, each in enumerate(self._chosen):
            for gram in self._prefix(each):
                self._index[gram].append(place)

    def of(self, text: str) -> Iterator[int]:
        """The numbers of the chosen texts that `text` nearly repeats."""
        units = grams.__wrapped__(text, self._by_words)
        found = [self._index[gram] for gram in self._prefix(units) if gram in self._index]
        if sum(map(len, found)) > FEW:
            yield from (self._numbers[place] for place in self._counted(units))
            return
        for place in {place for places in found for place in places}:
            other = self._chosen[place]
            common = len(units & other)
            if 10 * common > TENTHS * (len(units) + len(other) - common):
                yield self._numbers[place]

    def _counted(self, units: Grams) -> list[int]:
        """The places of those that share enough n-grams with `units`, counted for all at once."""
        places, lengths_N = self._everywhere
        common_N = np.bincount(
            np.concatenate([places[gram] for gram in units if gram in places]), minlength=len(lengths_N)
        )
        return np.flatnonzero(10 * common_N > TENTHS * (len(units) + lengths_N - common_N)).tolist()

    @cached_property
    def _everywhere(self) -> tuple[dict[Gram, NDArray[np.int32]], NDArray[np.int64]]:
        """The places of each n-gram, and how many n-grams there are in each place."""
        places = defaultdict[Gram, list[int]](list)
        for place, each in enumerate(self._chosen):
            for gram in each:
                places[gram].append(place)
        lengths_N = np.fromiter(map(len, self._chosen), np.int64, len(self._chosen))
        return {gram: np.array(some, np.int32) for gram, some in places.items()}, lengths_N

    def _prefix(self, units: Grams) -> list[Gram]:
        """Of the n-grams as many of the rarest as one must be among if they are shared; the unknown are left out."""
        often = self._often
        known = [gram for gram in units if gram in often]
        most = len(units) - -(-TENTHS * len(units) // 10) + 1
        left = most - (len(units) - len(known))
        if left <= 0:
            return []
        return sorted(known, key=lambda gram: (often[gram], gram))[:left]


def indices_of(sample: Iterable[tuple[int, str, str]], entries: int, sides_apart: bool) -> list[tuple[Index, Index]]:
    """In which indices the sources and the targets of each entry are looked for.

    Args:
        sample: (number of the entry, source, target).
        sides_apart: sources are not compared with targets. Else with all whose n-grams are of the same units.
    """
    texts = defaultdict[tuple[int, int], list[str]](list)
    for entry, *pair in sample:
        for side in (0, 1):
            texts[0 if sides_apart else entry, side].append(pair[side])
    apart = {key: written_apart(each) for key, each in texts.items()}
    if sides_apart:
        return [((0, apart[0, 0]), (1, apart[0, 1]))] * entries
    return [((0, apart.get((entry, 0), True)), (0, apart.get((entry, 1), True))) for entry in range(entries)]


class NearDuplicatePairs:
    """Indices of chosen pairs, for those one side of which nearly repeats one of theirs.

    Args:
        chosen: (number that it is found by, number of its entry, both sides).
        indices: of each entry, see `indices_of`.
    """

    def __init__(
        self, chosen: Iterable[tuple[int, int, Sequence[str]]], indices: Sequence[tuple[Index, Index]]
    ) -> None:
        texts = defaultdict[Index, list[tuple[int, str]]](list)
        for number, entry, pair in chosen:
            for index, text in zip(indices[entry], pair, strict=True):
                texts[index].append((number, text))
        self._of = indices
        self._indices = {index: NearDuplicates(each, index[1]) for index, each in texts.items()}

    def of(self, entry: int, pair: Sequence[str]) -> Iterator[int]:
        """The numbers of the chosen pairs that a pair of this entry nearly repeats; some may come twice."""
        for index, text in zip(self._of[entry], pair, strict=True):
            if index in self._indices:
                yield from self._indices[index].of(text)
