"""Dropout (Srivastava et al. 2014) with fast random numbers.

On a CPU, torch draws one Bernoulli number per element. Here one 64-bit draw decides eight elements, one byte each. The
rate is therefore rounded to the nearest 1/256, at most 255/256, and the scale of the kept values uses the rounded rate.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.kernels.native import dropout as native


def dropout(x: Tensor, rate: float) -> Tensor:
    """x with a fraction `rate` of its elements set to 0 and the others scaled to keep the mean; any shape.

    Uses torch's global random generator. A rate of 0 returns x itself.
    """
    if rate == 0.0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, rate)
    if native.can_drop(x):
        return native.dropped(x, _threshold(rate))
    dropped: Tensor = _ByteDropout.apply(x, _threshold(rate))  # type: ignore[no-untyped-call]
    return dropped


def add_dropped(x: Tensor, f: Tensor, rate: float) -> Tensor:
    """x + dropout(f, rate), in the dtype of x: a residual connection in training."""
    if rate and native.can_drop(f, x):
        return native.add_dropped(x, f, _threshold(rate))
    return x + dropout(f, rate).to(x.dtype)


def _threshold(rate: float) -> int:
    """Bytes from here on keep an element."""
    return min(round(rate * 256), 255)


class Dropout(nn.Module):
    """`dropout` in training mode, the identity otherwise.

    Args:
        rate: the fraction of elements that are set to 0.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.rate) if self.training else x

    def extra_repr(self) -> str:
        """The rate, for the printed model."""
        return f"rate={self.rate}"


class _ByteDropout(torch.autograd.Function):
    """An element is kept when its random byte is at least `threshold`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, threshold: int) -> Tensor:
        words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= threshold
        ctx.scale = 256 / (256 - threshold)
        ctx.save_for_backward(kept)
        return (x * kept).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return (gradients[0] * kept).mul_(ctx.scale), None
