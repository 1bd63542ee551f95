"""One vector for a whole text, as JSON: a list of numbers.

Shapes: B examples of a batch, H numbers of a vector.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.core.errors import InputError
from transduce.data.columns.vectors import Vectors
from transduce.data.store import Ids


@dataclass(frozen=True)
class TextVector(Vectors):
    """A single vector a row, and no sequence of them. As text: `[0.12, -0.5, 0.03]`."""

    kind: ClassVar[str] = "text_vector"
    likelihood_unit: ClassVar[str] = "number"
    without_tokens: ClassVar[str] = 'reads or writes tokens, and the task gives vectors; expected "sentence_encoder"'
    without_words: ClassVar[str] = ""

    def decode(self, ids: Any) -> str:
        """The numbers as JSON, as short as they can be read back in fp32."""
        vector_H = np.asarray(ids, np.float32).reshape(-1)
        if not np.isfinite(vector_H).all():
            return json.dumps(vector_H.tolist())
        return f"[{', '.join(map(str, vector_H))}]"

    def tokens(self, ids: Any) -> list[str]:
        """None: a vector has no tokens."""
        return []

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """None, as of no tokens. Raises InputError for any."""
        if tokens:
            raise InputError("a vector cannot be given as tokens.")
        return []

    def collate(self, rows: Sequence[Ids]) -> Tensor:  # type: ignore[override]
        """(B, H) float32."""
        return torch.from_numpy(np.concatenate([np.asarray(row, np.float32) for row in rows]))

    collate_texts = collate  # type: ignore[assignment]

    def _rows(self, text: str) -> NDArray[np.float32]:
        """(1, H)."""
        found = super()._rows(f"[{text}]")
        if len(found) > 1:
            raise InputError(f"expected one list of {self.width} numbers as JSON; got {len(found)}.")
        return found
