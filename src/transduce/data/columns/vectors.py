"""Sequences of vectors, as JSON: a list of rows of numbers.

Shapes: S steps, F numbers of a vector.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.core.errors import InputError, every
from transduce.core.padded import Padded
from transduce.core.printable import PROBLEMS
from transduce.data.collate import padded_frames
from transduce.data.columns.protocols import Column, ColumnSpec, Specs, random_vectors
from transduce.data.store import FloatRows, Ids

SHOWN = 60  # characters of a wrong text in a message


@dataclass(frozen=True)
class Vectors(Column):
    """A sequence of vectors a row, each of `width` numbers. As text: `[[0, 1, 0], [1, 1, 0]]`."""

    kind: ClassVar[str] = "vectors"
    length_unit: ClassVar[str] = "vector"
    likelihood_unit: ClassVar[str] = "bit"
    without_tokens: ClassVar[str] = (
        'reads or writes tokens, and the task has vectors; expected "neural_turing_machine" or "vector_decoder"'
    )
    without_words: ClassVar[str] = (
        "this model processes vectors, which have no picture of words: `predict --draw` shows what its memory did."
    )
    width: int

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: object = None) -> Self:
        """What `to_dict` gave. Raises InputError for anything else."""
        width = table.get("width")
        if type(width) is not int or width < 1:
            raise InputError("the model file's column of vectors: expected a width.")
        return cls(width)

    @property
    def spec(self) -> ColumnSpec:
        """How many numbers a vector has."""
        return ColumnSpec(self.kind, self.width)

    @property
    def stored(self) -> FloatRows:
        """Rows of F floats."""
        return FloatRows(self.width)

    @classmethod
    def drawn(cls, length: int, size: int, generator: torch.Generator) -> Padded:
        """(1, S, F) random numbers."""
        return random_vectors(length, size, generator)

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """(S, F) of each. Raises InputError for texts that are no such sequence; they are named."""
        return every(self._rows, texts, "line", PROBLEMS)

    def decode(self, ids: Any) -> str:
        """The rows as JSON; whole numbers without a point."""
        return json.dumps([[_number(each) for each in row] for row in np.asarray(ids, np.float32)])

    def tokens(self, ids: Any) -> list[str]:
        return [" ".join(str(_number(each)) for each in row) for row in np.asarray(ids, np.float32)]

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """Raises InputError: a vector has no id."""
        raise InputError("vectors cannot be given as tokens.")

    def collate(self, rows: Sequence[Ids]) -> Padded:
        """(B, S, F) float32, padded with 0."""
        return padded_frames(rows)

    collate_texts = collate

    def closed(self, ids: Any) -> list[int]:
        """Each number by itself, rounded: of 0 and 1, each has a probability of its own."""
        return np.asarray(ids, np.float32).round().astype(np.int64).ravel().tolist()

    def to_dict(self) -> dict[str, Any]:
        return {"width": self.width}

    def _rows(self, text: str) -> NDArray[np.float32]:
        wanted = f"expected rows of {self.width} numbers as JSON, such as {self._example()}"
        try:
            rows = json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(f'{wanted}; got "{text[:SHOWN]}".') from None
        if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
            raise InputError(f'{wanted}; got "{text[:SHOWN]}".')
        if wrong := next((row for row in rows if len(row) != self.width), None):
            raise InputError(f"{wanted}; got a row of {len(wrong)}.")
        flat = [each for row in rows for each in row]
        if not all(isinstance(each, int | float) and abs(each) <= 1e30 for each in flat):
            raise InputError(f'{wanted}; got "{text[:SHOWN]}".')
        return np.asarray(rows, np.float32).reshape(len(rows), self.width)

    def _example(self) -> str:
        return json.dumps([[place % 2 for place in range(self.width)]])


def check_vectors(specs: Specs, model: str) -> tuple[int, int]:
    """The widths of inputs and outputs. Raises InputError for a task without vectors on both sides."""
    if specs.source is None or specs.source.kind != Vectors.kind or specs.target.kind != Vectors.kind:
        raise InputError(
            f'[model] kind = "{model}": expected a task with vectors in and out, such as "algorithmic"; got another.'
        )
    return specs.source.size, specs.target.size


def _number(value: Any) -> int | float:
    """As short as it can be read back in fp32."""
    return int(value) if value == int(value) else float(str(value))
