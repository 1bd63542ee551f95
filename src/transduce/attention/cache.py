"""Keys and values of the positions already seen, so that each is computed once (Shazeer 2019: incremental attention).

Shapes: B batch, H heads, S positions, E width of a head.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class KeyValue(NamedTuple):
    """What can be attended to: keys and values, both (B, H, S, E)."""

    key: Tensor
    value: Tensor

    @property
    def length(self) -> int:
        """S, the number of positions held."""
        return self.key.shape[2]

    def append(self, new: "KeyValue") -> "KeyValue":
        """These positions followed by `new`'s; self is left as it was."""
        if self.length == 0:
            return new
        return KeyValue(torch.cat((self.key, new.key), 2), torch.cat((self.value, new.value), 2))
