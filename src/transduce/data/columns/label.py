"""One of C labels; and what rows of labels have in common, one for each of N things."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS, first_of, quoted
from transduce.core.registry import suggest
from transduce.data.collate import NodeTargets, padded
from transduce.data.columns.protocols import Column, ColumnSpec
from transduce.data.store import Ids


@dataclass(frozen=True)
class Label(Column):
    """A label a row; `labels[i]` is what the id i stands for.

    words: of each label, its ids in the vocabulary of the source, where labels are words of the texts; () = they are
        not.

    Raises:
        InputError: there are fewer than two, an empty one, or one twice; words of fewer or more.
    """

    kind: ClassVar[str] = "label"
    likelihood_unit: ClassVar[str] = "label"
    labels: tuple[str, ...]
    words: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels) or "" in self.labels:
            raise InputError(
                f"labels: two different ones or more are wanted; these came: {list(self.labels[:PROBLEMS])}."
            )
        if self.words and len(self.words) != len(self.labels):
            raise InputError(f"labels: expected words of all {len(self.labels)}; got those of {len(self.words)}.")

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: object = None) -> Self:
        """What `to_dict` gave. Raises InputError for anything else."""
        labels = table.get("labels")
        if not isinstance(labels, list) or not all(isinstance(each, str) for each in labels):
            raise InputError("the model file's column of labels: a list of texts is wanted.")
        words = table.get("words", [])
        if not isinstance(words, list) or not all(_ids(each) for each in words):
            raise InputError("the model file's column of labels: lists of ids are wanted as their words.")
        return cls(tuple(labels), tuple(map(tuple, words)))

    @property
    def spec(self) -> ColumnSpec:
        """How many labels, and their words."""
        return ColumnSpec(self.kind, len(self.labels), words=self.words)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """One id each. Raises InputError for an unknown label; all of them are named."""
        wanted = [text.strip() for text in texts]
        wrong = list(dict.fromkeys(text for text in wanted if text not in self._places))
        if wrong:
            named = quoted(wrong, PROBLEMS)
            known = first_of(self.labels, PROBLEMS)
            raise InputError(f"expected one of the labels {known}; got {named}.{suggest(wrong[0], self.labels)}")
        return [[self._places[text]] for text in wanted]

    def decode(self, ids: Sequence[int]) -> str:
        """The label of the one id."""
        return " ".join(self.tokens(ids))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return [self.labels[each] for each in ids]

    def ids(self, tokens: Sequence[str]) -> list[int]:
        return [each for [each] in self.encode(tokens)]

    def collate(self, rows: Sequence[Ids]) -> Tensor:
        """(B,) int64."""
        return torch.from_numpy(np.concatenate(rows).astype(np.int64))

    collate_texts = collate

    def closed(self, ids: Sequence[int]) -> list[int]:
        return list(ids)

    def covers(self, other: Column) -> bool:
        """Whether it has all labels of `other`."""
        return isinstance(other, Label) and self._places.keys() >= other._places.keys()

    def to_dict(self) -> dict[str, Any]:
        """The labels in the order of their ids, and their words."""
        words = {"words": [list(each) for each in self.words]} if self.words else {}
        return {"labels": list(self.labels), **words}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {label: place for place, label in enumerate(self.labels)}


NO_LABEL = ""  # the token of what has none


@dataclass(frozen=True)
class AlignedLabels(Label):
    """A label, or none, for each of N things in a row. The id C means none."""

    @property
    def spec(self) -> ColumnSpec:
        return ColumnSpec(self.kind, len(self.labels), ids=len(self.labels) + 1)

    def decode(self, ids: Sequence[int]) -> str:
        """The labels between spaces; _ where there is none."""
        return " ".join(name or "_" for name in self.tokens(ids))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return [NO_LABEL if each == len(self.labels) else self.labels[each] for each in ids]

    def collate(self, rows: Sequence[Ids]) -> Any:
        """(B, N) int64, -1 where there is none."""
        ids = padded(rows, len(self.labels))
        return NodeTargets(ids._replace(values=torch.where(ids.values < len(self.labels), ids.values, -1)))

    collate_texts = collate

    def closed(self, ids: Sequence[int]) -> list[int]:
        """Those that there are."""
        return [each for each in ids if each < len(self.labels)]


def _ids(given: Any) -> bool:
    return isinstance(given, list) and bool(given) and all(type(each) is int and each >= 0 for each in given)
