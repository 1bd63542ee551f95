"""The words of every line, as small numbers: enough to learn which words of two languages go together.

A word is its first five letters, lower case (a stemmer for every language), hashed into one of 65,536
buckets; scripts that put no space between words give one character at a time; a punctuation mark is a word.
Where lines are words, as in a pronunciation dictionary, hardly any comes twice: characters are taken for words.
"""

import re
import zlib
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

BUCKETS = 1 << 16
WORDS_PER_LINE = 64
CHARACTERS_READ = 2_000
PREFIX = 5
UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
ONE_WORD = re.compile(rf"[^\s{UNSPACED}]+")
WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+|[^\w\s]")
CHARACTER = re.compile(r"\S")


@dataclass(frozen=True)
class WordStatistics:
    """Line i has the words `ids[ends[i]:ends[i + 1]]`, none twice; its characters where `by_character`."""

    ends: NDArray[np.int64]
    ids: NDArray[np.uint16]
    by_character: bool = False

    def __len__(self) -> int:
        return len(self.ends) - 1

    def per_line(self) -> NDArray[np.int64]:
        """How many words each line has."""
        return np.diff(self.ends)

    def lines_with(self) -> NDArray[np.int64]:
        """For every bucket, how many lines have it."""
        return np.bincount(self.ids, minlength=BUCKETS)

    def only(self, number_of: NDArray[np.int64]) -> "WordStatistics":
        """Buckets renumbered by the table `number_of`; those with number -1 are left out."""
        numbers = number_of[self.ids]
        kept = numbers >= 0
        ends = np.concatenate([[0], np.cumsum(kept)])[self.ends]
        return WordStatistics(ends, numbers[kept].astype(np.uint16))


class WordCollector:
    """Gathers lines into `WordStatistics`."""

    def __init__(self, by_character: bool = False) -> None:
        self._ends, self._ids = array("q", [0]), array("H")
        self._by_character = by_character

    def add(self, text: str) -> None:
        self.add_pieces(pieces(text, self._by_character))

    def add_pieces(self, found: Iterable[str]) -> None:
        """A line, as `pieces` has it."""
        self._ids.extend(_buckets(found))
        self._ends.append(len(self._ids))

    def words(self) -> WordStatistics:
        return WordStatistics(np.array(self._ends, np.int64), np.array(self._ids, np.uint16), self._by_character)


def are_words(texts: list[str]) -> bool:
    """Whether most of these lines are one word each, apart from empty ones."""
    spoken = [text for text in texts if text]
    return sum(bool(ONE_WORD.fullmatch(text)) for text in spoken) > len(spoken) / 2


def pieces(text: str, by_character: bool = False) -> list[str]:
    """The words of a text's first 2,000 characters, in lower case, or its characters."""
    return (CHARACTER if by_character else WORD).findall(text[:CHARACTERS_READ].lower())


def buckets(text: str, by_character: bool = False) -> list[int]:
    """The buckets of a text's words, or of its characters, each once, in order of first appearance."""
    return _buckets(pieces(text, by_character))


def _buckets(found: Iterable[str]) -> list[int]:
    return list(dict.fromkeys(map(_bucket, dict.fromkeys(found))))[:WORDS_PER_LINE]


@lru_cache(1 << 16)
def _bucket(word: str) -> int:
    return zlib.crc32(word[:PREFIX].encode()) % BUCKETS
