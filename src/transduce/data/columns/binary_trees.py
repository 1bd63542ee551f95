"""Trees over the words of a sentence as the nodes of binary trees, with a tag for each word.

Shapes: B examples, N words.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import padded
from transduce.data.columns.protocols import Column, ColumnSpec
from transduce.data.store import Ids
from transduce.data.structures.binary_trees import NO_PHRASE, binarised
from transduce.data.structures.trees import Bracket, ParseTree, parse_tree

UNKNOWN = "?"  # the token of a label or tag that training did not have


class TreeTargets(NamedTuple):
    """Trees as a model learns them.

    labels: (B, N, N) int64, of each node by its first and its last word; -1 where there is no node, C for a label that
        is not known. tags: (B, N), -1 for one that is not known.
    """

    labels: Tensor
    tags: Padded


@dataclass(frozen=True)
class BinaryTrees(Column):
    """The nodes of a binary tree a row, each behind its parts; see `transduce.data.structures.binary_trees`.

    labels: of nodes, chains of phrases' labels; the id 0 is that of a node which is no phrase, these follow.
    word_tags: the tags of words.

    With C labels and that of no phrase, a word has two ids: 2 (C + 1) + its tag, then its label. A node of two parts
    has the id C + 1 + its label. C stands for a label that is not known, and so with tags.

    Raises:
        InputError: a label or a tag is empty or there twice; there is no label.
    """

    kind: ClassVar[str] = "binary_trees"
    likelihood_unit: ClassVar[str] = "tree"
    labels: tuple[str, ...]
    word_tags: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, given in (("labels", self.labels), ("tags", self.word_tags)):
            if not given or len(set(given)) < len(given) or not all(each.strip() for each in given):
                raise InputError(f"{name} of trees: expected different ones; got {list(given[:5])}.")

    @classmethod
    def of(cls, trees: Iterable[ParseTree]) -> Self:
        """With all labels and tags of these trees, in the order of their names."""
        labels, tags = set[str](), set[str]()
        for tree in trees:
            labels.update(label for label, _, _ in binarised(tree))
            tags.update(tree.tags)
        return cls(tuple(sorted(labels - {NO_PHRASE})), tuple(sorted(tags)))

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: object = None) -> Self:
        """What `to_dict` gave. Raises InputError for anything else."""
        sides = [table.get(name) for name in ("labels", "tags")]
        if not all(isinstance(side, list) and all(isinstance(each, str) for each in side) for side in sides):
            raise InputError("the model file's column of trees: expected lists of texts as labels and tags.")
        return cls(*(tuple(side or ()) for side in sides))

    def to_dict(self) -> dict[str, Any]:
        """Labels and tags in the order of their ids."""
        return {"labels": list(self.labels), "tags": list(self.word_tags)}

    @property
    def spec(self) -> ColumnSpec:
        """How many labels, that of no phrase included, and how many tags."""
        size, tags = 1 + len(self.labels), len(self.word_tags)
        return ColumnSpec(self.kind, size, ids=2 * (size + 1) + tags + 1, tags=tags)

    def covers(self, other: Column) -> bool:
        """Whether it has all labels and tags of `other`."""
        if not isinstance(other, BinaryTrees):
            return False
        return {*self.labels} >= {*other.labels} and {*self.word_tags} >= {*other.word_tags}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The row of each tree in brackets. Raises InputError for what is no tree."""
        return [self.row_of(parse_tree(text).simplified()) for text in texts]

    def row_of(self, tree: ParseTree) -> list[int]:
        """The row of a tree. Raises InputError where it has no root."""
        row, unknown = list[int](), len(self.labels) + 1
        for label, start, end in binarised(tree):
            place = self._label_ids.get(label, unknown)
            if end - start == 1:
                row.append(2 * (unknown + 1) + self._tag_ids.get(tree.tags[start], len(self.word_tags)))
            row.append(place if end - start == 1 else place + unknown + 1)
        return row

    def nodes(self, ids: Sequence[int]) -> tuple[list[Bracket], list[str]]:
        """The nodes of a row, each behind its parts, and the words' tags. Raises InputError for what is no row."""
        found, tags, waiting = list[Bracket](), list[str](), list[int]()  # waiting: where nodes without a phrase begin
        size, tagged = len(self.labels) + 2, False
        for place, each in enumerate(ids, 1):
            is_tag, is_word = each >= 2 * size, each < size
            if is_word != tagged or (not is_tag and not is_word and len(waiting) < 2):
                raise InputError(f"expected the nodes of a tree; token {place} cannot stand where it does.")
            tagged = is_tag
            if is_tag:
                tags.append(_named(self.word_tags, each - 2 * size))
                continue
            if is_word:
                waiting.append(len(tags) - 1)
            else:
                waiting.pop()
            label = _named((NO_PHRASE, *self.labels), each if is_word else each - size)
            found.append(Bracket(label, waiting[-1], len(tags)))
        if tagged or len(waiting) != 1:
            raise InputError("expected the nodes of one tree; got none, or of several.")
        return found, tags

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """A tag as it is; a word's label as 1(NP), that of two parts as 2(NP); () where there is no phrase."""
        size, names = len(self.labels) + 2, (NO_PHRASE, *self.labels)
        return [
            _named(self.word_tags, each - 2 * size)
            if each >= 2 * size
            else f"{1 + each // size}({_named(names, each % size)})"
            for each in ids
        ]

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """The other way round; raises InputError where they are the nodes of no tree."""
        size, found = len(self.labels) + 2, list[int]()
        for token in tokens:
            is_node = token[:2] in ("1(", "2(") and token.endswith(")")
            label = self._label_ids.get(token[2:-1], size - 1)
            tag = 2 * size + self._tag_ids.get(token, len(self.word_tags))
            found.append(label + size * (token[0] == "2") if is_node else tag)
        self.nodes(found)
        return found

    def decode(self, ids: Sequence[int]) -> str:
        """Its tokens: the words themselves are not here."""
        return " ".join(self.tokens(ids))

    def collate(self, rows: Sequence[Ids]) -> TreeTargets:
        size = len(self.labels) + 2
        read = [np.asarray(row, np.int32) for row in rows]
        tags = padded([row[row >= 2 * size] - 2 * size for row in read])
        known_BN = torch.where(tags.values < len(self.word_tags), tags.values, -1)
        words = tags.values.shape[1]
        labels_BNN = np.full((len(rows), words, words), -1, np.int64)
        for place, row in enumerate(read):
            for start, end, label in _spans(row.tolist(), size):
                labels_BNN[place, start, end - 1] = label
        return TreeTargets(torch.from_numpy(labels_BNN), Padded(known_BN, tags.lengths))

    collate_texts = collate

    def closed(self, ids: Sequence[int]) -> list[int]:
        """Nothing: a tree has one probability, and there is no frequency to compare it with."""
        return []

    @cached_property
    def _label_ids(self) -> dict[str, int]:
        return {label: place for place, label in enumerate((NO_PHRASE, *self.labels))}

    @cached_property
    def _tag_ids(self) -> dict[str, int]:
        return {tag: place for place, tag in enumerate(self.word_tags)}


def _named(names: Sequence[str], place: int) -> str:
    return names[place] if place < len(names) else UNKNOWN


def _spans(row: Sequence[int], size: int) -> Iterator[tuple[int, int, int]]:
    """(start, end, label) of the nodes of a row, in which the ids of two parts begin at `size`, of tags at twice it."""
    waiting, words = list[int](), 0
    for each in row:
        if each >= 2 * size:
            continue
        if each < size:
            waiting.append(words)
            words += 1
        else:
            waiting.pop()
        yield waiting[-1], words, each % size
