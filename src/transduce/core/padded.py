"""Sequences of different lengths in one tensor: what models read and write."""

from typing import NamedTuple, Self

import torch
from torch import Tensor


class Padded(NamedTuple):
    """Sequences of different lengths in one tensor.

    values: (B, S) token ids or (B, S, F) features; anything may stand behind a sequence's end.
    lengths: (B,) int64, at least 1.
    """

    values: Tensor
    lengths: Tensor

    def mask(self) -> Tensor:
        """(B, S) bool, True = a real position."""
        return torch.arange(self.values.shape[1], device=self.lengths.device) < self.lengths[:, None]

    def to(self, device: torch.device) -> Self:
        """Both tensors on `device`."""
        return self._replace(values=self.values.to(device), lengths=self.lengths.to(device))
