"""Trees of words as the ids of a tokenizer, a node after the other.

Shapes: B examples, N nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.core.printable import NAMED, quoted
from transduce.data.collate import padded
from transduce.data.columns.protocols import ColumnSpec, Specs, random_tokens
from transduce.data.columns.tokens import Tokens
from transduce.data.store import Ids
from transduce.data.structures.labelled_trees import LabelledTree, parse_labelled_tree

MOST_PARTS = 1024  # that a node has
PHRASE = -1  # stands for the word of a node that has none


class Forest(NamedTuple):
    """What a model reads of trees: each (B, N), every node behind its parts, the root last.

    words: the id of a word, -1 for a phrase. parents: the place of a node's phrase, -1 for the root. numbers: which of
    its phrase's parts a node is, from 0. firsts: the place of the first node of its subtree, which is all nodes from
    there to itself. heights: 0 for a word, else one more than the highest part's.
    """

    words: Padded
    parents: Padded
    numbers: Padded
    firsts: Padded
    heights: Padded


@dataclass(frozen=True)
class TreeNodes(Tokens):
    """A tree a row, in brackets; its labels are not read.

    The row has one id a node, each node behind its parts: a word's own id, and of a phrase with k parts the size of the
    vocabulary and k - 1 more. No other row is the same tree.
    """

    kind: ClassVar[str] = "tree_nodes"
    length_unit: ClassVar[str] = "word"

    @classmethod
    def of(cls, tokenizer: Any) -> Self:
        """Of this tokenizer; nothing is read behind a tree."""
        return cls(tokenizer)

    @property
    def spec(self) -> ColumnSpec:
        """The tokenizer's vocabulary; a store holds numbers of parts as well."""
        return ColumnSpec(self.kind, self.tokenizer.size, ids=self.tokenizer.size + MOST_PARTS)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The row of each tree. Raises InputError for what is no tree, or where a word is not one token."""
        trees = [parse_labelled_tree(text) if text.strip() else None for text in texts]
        words = list(dict.fromkeys(word for tree in trees if tree for word in tree.words if word is not None))
        ids = dict(zip(words, self.tokenizer.encode(list(map(as_token, words))), strict=True))
        if wrong := [word for word, each in ids.items() if len(each) != 1]:
            named = quoted(wrong, NAMED, 30)
            raise InputError(
                f"expected one token for each word of a tree; the tokenizer makes none or several of {named}. "
                'Use [tokenizer] kind = "whitespace".'
            )
        return [[] if tree is None else self._row(tree, ids) for tree in trees]

    def _row(self, tree: LabelledTree, ids: dict[str, list[int]]) -> list[int]:
        if (most := max(tree.parts)) > MOST_PARTS:
            raise InputError(f"expected at most {MOST_PARTS:,} parts of a phrase; got {most:,}")
        nodes = zip(tree.words, tree.parts, strict=True)
        return [self.tokenizer.size + count - 1 if word is None else ids[word][0] for word, count in nodes]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Each word, and of a phrase its number of parts in brackets."""
        size = self.tokenizer.size
        return [self.tokenizer.tokens([each])[0] if each < size else f"({each - size + 1})" for each in ids]

    def collate(self, rows: Sequence[Ids]) -> Any:
        size = self.tokenizer.size
        nodes = padded(rows)
        words_BN = torch.where(nodes.values < size, nodes.values, PHRASE)
        parts = [np.maximum(np.asarray(row, np.int64) - size + 1, 0).tolist() for row in rows]
        return forest(Padded(words_BN, nodes.lengths), parts)

    collate_texts = collate

    def inputs(self, rows: Sequence[Ids]) -> Any:
        return self.collate(rows)

    @classmethod
    def drawn(cls, length: int, size: int, generator: torch.Generator) -> Forest:
        """A balanced tree of words, in which each phrase has two parts."""
        parts_N = torch.tensor(_balanced(length))
        ids_N = random_tokens(len(parts_N), size, generator).values[0].where(parts_N == 0, PHRASE)
        return forest(Padded(ids_N[None], torch.tensor([len(parts_N)])), [parts_N.tolist()])


def forest(words: Padded, parts: Sequence[Sequence[int]]) -> Forest:
    """Trees by their words (see `Forest`) and, row by row, how many parts each node has."""
    sides = (
        Padded(padded([np.asarray(side, np.int32) for side in each]).values, words.lengths)
        for each in zip(*map(_structure, parts), strict=True)
    )
    return Forest(words, *sides)


def check_trees(specs: Specs, model: str) -> ColumnSpec:
    """The column of a model of trees. Raises InputError for another task."""
    if specs.source is None or specs.source.kind != TreeNodes.kind or specs.target.kind != "node_labels":
        raise InputError(f'[model] kind = "{model}": expected a task with trees; got another one.')
    return specs.source


def as_token(word: str) -> str:
    """A word as a tokenizer reads it that cuts texts at white space."""
    return "_".join(word.split())


def _structure(parts: Sequence[int]) -> tuple[list[int], list[int], list[int], list[int]]:
    """Parents, numbers, firsts and heights of nodes with these numbers of parts. What belongs nowhere is a root."""
    count = len(parts)
    parents, numbers, firsts, heights = [-1] * count, [0] * count, list(range(count)), [0] * count
    waiting: list[int] = []
    for place, wanted in enumerate(parts):
        if wanted:
            found = waiting[-wanted:]
            del waiting[-wanted:]
            for number, part in enumerate(found):
                parents[part], numbers[part] = place, number
                heights[place] = max(heights[place], heights[part] + 1)
            firsts[place] = firsts[found[0]] if found else place
        waiting.append(place)
    return parents, numbers, firsts, heights


def _balanced(words: int) -> list[int]:
    """How many parts each node has, every node behind its parts."""
    return [0] if words == 1 else [*_balanced(words // 2), *_balanced(words - words // 2), 2]
