"""Label-smoothed cross-entropy, its loss and its gradient one pass each over the logits (`cross_entropy.h`).

Shapes: N predicted positions, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transduce.kernels.native import kernel
from transduce.kernels.native.tensors import serves


def can_compare(logits_NV: Tensor) -> bool:
    return serves(logits_NV)


def smoothed_cross_entropy(logits_NV: Tensor, target_N: Tensor, smoothing: float) -> Tensor:
    """As `transduce.layers.cross_entropy`; a negative target is none."""
    loss: Tensor = _CrossEntropy.apply(logits_NV, target_N, smoothing)  # type: ignore[no-untyped-call]
    return loss


def loss_and_gradient(logits_NV: Tensor, target_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """As `transduce.layers.cross_entropy`; the gradient stands where the logits were."""
    logits_NV, target_N = logits_NV.contiguous(), target_N.contiguous()
    loss, log_mass_N = _loss(logits_NV, target_N, smoothing)
    return loss, _gradient(logits_NV, target_N, log_mass_N, logits_NV, smoothing, 1.0)


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits_NV: Tensor, target_N: Tensor, smoothing: float) -> Tensor:
        logits_NV, target_N = logits_NV.contiguous(), target_N.contiguous()
        loss, log_mass_N = _loss(logits_NV, target_N, smoothing)
        ctx.smoothing = smoothing
        ctx.save_for_backward(logits_NV, target_N, log_mass_N)
        return loss.float()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dloss: Tensor) -> tuple[Tensor, None, None]:
        logits_NV, target_N, log_mass_N = ctx.saved_tensors
        gradient_NV = torch.empty_like(logits_NV)
        return _gradient(logits_NV, target_N, log_mass_N, gradient_NV, ctx.smoothing, dloss.item()), None, None


def _loss(logits_NV: Tensor, target_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The loss in fp64, and the log-sum-exp of each row."""
    loss_N, log_mass_N = torch.empty(len(target_N), dtype=torch.float64), torch.empty(len(target_N))
    kernel("cross_entropy", logits_NV.dtype)(logits_NV, target_N, loss_N, log_mass_N, *logits_NV.shape, smoothing)
    return loss_N.sum(), log_mass_N


def _gradient(
    logits_NV: Tensor, target_N: Tensor, log_mass_N: Tensor, to_NV: Tensor, smoothing: float, scale: float
) -> Tensor:
    """`to_NV`, which may be the logits themselves, filled with the gradient times `scale`."""
    tensors = (logits_NV, target_N, log_mass_N, to_NV)
    kernel("cross_entropy_gradient", logits_NV.dtype)(*tensors, *logits_NV.shape, smoothing, scale)
    return to_NV
