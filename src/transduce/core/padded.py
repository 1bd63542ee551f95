"""Padded sequences, the input and output of models."""

from typing import NamedTuple, Self

import torch
from torch import Tensor


class Padded(NamedTuple):
    """Sequences of different lengths in one tensor.

    values: (B, S) token ids or (B, S, F) features. Values after the end of a sequence are arbitrary.
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
