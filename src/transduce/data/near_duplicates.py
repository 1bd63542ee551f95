"""Which texts nearly repeat some chosen ones: those that share more than 0.7 of their n-grams with one (Jaccard).

    J(a, b) = |a & b| / |a | b|,   a, b the sets of pairs of neighbours (words, or characters) of two texts

One pass over all texts, with an inverted index of the chosen ones. J(a, b) > t needs more than t |a| common n-grams, so
one of the |a| - t |a| + 1 n-grams of `a` that are rarest among the chosen is common to both: only those are looked up
(prefix filtering, Chaudhuri et al. 2006; Bayardo et al. 2007). Most texts are done after a handful of look-ups.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

TENTHS = 7  # the threshold
WORD = re.compile(r"[^\W\d_]+")
Gram = tuple[str, str]
Grams = frozenset[Gram]


def normalized(text: str) -> str:
    """Lower case, words with one space between; digits, punctuation and symbols are left out.

    A text of nothing else stays as it is, without spaces at its ends.
    """
    return " ".join(WORD.findall(text.casefold())) or text.strip()


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
        chosen: by the number that they are found by.
        by_words: whether n-grams are of words, or of characters.
    """

    def __init__(self, chosen: Iterable[tuple[int, str]], by_words: bool) -> None:
        self._by_words = by_words
        self._chosen = {number: grams(text, by_words) for number, text in chosen}
        self._often = Counter(gram for each in self._chosen.values() for gram in each)
        self._index: defaultdict[Gram, list[int]] = defaultdict(list)
        for number, each in self._chosen.items():
            for gram in self._prefix(each):
                self._index[gram].append(number)

    def of(self, text: str) -> Iterator[int]:
        """The numbers of the chosen texts that `text` nearly repeats."""
        units = grams.__wrapped__(text, self._by_words)
        for number in {number for gram in self._prefix(units) for number in self._index.get(gram, ())}:
            other = self._chosen[number]
            common = len(units & other)
            if 10 * common > TENTHS * (len(units) + len(other) - common):
                yield number

    def _prefix(self, units: Grams) -> list[Gram]:
        """Of the n-grams as many of the rarest as one must be among if they are shared; the unknown are left out."""
        often = self._often
        known = [gram for gram in units if gram in often]
        most = len(units) - -(-TENTHS * len(units) // 10) + 1
        left = most - (len(units) - len(known))
        if left <= 0:
            return []
        return sorted(known, key=lambda gram: (often[gram], gram))[:left]
