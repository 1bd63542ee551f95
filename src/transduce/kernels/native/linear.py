"""Products with a weight that was laid out for them once, of any number of rows (`linear.h`).

Shapes: N rows, I inputs, O outputs, P panels of outputs.
"""

from functools import cached_property
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.kernels.native import kernel, kernels, serves
from transduce.kernels.native.layout import DEEP, QUADS, VECTOR, WIDE


def can_pack(weight_OI: Tensor, whole: bool) -> bool:
    """Whether `Packed` takes this weight; whole: in 8 bits, for which the processor must have the instruction."""
    fits = serves(weight_OI) and weight_OI.dtype is torch.float32
    return fits and (not whole or kernels().__name__.endswith(("avx512", "amx")))


class Packed:
    """x W^T + b for one weight (O, I) and one bias (O,); a row's result depends on that row alone.

    Args:
        weight_OI: in fp32.
        whole: lay it out in 8 bits, as `transduce.kernels.int8.quantised` does.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None, whole: bool = False) -> None:
        weight_OI = weight_OI.contiguous()
        self.outputs, self.inputs = weight_OI.shape
        self._bias_O = None if bias_O is None else bias_O.contiguous()
        self._scale_O = torch.empty(self.outputs) if whole else None
        self._above_O = torch.empty(self.outputs, dtype=torch.int32) if whole else None
        if whole:
            room = (-(-self.outputs // DEEP), -(-self.inputs // QUADS), DEEP, QUADS)
            self._panels = torch.zeros(room, dtype=torch.int8)
        else:
            self._panels = torch.zeros(-(-self.outputs // WIDE), self.inputs, WIDE)
        made = [each.data_ptr() for each in (self._panels, self._scale_O, self._above_O) if each is not None]
        kernel("pack_whole" if whole else "pack")(weight_OI.data_ptr(), *weight_OI.shape, *made)
        held = (self._panels, self._scale_O, self._above_O, self._bias_O)
        self.fields = [*(0 if each is None else each.data_ptr() for each in held), self.inputs, self.outputs]
        """`Weight` of `linear.h`, as whole numbers."""
        self._weight = torch.tensor(self.fields)

    @cached_property
    def rows(self) -> Tensor | None:
        """In 8 bits: the weight (O, I) row by row, each filled up with zeros to a multiple of 64; None in fp32."""
        if self._scale_O is None:
            return None
        rows_OI = self._panels.permute(0, 2, 1, 3).flatten(2).flatten(0, 1)[: self.outputs]
        return F.pad(rows_OI, (0, -rows_OI.shape[1] % VECTOR)).contiguous()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself: it never changes. A copied module makes its own when it is asked."""
        return self

    def __call__(self, x: Tensor) -> Tensor:
        """(.., I) -> (.., O), in fp32."""
        x = x.contiguous()
        product = x.new_empty(*x.shape[:-1], self.outputs)
        rows = x.numel() // self.inputs
        kernel("linear")(self._weight.data_ptr(), x.data_ptr(), product.data_ptr(), rows)
        return product
