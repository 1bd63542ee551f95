"""Trees whose nodes have labels, as the Stanford Sentiment Treebank writes them, one a line.

    (4 (2 The) (3 (4 best) (2 film)))      every node has a label
    ((The) ((best) (film)))                none has
    (S (DT The) (NP (JJ best) (NN film)))  a parser's trees are read as well

The first name in a bracket is its label, unless it is all that is in the bracket: then it is a word. A word that stands
beside others in a bracket, as in (4 best film), is a node without a label.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from transduce.core.errors import InputError
from transduce.data.files import read_lines

PART = re.compile(r"[()]|[^\t\n\r ()]+")
EXAMPLE = "(3 (2 The) (4 best))"
ESCAPED = str.maketrans({"(": "-LRB-", ")": "-RRB-"})
SHOWN = 60  # characters of a wrong tree in a message


@dataclass(frozen=True)
class LabelledTree:
    """Nodes, each behind its parts: the last one is the root.

    words: of each node; None for a phrase. parts: how many parts each has, 0 for a word. labels: None where a node has
        none.
    """

    words: tuple[str | None, ...]
    parts: tuple[int, ...]
    labels: tuple[str | None, ...]

    def __str__(self) -> str:
        """In brackets, on one line; a bracket within a word is -LRB- or -RRB-."""
        waiting: list[str] = []
        for word, count, label in zip(self.words, self.parts, self.labels, strict=True):
            inside = [] if label is None else [label]
            if word is not None:
                inside.append(word.translate(ESCAPED))
            else:
                inside += waiting[-count:]
                del waiting[-count:]
            waiting.append(f"({' '.join(inside)})")
        return waiting[0]

    def __len__(self) -> int:
        return len(self.words)

    @property
    def label(self) -> str | None:
        return self.labels[-1]

    def renamed(self, name: Callable[[str], str | None]) -> Self:
        """With each label as `name` calls it; None: the node has none."""
        return replace(self, labels=tuple(None if each is None else name(each) for each in self.labels))

    def without_labels(self) -> Self:
        """The same tree, of which nothing is known."""
        return replace(self, labels=(None,) * len(self))

    def has_shape_of(self, other: "LabelledTree") -> bool:
        """Whether both have the same words under the same phrases."""
        return self.words == other.words and self.parts == other.parts

    def first_nodes(self) -> list[int]:
        """Of each node the first one of its subtree, which is all nodes from there to itself."""
        waiting: list[int] = []
        found = []
        for place, count in enumerate(self.parts):
            first = place
            if count:
                first = waiting[-count]
                del waiting[-count:]
            waiting.append(first)
            found.append(first)
        return found

    def texts(self) -> list[str]:
        """Of each node the words below it."""
        return [
            " ".join(word for word in self.words[first : place + 1] if word is not None)
            for place, first in enumerate(self.first_nodes())
        ]


def parse_labelled_tree(text: str) -> LabelledTree:
    """One tree in brackets. Raises InputError for anything else."""
    found = _parsed(text)
    if found is None:
        raise InputError(f"expected a tree such as {EXAMPLE}; got {text.strip()[:SHOWN] or 'nothing'}")
    return found


def read_labelled_trees(path: Path) -> Iterator[tuple[int, LabelledTree]]:
    """(line number from 1, tree) of a file with a tree a line.

    Raises:
        InputError: a line that is no tree; a missing file, text that is not UTF-8.
    """
    for number, line in enumerate(read_lines(path), 1):
        try:
            yield number, parse_labelled_tree(line)
        except InputError as error:
            raise InputError(f"{path}, line {number}: {problem}" for problem in error.problems) from None


def _parsed(text: str) -> LabelledTree | None:
    words: list[str | None] = []
    parts: list[int] = []
    labels: list[str | None] = []
    opened: list[tuple[str | None, int]] = []  # of each open bracket its label, and how many parts it has so far
    bare = False  # whether the last node is a word without brackets

    def add(word: str | None, count: int, label: str | None) -> None:
        words.append(word)
        parts.append(count)
        labels.append(label)
        if opened:
            opened[-1] = (opened[-1][0], opened[-1][1] + 1)

    for part in PART.findall(text):
        if not opened and (words or part != "("):
            return None
        if part == "(":
            opened.append((None, 0))
            bare = False
        elif part != ")":
            label, count = opened[-1]
            name = part.replace("\\/", "/")
            if label is None and not count:
                opened[-1] = (name, 0)
            else:
                add(name, 0, None)
                bare = True
        else:
            label, count = opened.pop()
            if count == 1 and bare:
                labels[-1] = label
                if opened:
                    opened[-1] = (opened[-1][0], opened[-1][1] + 1)
            elif count:
                add(None, count, label)
            elif label is not None:
                add(label, 0, None)
            else:
                return None
            bare = False
    return None if opened or not words else LabelledTree(tuple(words), tuple(parts), tuple(labels))
