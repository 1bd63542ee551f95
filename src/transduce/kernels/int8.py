"""Int8 matrix products for prediction: a quarter of the memory, and a third of the time on processors with VNNI.

    y_no = s_n t_o sum_i X_ni W_oi + b_o

    s_n = max_i |x_ni| / 127,   X = round(x / s)       for each row, dynamically
    t_o = max_i |w_oi| / 127,   W = round(w / t)       for each row of the weight, once

Each row of x has its own scale, so a sentence's result does not depend on its batch. The sum is exact, in 32 bits.
(Symmetric quantization by the maximum: Wu et al. 2020, "Integer quantization for deep learning inference", equations 5
to 9.)

Shapes: N rows, I inputs, O outputs.
"""

from functools import cache
from typing import Any, Self

import torch
from torch import Tensor

from transduce.core.errors import InputError

LARGEST = 127
LEAST = 1e-36  # smaller maxima count as 0, because the reciprocal of the scale would be infinite
ZERO = 128  # oneDNN is fast where x is unsigned


class Int8:
    """x W^T + b in int8, for one weight (O, I) and one bias (O,).

    Raises:
        InputError: this build of torch has no int8 product for this machine.
    """

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None = None) -> None:
        if weight_OI.device.type != "cpu" or not hasattr(torch.ops.onednn, "qlinear_pointwise"):
            raise InputError("precision int8 needs an x86 processor and a torch built with oneDNN; use fp32.")
        whole_OI, scale_O = quantised(weight_OI)
        self._weight = torch.ops.onednn.qlinear_prepack(whole_OI, None)
        self._scale_O, self._zero_O = scale_O, torch.zeros(len(scale_O), dtype=torch.int64)
        self._bias_O = bias_O
        self._half = torch.tensor(ZERO + 0.5)
        self._in_two = sums_saturate()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself: it never changes. A copied module makes its own when it is asked."""
        return self

    def __call__(self, x_NI: Tensor) -> Tensor:
        """(N, I) -> (N, O) in fp32."""
        scale_N1 = _scale(x_NI)
        whole_NI = torch.addcmul(self._half, x_NI, scale_N1.reciprocal()).to(torch.uint8)  # to() cuts off
        if self._in_two:  # X = 2 (X // 2) + X % 2
            sum_NO = self._sum(whole_NI >> 1, ZERO // 2).mul_(2).add_(self._sum(whole_NI & 1, 0))
        else:
            sum_NO = self._sum(whole_NI, ZERO)
        return sum_NO.mul_(scale_N1) if self._bias_O is None else torch.addcmul(self._bias_O, sum_NO, scale_N1)

    def _sum(self, whole_NI: Tensor, zero: int) -> Tensor:
        return _product(whole_NI, zero, self._weight, self._scale_O, self._zero_O)


@cache
def sums_saturate() -> bool:
    """Whether oneDNN adds two products at a time in 16 bits, as processors without VNNI do, where they may not fit.

    They always fit where x has 7 bits.
    """
    whole_OI, one_O = torch.full((64, 64), LARGEST, dtype=torch.int8), torch.ones(64)
    weight = torch.ops.onednn.qlinear_prepack(whole_OI, None)
    greatest_NI = torch.full((64, 64), 255, dtype=torch.uint8)
    sum_NO = _product(greatest_NI, 0, weight, one_O, one_O.long() * 0)
    return bool((sum_NO != 64 * LARGEST * 255).any())


def _product(whole_NI: Tensor, zero: int, weight: Tensor, scale_O: Tensor, zero_O: Tensor) -> Tensor:
    return torch.ops.onednn.qlinear_pointwise(
        whole_NI, 1.0, zero, weight, scale_O, zero_O, None, 1.0, 0, torch.float32, "none", [], ""
    )


def quantised(weight_OI: Tensor) -> tuple[Tensor, Tensor]:
    """W (O, I) in int8 and the scales t (O,)."""
    scale_O = _scale(weight_OI)[:, 0]
    return (weight_OI / scale_O[:, None]).round().to(torch.int8), scale_O


def _scale(x_NI: Tensor) -> Tensor:
    """(N, 1): what the greatest of each row is LARGEST times of; 1 for a row of zeros, not finite where x is not."""
    greatest_N1 = x_NI.abs().amax(1, keepdim=True)
    return torch.where(greatest_N1 <= LEAST, 1.0, greatest_N1 / LARGEST)
