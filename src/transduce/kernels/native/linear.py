"""Products with a weight that was laid out for them once, of any number of rows (`linear.h`).

Shapes: N rows, I inputs, O outputs, P panels of outputs.
"""

import math
from functools import cached_property
from typing import Any, Self

import numpy as np

from transduce.kernels.native import kernel
from transduce.kernels.native.arrays import Array, contiguous, empty, empty_like, zeros
from transduce.kernels.native.call import Struct
from transduce.kernels.native.layout import ACTIVATIONS, DEEP, QUADS, VECTOR, WIDEST


class Packed:
    """x W^T + b for one weight (O, I) and one bias (O,); a row's result depends on that row alone.

    Args:
        weight_OI: in fp32.
        whole: lay it out in 8 bits, as `transduce.kernels.matmul.quantised` does.
    """

    def __init__(self, weight_OI: Array, bias_O: Array | None = None, int8: bool = False) -> None:
        weight_OI = contiguous(weight_OI)
        self.outputs, self.inputs = weight_OI.shape
        self._scale_O = empty((self.outputs,)) if int8 else None
        self._above_O = empty((self.outputs,), np.int32) if int8 else None
        if int8:
            room = (-(-self.outputs // DEEP), -(-self.inputs // QUADS), DEEP, QUADS)
            filled = self.outputs % DEEP == 0 and self.inputs % QUADS == 0
            self._panels = (empty if filled else zeros)(room, np.int8)
        else:
            filled = self.outputs % WIDEST == 0
            self._panels = (empty if filled else zeros)((-(-self.outputs // WIDEST) * WIDEST, self.inputs))
        made = [self._panels, self._scale_O, self._above_O]
        kernel("pack_whole" if int8 else "pack")(weight_OI, *weight_OI.shape, *(made if int8 else made[:1]))
        self.struct = Struct(*made, None if bias_O is None else contiguous(bias_O), self.inputs, self.outputs)
        """`Weight` of `linear.h`."""

    @cached_property
    def rows(self) -> Array | None:
        """In 8 bits: the weight (O, I) row by row, each filled up with zeros to a multiple of 64; None in fp32."""
        if self._scale_O is None:
            return None
        rows_OI = self._panels.transpose(0, 2, 1, 3).reshape(-1, self._panels.shape[1] * QUADS)[: self.outputs]
        filled_OI = zeros((self.outputs, -(-rows_OI.shape[1] // VECTOR) * VECTOR), np.int8)
        filled_OI[:, : rows_OI.shape[1]] = rows_OI
        return filled_OI

    def vectors(self, row_N: Array) -> Array:
        """(N, I): these rows, int64 and each below O, of a weight that is not in 8 bits, as they were packed."""
        assert self._scale_O is None
        found_NI = empty((len(row_N), self.inputs))
        kernel("packed_rows")(self.struct, contiguous(row_N), found_NI, len(row_N))
        return found_NI

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself: it never changes. A copied module makes its own when it is asked."""
        return self

    def __call__(self, x: Array, activation: str = "identity") -> Array:
        """(.., I) -> (.., O), in fp32.

        activation: of the product, a name of `layout.ACTIVATIONS`.
        """
        x = contiguous(x)
        rows = math.prod(x.shape[:-1])
        product = empty_like(x, (*x.shape[:-1], self.outputs))
        kernel("linear")(self.struct, x, product, rows, ACTIVATIONS.index(activation))
        return product
