"""The linear map y = x W^T + b, by the fastest matrix product that the processor has.

torch multiplies fp32 matrices on a CPU with MKL, which runs at half speed or less on processors that Intel did not
make; oneDNN, which torch carries as well, does not (benchmarks/matrix_products.py measures both). A model that only
predicts can have its weights laid out for oneDNN once and for all: `pack`.

Shapes: N rows, I inputs, O outputs.
"""

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Linear(nn.Linear):
    """`nn.Linear` with its name, its parameters and its start, and a faster product where there is one."""

    packed: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """(.., I) -> (.., O)."""
        if self.packed is not None and x.shape[:-1].numel() > 1:  # one row alone is a matrix-vector product
            return packed_linear(x, self.packed, self.bias)
        return linear(x, self.weight, self.bias)

    def pack(self) -> None:
        """Lay the weight out for `packed_linear`, where that is faster; the weight must not change any more."""
        self.packed = pack(self.weight) if _by_onednn(self.weight) else None


def linear(x: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """x W^T + b, (.., I) -> (.., O). Under autocast in its type, as `F.linear`."""
    if not _by_onednn(x) or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight_OI, bias_O)
    flat_NO: Tensor = _OneDnnLinear.apply(x.flatten(0, -2), weight_OI, bias_O)  # type: ignore[no-untyped-call]
    return flat_NO.view(*x.shape[:-1], len(weight_OI))


def pack(weight_OI: Tensor) -> Tensor:
    """The weight in oneDNN's own order, for `packed_linear` alone."""
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight_OI.detach())
    return packed


def packed_linear(x: Tensor, packed: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """x W^T + b for a W from `pack`: no gradients."""
    return _product(x, packed, bias_O)


class _OneDnnLinear(torch.autograd.Function):
    """dx = dy W,   dW = dy^T x,   db = sum dy."""

    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
        ctx.save_for_backward(x_NI, weight_OI)
        return _product(x_NI, weight_OI, bias_O)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        (dy_NO,) = gradients
        x_NI, weight_OI = ctx.saved_tensors
        wants_x, wants_weight, wants_bias = ctx.needs_input_grad
        dx_NI = _product(dy_NO, weight_OI.T, None) if wants_x else None
        dweight_OI = _product(dy_NO.T, x_NI.T, None) if wants_weight else None
        return dx_NI, dweight_OI, dy_NO.sum(0) if wants_bias else None


def _product(x: Tensor, weight_OI: Tensor, bias_O: Tensor | None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight_OI, bias_O, "none", [], "")
    return product


def _by_onednn(x: Tensor) -> bool:
    return x.dtype == torch.float32 and x.device.type == "cpu" and _mkl_is_slow()


@cache
def _mkl_is_slow() -> bool:
    """True on x86 processors that Intel did not make, where this torch has oneDNN's product."""
    processor = torch.cpu.get_capabilities()
    foreign = processor.get("architecture") == "x86_64" and "Intel" not in str(processor.get("cpu_name"))
    return foreign and hasattr(torch.ops.mkldnn, "_linear_pointwise")
