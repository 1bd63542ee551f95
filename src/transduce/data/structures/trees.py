"""Phrase-structure trees: read from brackets, simplified, written in one line, and as a sequence that a model writes.

    (S (NP-SBJ (DT The) (NN cat)) (VP (VBD slept)) (. .))     in brackets, as treebanks have it
    (S (NP DT NN )NP (VP VBD )VP . )S                         as a sequence (Vinyals et al. 2015)

In the sequence a word is its tag and function tags are gone; the sentence's own words are put back in their order.
Vinyals et al. write XX for every word, with millions of trees; tags keep a model that has seen thousands in step with
its sentence.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

from transduce.core.errors import InputError
from transduce.data.files import read_lines

WORD = "XX"  # the tag of a word whose tag nobody said
EMPTY = "-NONE-"  # the tag of what was moved or left out, which is no word
TOP = "TOP"
PART = re.compile(r"[()]|[^\s()]+")
EXAMPLE = "(S (NP (DT The) (NN cat)) (VP (VBD slept)))"
ESCAPED = str.maketrans({"(": "-LRB-", ")": "-RRB-"})
SHOWN = 60  # characters of a wrong tree in a message


class Bracket(NamedTuple):
    """A phrase: its label, and its words [start, end)."""

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class ParseTree:
    """The words of a sentence, a tag for each, and its phrases, each before those within it.

    Every phrase has a word. The words of a tree may lie outside of all phrases.
    """

    words: tuple[str, ...]
    tags: tuple[str, ...]
    brackets: tuple[Bracket, ...]

    def __str__(self) -> str:
        """In brackets, on one line; a bracket within a word is -LRB- or -RRB-."""
        parts: list[str] = []
        for phrase, place in self.events():
            if place is not None:
                parts.append(f" ({self.tags[place]} {self.words[place].translate(ESCAPED)})")
            else:
                parts.append(f" ({phrase}" if phrase is not None else ")")
        return "".join(parts).strip()

    def events(self) -> Iterator[tuple[str | None, int | None]]:
        """From left to right: (label, None) opens a phrase, (None, place) is a word, (None, None) closes a phrase."""
        opened: list[int] = []  # the ends of open phrases
        brackets = iter(self.brackets)
        following = next(brackets, None)
        for place in range(len(self.words)):
            while following is not None and following.start == place:
                yield following.label, None
                opened.append(following.end)
                following = next(brackets, None)
            yield None, place
            while opened and opened[-1] == place + 1:
                opened.pop()
                yield None, None

    @property
    def is_rooted(self) -> bool:
        """Whether one phrase holds all words."""
        return bool(self.brackets) and self.brackets[0][1:] == (0, len(self.words))

    def simplified(self) -> Self:
        """Without empty elements, function tags (NP-SBJ=2 is NP) and unnamed brackets; under one root, TOP if need be.

        Raises:
            InputError: no word is left.
        """
        kept = [place for place, tag in enumerate(self.tags) if tag != EMPTY]
        if not kept:
            raise InputError("a tree without words: all its leaves are empty elements (-NONE-).")
        before = [0]  # how many of the first n words are kept
        for tag in self.tags:
            before.append(before[-1] + (tag != EMPTY))
        spans = (Bracket(plain_label(label), before[start], before[end]) for label, start, end in self.brackets)
        brackets = tuple(each for each in spans if each.label and each.start < each.end)
        words, tags = (tuple(side[place] for place in kept) for side in (self.words, self.tags))
        found = replace(self, words=words, tags=tags, brackets=brackets)
        root = Bracket(TOP, 0, len(words))
        if found.is_rooted and (brackets[0].label != TOP or len(brackets) == 1 or brackets[1][1:] != root[1:]):
            return found
        return replace(found, brackets=brackets[1:] if found.is_rooted else (root, *brackets))

    def sequence(self) -> list[str]:
        """As a model writes it: "(NP" opens a phrase, ")NP" closes it, and a word is its tag."""
        opened: list[str] = []
        found = []
        for label, place in self.events():
            if label is not None:
                opened.append(label)
                found.append(f"({label}")
            else:
                found.append(self.tags[place] if place is not None else f"){opened.pop()}")
        return found


def plain_label(label: str) -> str:
    """Without function tags and indices: NP of NP-SBJ-1 and NP=2. What begins with a hyphen stays as it is."""
    return label if label.startswith("-") else re.split("[-=]", label, maxsplit=1)[0]


def of_sequence(tokens: Sequence[str], words: Sequence[str]) -> ParseTree:
    """The tree that `ParseTree.sequence` wrote, over `words`.

    Raises:
        InputError: the brackets do not balance, a phrase is empty, or there are more or fewer words.
    """
    opened: list[tuple[int, str, int]] = []
    tags: list[str] = []
    found: dict[int, Bracket] = {}
    place = number = 0
    for token in tokens:
        if token.startswith("(") and len(token) > 1 and (opened or not found):
            opened.append((number, token[1:], place))
            number += 1
        elif not token.startswith(("(", ")")) and opened:
            tags.append(token)
            place += 1
        elif token.startswith(")") and opened and opened[-1][1] == token[1:] and opened[-1][2] < place:
            order, label, start = opened.pop()
            found[order] = Bracket(label, start, place)
        else:
            raise InputError(f"expected a tree written as (S NN )S; got {' '.join(tokens)[:SHOWN]}")
    if opened or not found or place != len(words):
        raise InputError(f"expected a tree over {len(words)} words; got {' '.join(tokens)[:SHOWN]}")
    return ParseTree(tuple(words), tuple(tags), tuple(found[order] for order in sorted(found)))


def right_branching(words: Sequence[str], root: str, phrase: str) -> ParseTree:
    """The tree in which every phrase is a word and the rest of the sentence; what has no letter or digit at the end of
    the sentence belongs to the root.

    Args:
        root, phrase: the labels of the whole and of the phrases in it.
    """
    end = len(words)
    while end > 1 and not any(map(str.isalnum, words[end - 1])):
        end -= 1
    inner = tuple(Bracket(phrase, start, end) for start in range(1, end - 1))
    return ParseTree(tuple(words), (WORD,) * len(words), (Bracket(root, 0, len(words)), *inner))


def parse_tree(text: str) -> ParseTree:
    """One tree in brackets. Raises InputError for anything else."""
    reader, found = _Reader(), []
    with suppress(InputError):
        found = [tree for part in PART.findall(text) if (tree := reader.read(part)) is not None]
    if len(found) != 1 or reader.inside:
        raise InputError(f"expected one tree such as {EXAMPLE}; got {text[:SHOWN] or 'nothing'}")
    return found[0]


def read_trees(path: Path) -> Iterator[tuple[int, ParseTree]]:
    """(number of the line, from 1, on which it begins, tree) of a file, in which a tree may take several lines.

    Raises:
        InputError: what does not balance, or is no tree; a missing file, text that is not UTF-8.
    """
    reader, first = _Reader(), 0
    for number, line in enumerate(read_lines(path), 1):
        for part in PART.findall(line):
            first = first if reader.inside else number
            try:
                tree = reader.read(part)
            except InputError:
                raise InputError(
                    f"{path}, line {number}: expected trees such as {EXAMPLE}; got {line.strip()[:SHOWN]}"
                ) from None
            if tree is not None:
                yield first, tree
    if reader.inside:
        raise InputError(f"{path}, line {first}: this tree has no end: {reader.inside} brackets are never closed.")


class _Reader:
    """Trees out of brackets and names, read one after the other."""

    def __init__(self) -> None:
        self._opened: list[list[str]] = []  # of each open bracket the names directly in it
        self._first: list[tuple[int, int]] = []  # and how many phrases and words came before
        self._holds: list[bool] = []  # and whether others are in it
        self._words: list[str] = []
        self._tags: list[str] = []
        self._brackets: list[Bracket | None] = []

    @property
    def inside(self) -> int:
        """How many brackets are open."""
        return len(self._opened)

    def read(self, part: str) -> ParseTree | None:
        """The tree that this part ends. Raises InputError where it cannot stand here."""
        if part == "(":
            if self._holds:
                if len(self._opened[-1]) > 1:
                    raise InputError("a word beside a bracket")
                self._holds[-1] = True
            self._opened.append([])
            self._first.append((len(self._brackets), len(self._words)))
            self._holds.append(False)
            self._brackets.append(None)
            return None
        if not self._opened or (part != ")" and (self._holds[-1] or len(self._opened[-1]) > 1)):
            raise InputError("a name outside of brackets, or behind them")
        if part != ")":
            self._opened[-1].append(part)
            return None
        return self._close()

    def _close(self) -> ParseTree | None:
        names, (number, start), holds = self._opened.pop(), self._first.pop(), self._holds.pop()
        if holds:
            self._brackets[number] = Bracket(names[0] if names else "", start, len(self._words))
        elif len(names) == 2:
            del self._brackets[number]
            self._tags.append(names[0])
            self._words.append(names[1])
        else:
            raise InputError("a bracket without a word")
        if self._opened:
            return None
        tree = ParseTree(tuple(self._words), tuple(self._tags), tuple(each for each in self._brackets if each))
        self._words, self._tags, self._brackets = [], [], []
        return tree
