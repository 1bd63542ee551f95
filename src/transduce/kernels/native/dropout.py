"""Dropout that remembers its seed instead of its mask, alone and with a residual connection (`dropout.h`)."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transduce.kernels.native import kernel
from transduce.kernels.native.tensors import serves


def can_drop(f: Tensor, x: Tensor | None = None) -> bool:
    """Whether `dropped` takes f, or `add_dropped` x and f."""
    return serves(f, x) and (x is None or (x.dtype is torch.float32 and x.shape == f.shape))


def dropped(f: Tensor, threshold: int) -> Tensor:
    """f with the elements at 0 whose random byte is less than `threshold`, the rest scaled so that the mean stays."""
    result: Tensor = _Dropped.apply(f, threshold)  # type: ignore[no-untyped-call]
    return result


def add_dropped(x: Tensor, f: Tensor, threshold: int) -> Tensor:
    """x + dropped(f), in fp32; of one shape."""
    result: Tensor = _AddDropped.apply(x, f, threshold)  # type: ignore[no-untyped-call]
    return result


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, f: Tensor, threshold: int) -> Tensor:
        ctx.drawn = threshold, _seed()
        return _drop(f, f.dtype, *ctx.drawn)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, None]:
        return _drop(dy, dy.dtype, *ctx.drawn), None


class _AddDropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, f: Tensor, threshold: int) -> Tensor:
        ctx.drawn, ctx.type = (threshold, _seed()), f.dtype
        x, f = x.contiguous(), f.contiguous()
        y = torch.empty_like(x)
        kernel("add_dropped", f.dtype)(x, f, y, x.numel(), *ctx.drawn)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        return dy, _drop(dy, ctx.type, *ctx.drawn), None


def _drop(f: Tensor, dtype: torch.dtype, threshold: int, seed: int) -> Tensor:
    f = f.contiguous()
    y = torch.empty_like(f, dtype=dtype)
    kernel("dropped", dtype, f.dtype)(f, y, f.numel(), threshold, seed)
    return y


def _seed() -> int:
    """From torch's global generator."""
    return int(torch.empty((), dtype=torch.int64).random_())
