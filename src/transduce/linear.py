"""The linear map y = x W^T + b, by the fastest matrix product that the processor has.

torch multiplies fp32 matrices on a CPU with MKL, which runs at half speed or less on processors that Intel did not
make; oneDNN, which torch carries as well, does not (benchmarks/matrix_products.py measures both). A model that only
predicts can have its weights laid out for oneDNN once and for all: `pack`.

Shapes: N rows, I inputs, O outputs.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.int8 import Int8

Precision = Literal["fp32", "int8"]
Product = Callable[[Tensor, Tensor | None], Tensor]  # x (N, I), bias (O,) -> x W^T + b (N, O)

SMALL = 2**18  # fewer multiplications than these are done before oneDNN has begun
STEP = 16  # numbers of rows are rounded up to multiples of this


@runtime_checkable
class Packs(Protocol):
    """A module that multiplies by a weight and can lay it out for that."""

    def pack(self, precision: Precision = "fp32") -> None:
        """For a model that predicts and does nothing else; the weight must not change any more."""
        ...


class Linear(nn.Linear):
    """`nn.Linear` with its name, its parameters and its start, and a faster product where there is one."""

    packed: Product | None = None

    def forward(self, x: Tensor) -> Tensor:
        """(.., I) -> (.., O)."""
        return linear(x, self.weight, self.bias, self.packed)

    def pack(self, precision: Precision = "fp32") -> None:
        """For a model that predicts and does nothing else; the weight must not change any more."""
        self.packed = pack(self.weight, precision)


def linear(x: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None, packed: Product | None = None) -> Tensor:
    """x W^T + b, (.., I) -> (.., O). Under autocast in its type, as `F.linear`.

    Args:
        packed: what `pack` made of the weight; used where no gradient is wanted.
    """
    if packed is not None and (torch.is_grad_enabled() or x.dtype != torch.float32):
        packed = None
    if packed is None and (not _by_onednn(x) or _is_small(x, weight_OI) or torch.is_autocast_enabled("cpu")):
        return F.linear(x, weight_OI, bias_O)
    x_NI = x.reshape(-1, x.shape[-1])
    if packed is None:
        product_NO: Tensor = _OneDnnLinear.apply(x_NI, weight_OI, bias_O)  # type: ignore[no-untyped-call]
    else:
        product_NO = packed(_rounded_up(x_NI), bias_O)[: len(x_NI)]
    return product_NO.view(*x.shape[:-1], len(weight_OI))


def pack(weight_OI: Tensor, precision: Precision = "fp32") -> Product | None:
    """The product with this weight, laid out in oneDNN's own order; None where that is no faster.

    Raises:
        InputError: no 8-bit products on this machine.
    """
    if precision == "int8":
        return Int8(weight_OI.detach())
    return _LaidOut(weight_OI.detach()) if _by_onednn(weight_OI) else None


def pack_all(model: nn.Module, precision: Precision = "fp32") -> None:
    """`pack` everything in the model that can be: from now on it predicts and does nothing else."""
    for module in model.modules():
        if isinstance(module, Packs):
            module.pack(precision)


class _LaidOut:
    """x, b -> x W^T + b in fp32 for one weight."""

    def __init__(self, weight_OI: Tensor) -> None:
        self._weight_OI = weight_OI
        self._laid_out: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight_OI)

    def __call__(self, x_NI: Tensor, bias_O: Tensor | None) -> Tensor:
        """(N, I) -> (N, O)."""
        if len(x_NI) == 1 or _is_small(x_NI, self._weight_OI):  # MKL is good at a matrix times one vector
            return F.linear(x_NI, self._weight_OI, bias_O)
        return _product(x_NI, self._laid_out, bias_O)


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


def _rounded_up(x_NI: Tensor) -> Tensor:
    """With rows of zeros, up to an eighth more, so that few sizes occur.

    oneDNN makes and keeps a program for every size that it meets: a server's batches of all sizes took 330 MB of them.
    """
    rows = len(x_NI)
    more = -rows % max(STEP, 2 ** (rows.bit_length() - 4))
    return F.pad(x_NI, (0, 0, 0, more)) if rows > STEP and more else x_NI


def _is_small(x: Tensor, weight_OI: Tensor) -> bool:
    return x.numel() * len(weight_OI) < SMALL


def _by_onednn(x: Tensor) -> bool:
    fits = x.dtype == torch.float32 and x.device.type == "cpu"
    return fits and bool(torch.backends.mkldnn.enabled) and _mkl_is_slow()


@cache
def _mkl_is_slow() -> bool:
    """True on x86 processors that Intel did not make, where this torch has oneDNN's product."""
    processor = torch.cpu.get_capabilities()
    foreign = processor.get("architecture") == "x86_64" and "Intel" not in str(processor.get("cpu_name"))
    return foreign and hasattr(torch.ops.mkldnn, "_linear_pointwise")
