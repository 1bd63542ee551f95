"""A span of a text: its first and its last token.

Shapes: B examples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.data.columns.protocols import Column, ColumnSpec
from transduce.data.store import Ids

POSITIONS = 1 << 16  # a text has fewer tokens


@dataclass(frozen=True)
class Span(Column):
    """Two ids a row: the places of the first and the last token, from 0. As text: `17 19`."""

    kind: ClassVar[str] = "span"
    likelihood_unit: ClassVar[str] = "span"

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: object = None) -> Self:
        return cls()

    @property
    def spec(self) -> ColumnSpec:
        """How far a span may lie."""
        return ColumnSpec(self.kind, POSITIONS)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Raises InputError for what is no span; all of them are named."""
        found = [[int(each) for each in text.split() if each.isdecimal()] for text in texts]
        problems = [
            f'expected a span, its first and last token, such as "17 19"; got "{text[:60]}".'
            for text, ids in zip(texts, found, strict=True)
            if len(ids) != 2 or len(text.split()) != 2 or not ids[0] <= ids[1] < POSITIONS
        ]
        if problems:
            raise InputError(problems)
        return found

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(self.tokens(ids))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return [str(each) for each in ids]

    def ids(self, tokens: Sequence[str]) -> list[int]:
        [found] = self.encode([" ".join(tokens)])
        return found

    def collate(self, rows: Sequence[Ids]) -> Tensor:
        """(B, 2) int64."""
        return torch.from_numpy(np.stack(rows).astype(np.int64))

    collate_texts = collate

    def closed(self, ids: Sequence[int]) -> list[int]:
        """Nothing: a place says little without its text, so there is no frequency to compare a loss with."""
        return []

    def to_dict(self) -> dict[str, Any]:
        return {}
