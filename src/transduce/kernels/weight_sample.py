"""A sample of a weight's numbers, by which changes of whole rows or columns are noticed.

Shapes: O rows, I columns.
"""

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}  # by size: as whole numbers, NaN is equal to itself


class WeightSample:
    """Diagonals of a weight (O, I) that touch each of its rows and columns.

    now: what stands there, as views of the weight. then: what stood there when the sample was taken.
    """

    def __init__(self, weight_OI: Tensor) -> None:
        bits_OI = weight_OI.detach().view(BITS[weight_OI.itemsize]).numpy()
        rows, columns = bits_OI.shape
        steps = range(0, max(rows, columns), max(1, min(rows, columns)))
        self.now: list[NDArray[Any]] = [bits_OI.diagonal(-step if rows >= columns else step) for step in steps]
        self.then: NDArray[Any] = np.concatenate(self.now) if self.now else np.empty(0, np.int32)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself: it belongs to the weight. A copied module takes its own when it packs its own weight."""
        return self
