"""Rotary positions: queries or keys turned in one pass (`rotary.h`).

Shapes: B batch, H heads, T positions, E width of a head.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transduce.kernels.native import kernel
from transduce.kernels.native.tensors import serves


def can_turn(x_BHTE: Tensor) -> bool:
    return serves(x_BHTE)


def turned(x_BHTE: Tensor, turn_TE: Tensor) -> Tensor:
    """x, each pair of its elements turned by its position's angle, of which `turn_TE` holds cosine and sine in turn.

    Args:
        turn_TE: fp32.
    """
    result: Tensor = _Turned.apply(x_BHTE, turn_TE)  # type: ignore[no-untyped-call]
    return result


class _Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_BHTE: Tensor, turn_TE: Tensor) -> Tensor:
        ctx.turn_TE = turn_TE.contiguous()
        return _turn(x_BHTE, ctx.turn_TE, back=False)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy_BHTE: Tensor) -> tuple[Tensor, None]:
        return _turn(dy_BHTE, ctx.turn_TE, back=True), None


def _turn(x_BHTE: Tensor, turn_TE: Tensor, back: bool) -> Tensor:
    x_BHTE = x_BHTE if x_BHTE.stride(-1) == 1 else x_BHTE.contiguous()
    batch, heads, positions, width = x_BHTE.shape
    y_BTHE = x_BHTE.new_empty(batch, positions, heads, width)  # a position's heads side by side, as products have them
    kernel("turned", x_BHTE.dtype)(
        x_BHTE,
        *(x_BHTE.stride(axis) for axis in (0, 2, 1)),
        turn_TE,
        y_BTHE,
        batch,
        positions,
        heads,
        width,
        int(back),
    )
    return y_BTHE.transpose(1, 2)
