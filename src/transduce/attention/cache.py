"""The key-value cache: keys and values of earlier positions, so that each is computed once (Shazeer 2019).

Shapes: B batch, H heads, S positions, E width of a head.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class KeyValue(NamedTuple):
    """Keys and values that can be attended to.

    key: (B, H, S, E).
    value: (B, H, S, E).
    """

    key: Tensor
    value: Tensor

    @property
    def length(self) -> int:
        """S, the number of positions held."""
        return self.key.shape[2]

    def append(self, new: "KeyValue") -> "KeyValue":
        """A new cache with the positions of `new` after these; `self` is not changed."""
        if self.length == 0:
            return new
        return KeyValue(torch.cat((self.key, new.key), 2), torch.cat((self.value, new.value), 2))

    def last(self, count: int) -> "KeyValue":
        """The last `count` positions, at least 1, or all if there are no more."""
        return KeyValue(self.key[:, :, -count:], self.value[:, :, -count:])
