"""The linear map y = x W^T + b, with the fastest matrix product of the processor.

On CPUs, torch multiplies fp32 matrices with MKL, which runs at half speed or less on processors not made by Intel.
oneDNN, which torch includes too, does not (benchmarks/matrix_products.py measures both). In a model that only predicts,
`pack` lays out weights for their product once.

Int8 matrix products for prediction: a quarter of the memory, and a third of the time on processors with VNNI.

    y_no = s_n t_o sum_i X_ni W_oi + b_o

    s_n = max_i |x_ni| / 127,   X = round(x / s)       for each row, dynamically
    t_o = max_i |w_oi| / 127,   W = round(w / t)       for each row of the weight, once

Each row of x has its own scale, so a sentence's result does not depend on its batch. The sum is exact, in 32 bits.
(Symmetric quantization by the maximum: Wu et al. 2020, "Integer quantization for deep learning inference", equations 5
to 9.)

Shapes: N rows, I inputs, O outputs.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Literal, Protocol, Self, runtime_checkable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.kernels.cpu import capabilities, foreign_x86
from transduce.kernels.native.linear import Packed
from transduce.kernels.native.tensors import can_pack
from transduce.kernels.weight_sample import WeightSample

LARGEST = 127
LEAST = 1e-36  # smaller maxima count as 0, because the reciprocal of the scale would be infinite
ZERO = 128  # oneDNN is fast where x is unsigned

Precision = Literal["fp32", "int8"]
Product = Callable[[Tensor], Tensor]  # x (.., I) -> x W^T + b (.., O), of one weight and one bias

SMALL = 2**18  # fewer multiplications than these are done before oneDNN has begun
STEP = 16  # numbers of rows are rounded up to multiples of this
BLOCK = 512  # rows that are multiplied at once


@runtime_checkable
class Packs(Protocol):
    """A module that multiplies by a weight and can pack it, that is, lay it out for the product."""

    packed: Product | None
    weight: Tensor

    def pack(self, precision: Precision = "fp32") -> None:
        """Pack the weight, for prediction only."""
        ...


class Snapshot:
    """The state of some tensors at one time, to find out whether copies made from them are still valid.

    It notices in-place changes and replaced tensors. It does not notice writes through `weight.data` or through a NumPy
    array that shares the memory; for these a pipeline watches its model (`transduce.fused.watch`).

    Args:
        copied: tensors that were copied.
        read: tensors that are read in place, so that their values may change.
    """

    __slots__ = ("_addresses", "_kept", "_versions")

    def __init__(self, copied: Sequence[Tensor], read: Sequence[Tensor] = ()) -> None:
        self._kept = [each.detach() for each in (*copied, *read)]  # while it is held, no other tensor gets this memory
        self._addresses, self._versions = [each.data_ptr() for each in self._kept], _versions(copied)

    def shows(self, copied: Sequence[Tensor], read: Sequence[Tensor] = ()) -> bool:
        """Whether these are the same tensors in memory, in the same order, and no copied one was written to since."""
        return [each.data_ptr() for each in (*copied, *read)] == self._addresses and _versions(copied) == self._versions


def _versions(tensors: Sequence[Tensor]) -> list[int]:
    """How often each was changed; of those made in inference mode torch does not count it."""
    try:
        return [each._version for each in tensors]
    except RuntimeError:
        return [0 if each.is_inference() else each._version for each in tensors]


class PacksOwnWeight(nn.Module):
    """Base class of modules that multiply by their parameter `weight` and add their parameter `bias`, if any."""

    packed: Product | None = None
    _precision: Precision = "fp32"
    _made_of: Snapshot | None = None
    sample: WeightSample | None = None
    """Of the weight when it was packed; None if it is not."""

    def pack(self, precision: Precision = "fp32") -> None:
        """Pack the weight, for prediction only. If weight or bias change later, they are packed again."""
        weight, bias = self._parameters["weight"], self._parameters.get("bias")
        assert weight is not None
        self.packed, self._precision = pack(weight, bias, precision), precision
        self.sample = None if self.packed is None else WeightSample(weight)
        self._made_of = Snapshot((weight,) if bias is None else (weight, bias))

    def up_to_date(self) -> Product | None:
        """`packed`, made again if weight or bias is not what it was; None where the weight is no parameter any more."""
        if self.packed is None:
            return None
        weight, bias = self._parameters.get("weight"), self._parameters.get("bias")
        if weight is None:
            return None
        if self._made_of is None or not self._made_of.shows((weight,) if bias is None else (weight, bias)):
            self.pack_again()
        return self.packed

    def pack_again(self) -> None:
        """Pack weight and bias as they are now, in the same precision."""
        self.pack(self._precision)


class Linear(PacksOwnWeight, nn.Linear):
    """`nn.Linear` with the same parameters and initialization, and a faster product if there is one."""

    def forward(self, x: Tensor) -> Tensor:
        """(.., I) -> (.., O)."""
        packed = self.up_to_date() if predicts(x) else None
        return linear(x, self.weight, self.bias) if packed is None else packed(x)


def linear(x: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """x W^T + b, (.., I) -> (.., O). Under autocast it uses autocast's dtype, like `F.linear`."""
    if not _by_onednn(x) or x.numel() * len(weight_OI) < SMALL or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight_OI, bias_O)
    product_NO: Tensor = _OneDnnLinear.apply(x.reshape(-1, x.shape[-1]), weight_OI, bias_O)  # type: ignore[no-untyped-call]
    return product_NO.view(*x.shape[:-1], len(weight_OI))


def predicts(x: Tensor) -> bool:
    """Whether a packed product can be used for x: no gradient is needed, and the dtype fits."""
    return x.dtype is torch.float32 and not torch.is_grad_enabled()


def pack(weight_OI: Tensor, bias_O: Tensor | None = None, precision: Precision = "fp32") -> Product | None:
    """The product with this weight in packed form; None if that is not faster.

    Raises:
        InputError: this machine has no int8 products.
    """
    bias_O = None if bias_O is None else bias_O.detach()
    weight_OI, whole = weight_OI.detach(), precision == "int8"
    if can_pack(weight_OI, whole):
        return Packed(weight_OI, bias_O, whole)
    if whole:
        return partial(_by_rows, product=Int8(weight_OI, bias_O))
    return _LaidOut(weight_OI, bias_O) if _by_onednn(weight_OI) else None


def pack_products(model: nn.Module, precision: Precision = "fp32") -> None:
    """Pack every weight of the model that can be packed. The model should then only be used for prediction."""
    for module in model.modules():
        if isinstance(module, Packs):
            module.pack(precision)


@torch.inference_mode()
def make_programs(model: nn.Module) -> None:
    """Let oneDNN compile in advance the programs that it needs for each packed weight and number of rows.

    Each takes 0.6 MB and at least a millisecond. Otherwise a server would grow, and occasionally be slow, for hours.
    """
    made = set()
    for module in model.modules():
        if isinstance(module, Packs) and not isinstance(module.packed, Packed | None):
            shape = (module.weight.shape, getattr(module, "bias", None) is None)
            if shape not in made:
                made.add(shape)
                for rows in sorted({_rounded(rows) for rows in range(1, BLOCK + 1)}):
                    module.packed(module.weight.new_zeros(rows, module.weight.shape[1]))


class _LaidOut:
    """x W^T + b in fp32 for one weight and one bias."""

    def __init__(self, weight_OI: Tensor, bias_O: Tensor | None) -> None:
        self._weight_OI, self._bias_O = weight_OI, bias_O
        self._laid_out: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight_OI)
        self._small = max(weight_OI.shape[1], SMALL // weight_OI.shape[0])  # MKL is good at a matrix times one vector

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Itself: it never changes. A copied module makes its own when it is asked."""
        return self

    def __call__(self, x: Tensor) -> Tensor:
        """(.., I) -> (.., O)."""
        if x.numel() <= self._small:
            return F.linear(x, self._weight_OI, self._bias_O)
        return _by_rows(x, self._product)

    def _product(self, x_NI: Tensor) -> Tensor:
        return _product(x_NI, self._laid_out, self._bias_O)


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
    return torch.ops.mkldnn._linear_pointwise(x, weight_OI, bias_O, "none", [], "")


def _by_rows(x: Tensor, product: Product) -> Tensor:
    """`product` of x as rows (N, I), `BLOCK` at a time, the last with rows of zeros below, so that few sizes occur.

    oneDNN makes and keeps a program for every size that it meets: a server's batches of all sizes took 330 MB of them.
    """
    *before, inputs = x.shape
    x_NI = x.reshape(-1, inputs)
    if len(x_NI) <= BLOCK:
        product_NO = _block(x_NI, product)
    else:
        product_NO = torch.cat([_block(block_NI, product, STEP) for block_NI in torch.split(x_NI, BLOCK)])
    return product_NO.view(*before, product_NO.shape[1])


def _block(x_NI: Tensor, product: Product, min_rows: int = 1) -> Tensor:
    rows = len(x_NI)
    more = max(min_rows, _rounded(rows)) - rows
    return product(F.pad(x_NI, (0, 0, 0, more)))[:rows] if more else product(x_NI)


def _rounded(rows: int) -> int:
    """At most an eighth more, or the next multiple of `STEP`."""
    return rows + (-rows % max(STEP, 2 ** (rows.bit_length() - 4)) if rows > STEP else 0)


def _by_onednn(x: Tensor) -> bool:
    fits = x.dtype == torch.float32 and x.device.type == "cpu"
    return fits and bool(torch.backends.mkldnn.enabled) and _mkl_is_slow()


@cache
def _mkl_is_slow() -> bool:
    """True on x86 processors that Intel did not make, where this torch has oneDNN's product."""
    return foreign_x86(capabilities()) and hasattr(torch.ops.mkldnn, "_linear_pointwise")


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
        return _int8_product(whole_NI, zero, self._weight, self._scale_O, self._zero_O)


@cache
def sums_saturate() -> bool:
    """Whether oneDNN adds two products at a time in 16 bits, as processors without VNNI do, where they may not fit.

    They always fit where x has 7 bits.
    """
    whole_OI, one_O = torch.full((64, 64), LARGEST, dtype=torch.int8), torch.ones(64)
    weight = torch.ops.onednn.qlinear_prepack(whole_OI, None)
    greatest_NI = torch.full((64, 64), 255, dtype=torch.uint8)
    sum_NO = _int8_product(greatest_NI, 0, weight, one_O, one_O.long() * 0)
    return bool((sum_NO != 64 * LARGEST * 255).any())


def _int8_product(whole_NI: Tensor, zero: int, weight: Tensor, scale_O: Tensor, zero_O: Tensor) -> Tensor:
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
