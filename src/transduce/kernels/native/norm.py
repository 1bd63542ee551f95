"""Layer norm in one pass each way, which can hand on its output in fewer bits (`norm.h`).

Shapes: N rows, D features, P partial sums of the parameters' gradients.
"""

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transduce.kernels.native import kernel
from transduce.kernels.native.layout import ROWS
from transduce.kernels.native.tensors import serves


def can_norm(x: Tensor, gain_D: Tensor, bias_D: Tensor) -> bool:
    return serves(x, gain_D, bias_D) and all(each.dtype is torch.float32 for each in (x, gain_D, bias_D))


def layer_norm(x: Tensor, gain_D: Tensor, bias_D: Tensor, epsilon: float, dtype: torch.dtype) -> Tensor:
    """(x - mean) / sqrt(var + epsilon) g + b over the last dimension, in fp32, handed on as `dtype`."""
    if not torch.is_grad_enabled():
        return _norm(x.contiguous(), gain_D.contiguous(), bias_D.contiguous(), epsilon, dtype)[0]
    normed: Tensor = _LayerNorm.apply(x, gain_D, bias_D, epsilon, dtype)  # type: ignore[no-untyped-call]
    return normed


def _norm(x: Tensor, gain_D: Tensor, bias_D: Tensor, epsilon: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The normed x, and (2, N) the rows' means and inverse standard deviations."""
    rows, width = math.prod(x.shape[:-1]), x.shape[-1]
    y, found_2N = torch.empty_like(x, dtype=dtype), x.new_empty(2, rows)
    kernel("layer_norm", dtype)(x, gain_D, bias_D, y, *found_2N, rows, width, epsilon)
    return y, found_2N


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, gain_D: Tensor, bias_D: Tensor, epsilon: float, dtype: torch.dtype) -> Tensor:
        x, gain_D, bias_D = x.contiguous(), gain_D.contiguous(), bias_D.contiguous()
        y, found_2N = _norm(x, gain_D, bias_D, epsilon, dtype)
        ctx.save_for_backward(x, gain_D, *found_2N)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        x, gain_D, mean_N, inverse_N = ctx.saved_tensors
        dy, dx, rows = dy.contiguous(), torch.empty_like(x), len(mean_N)
        dgain_PD, dbias_PD = x.new_empty(2, -(-rows // ROWS), x.shape[-1])
        tensors = (dy, x, gain_D, mean_N, inverse_N, dx, dgain_PD, dbias_PD)
        kernel("layer_norm_gradient", dy.dtype)(*tensors, rows, x.shape[-1])
        return dx, dgain_PD.sum(0), dbias_PD.sum(0), None, None
