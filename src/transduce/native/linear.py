"""Products with a weight that was laid out for them once, of any number of rows (`linear.h`).

Shapes: N rows, I inputs, O outputs, P panels of outputs.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.native import kernel, kernels, serves

WIDE, DEEP, QUADS = 32, 64, 4  # of `linear.h`


def can_pack(weight_OI: Tensor, whole: bool) -> bool:
    """Whether `Packed` takes this weight; whole: in 8 bits, for which the processor must have the instruction."""
    fits = serves(weight_OI) and weight_OI.dtype is torch.float32
    return fits and (not whole or kernels().__name__.endswith(("avx512", "amx")))


class Packed:
    """x W^T + b for one weight (O, I) and one bias (O,); a row's result depends on that row alone.

    Args:
        weight_OI: in fp32; if `scale_O` is given, in int8.
        scale_O: what a row of the weight was divided by.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None, scale_O: Tensor | None = None) -> None:
        self.outputs, self.inputs = weight_OI.shape
        self._panels = _in_panels(weight_OI) if scale_O is None else _in_whole_panels(weight_OI)
        self._bias_O = None if bias_O is None else bias_O.contiguous()
        self._scale_O = None if scale_O is None else scale_O.contiguous()
        self._above_O = None if scale_O is None else 128 * weight_OI.sum(1, dtype=torch.int32)
        held = (self._panels, self._scale_O, self._above_O, self._bias_O)
        self.fields = [*(0 if each is None else each.data_ptr() for each in held), self.inputs, self.outputs]
        """`Weight` of `linear.h`, as whole numbers."""
        self._weight = torch.tensor(self.fields)

    def __call__(self, x: Tensor) -> Tensor:
        """(.., I) -> (.., O), in fp32."""
        x = x.contiguous()
        product = x.new_empty(*x.shape[:-1], self.outputs)
        rows = x.numel() // self.inputs
        kernel("linear")(self._weight.data_ptr(), x.data_ptr(), product.data_ptr(), rows)
        return product


def _in_panels(weight_OI: Tensor) -> Tensor:
    """(P, I, WIDE)."""
    filled = F.pad(weight_OI, (0, 0, 0, -len(weight_OI) % WIDE))
    return filled.view(-1, WIDE, weight_OI.shape[1]).mT.contiguous()


def _in_whole_panels(weight_OI: Tensor) -> Tensor:
    """(P, I / QUADS, DEEP, QUADS)."""
    outputs, inputs = weight_OI.shape
    filled = F.pad(weight_OI, (0, -inputs % QUADS, 0, -outputs % DEEP))
    return filled.view(-1, DEEP, filled.shape[1] // QUADS, QUADS).transpose(1, 2).contiguous()
