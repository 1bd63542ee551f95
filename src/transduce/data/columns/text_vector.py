"""One vector for a whole text, as JSON: a list of numbers.

Shapes: B examples of a batch, H numbers of a vector.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from transduce.core.errors import InputError, every
from transduce.core.printable import PROBLEMS
from transduce.data.columns.protocols import Column, ColumnSpec
from transduce.data.store import FloatRows, Ids

SHOWN = 60  # characters of a wrong text in a message


@dataclass(frozen=True)
class TextVector(Column):
    """A vector of `width` numbers a row. As text: `[0.12, -0.5, 0.03]`."""

    kind: ClassVar[str] = "text_vector"
    likelihood_unit: ClassVar[str] = "number"
    without_tokens: ClassVar[str] = 'reads or writes tokens, and the task gives vectors; expected "sentence_encoder"'
    width: int

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: object = None) -> Self:
        """What `to_dict` gave. Raises InputError for anything else."""
        width = table.get("width")
        if type(width) is not int or width < 1:
            raise InputError("the model file's column of vectors of texts: expected a width.")
        return cls(width)

    @property
    def spec(self) -> ColumnSpec:
        """How many numbers a vector has."""
        return ColumnSpec(self.kind, self.width)

    @property
    def stored(self) -> FloatRows:
        """One row of H floats."""
        return FloatRows(self.width)

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """(1, H) of each. Raises InputError for texts that are no such vector; they are named."""
        return every(self._row, texts, "line", PROBLEMS)

    def decode(self, ids: Any) -> str:
        """The numbers as JSON, as short as they can be read back in fp32."""
        return json.dumps([float(str(each)) for each in np.asarray(ids, np.float32).reshape(-1)])

    def tokens(self, ids: Any) -> list[str]:
        """None: a vector has no tokens."""
        return []

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """None, as of no tokens. Raises InputError for any."""
        if tokens:
            raise InputError("a vector cannot be given as tokens.")
        return []

    def collate(self, rows: Sequence[Ids]) -> Tensor:
        """(B, H) float32."""
        return torch.from_numpy(np.concatenate([np.asarray(row, np.float32) for row in rows]))

    def to_dict(self) -> dict[str, Any]:
        return {"width": self.width}

    def _row(self, text: str) -> Any:
        try:
            row = json.loads(text)
        except (ValueError, RecursionError):
            row = None
        numbers = isinstance(row, list) and all(isinstance(each, int | float) for each in row)
        if not numbers or len(row) != self.width:
            raise InputError(f'expected a list of {self.width} numbers as JSON; got "{text[:SHOWN]}".')
        return np.asarray([row], np.float32)
