"""The most frequent label of each word; of unknown words that of words which look like them.

Words look alike by their last three letters and their shape (capitals, digits, hyphens), else by their shape alone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple, Self

ENDING = 3  # letters


class FrequentLabels(NamedTuple):
    """words, endings, shapes: the most frequent label of each; usual: that of all words."""

    words: dict[str, str]
    endings: dict[str, str]
    shapes: dict[str, str]
    usual: str

    @classmethod
    def of(cls, texts: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Self:
        """Counted in (words, labels) of texts; of equally frequent labels the first by name."""
        counts = [defaultdict[str, Counter[str]](Counter) for _ in range(3)]
        for words, labels in texts:
            for word, label in zip(words, labels, strict=True):
                for table, key in zip(counts, _keys(word), strict=True):
                    table[key][label] += 1
        every = sum((Counter(each) for each in counts[2].values()), Counter[str]())
        words_of, endings, shapes = ({key: _most(each) for key, each in table.items()} for table in counts)
        return cls(words_of, endings, shapes, _most(every))

    def predict(self, words: Sequence[str]) -> list[str]:
        """The label of each word of a text."""
        return [self._label(word) for word in words]

    def _label(self, word: str) -> str:
        tables = zip((self.words, self.endings, self.shapes), _keys(word), strict=True)
        return next((table[key] for table, key in tables if key in table), self.usual)


def _keys(word: str) -> tuple[str, str, str]:
    shape = "".join(kind for kind, _ in groupby(map(_kind, word)))
    return word, f"{word[-ENDING:].lower()} {shape}", shape


def _kind(character: str) -> str:
    if character.isalpha():
        return "A" if character.isupper() else "a"
    return "0" if character.isdecimal() else character if character in "-'." else "?"


def _most(counts: Counter[str]) -> str:
    return min(counts, key=lambda label: (-counts[label], label))
