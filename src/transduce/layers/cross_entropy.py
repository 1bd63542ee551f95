"""Cross-entropy with label smoothing, which computes its gradient in the same pass over the logits.

Shapes: N predicted positions, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from transduce.kernels.native import cross_entropy as native

CHUNK = 64  # rows at a time: 64 x 8,000 fp32 logits stay in the processor's cache


IGNORED = -1  # the target of a position that is not predicted, such as padding


def smoothed_cross_entropy(logits_NV: Tensor, target_N: Tensor, smoothing: float = 0.0) -> Tensor:
    """The sum over N of the label-smoothed cross-entropy (Szegedy et al. 2016, section 7), a scalar in nats.

        loss = -(1 - e) log p(y) - e / V * sum_v log p(v)

    It is computed in fp32 for any dtype of the logits. Its backward can run only once.

    Args:
        logits_NV: the logits.
        target_N: int64 target ids. Positions whose target is `IGNORED` add nothing and get no gradient.
        smoothing: e.
    """
    if native.can_compare(logits_NV):
        return native.smoothed_cross_entropy(logits_NV, target_N, smoothing)
    loss: Tensor = _SmoothedCrossEntropy.apply(logits_NV, target_N, smoothing)  # type: ignore[no-untyped-call]
    return loss


def loss_and_gradient(logits_NV: Tensor, target_N: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """`smoothed_cross_entropy` in fp64 and its gradient (N, V), which may overwrite the logits."""
    if native.can_compare(logits_NV):
        return native.loss_and_gradient(logits_NV, target_N, smoothing)
    return _in_chunks(logits_NV, target_N, smoothing)


def _in_chunks(logits_NV: Tensor, target_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    total = torch.zeros((), dtype=torch.float64, device=logits_NV.device)
    gradient_NV = torch.empty_like(logits_NV)
    for start in range(0, len(logits_NV), CHUNK):
        rows = slice(start, start + CHUNK)
        loss, gradient_NV[rows] = _loss_and_gradient(logits_NV[rows].float(), target_N[rows, None], smoothing)
        total += loss
    return total, gradient_NV


class _SmoothedCrossEntropy(torch.autograd.Function):
    """d loss / d logits = softmax(logits) - (1 - e) onehot(y) - e / V."""

    @staticmethod
    def forward(ctx: Any, logits_NV: Tensor, target_N: Tensor, smoothing: float) -> Tensor:
        total, gradient_NV = _in_chunks(logits_NV, target_N, smoothing)
        ctx.save_for_backward(gradient_NV)
        return total.float()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient_NV,) = ctx.saved_tensors
        return gradient_NV.mul_(gradients[0]), None, None


def _loss_and_gradient(logits_NV: Tensor, target_N1: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The loss of these rows, summed, and its gradient (N, V)."""
    real_N1 = target_N1 != IGNORED
    target_N1 = target_N1.clamp(min=0)
    highest_N1 = logits_NV.amax(1, keepdim=True)
    shifted_NV = logits_NV - highest_N1
    right_N1 = shifted_NV.gather(1, target_N1)
    mean_N1 = shifted_NV.mean(1, keepdim=True)
    probability_NV = shifted_NV.exp_()
    mass_N1 = probability_NV.sum(1, keepdim=True)
    loss_N1 = mass_N1.log() - (1 - smoothing) * right_N1 - smoothing * mean_N1
    gradient_NV = probability_NV.div_(mass_N1).sub_(smoothing / logits_NV.shape[1])
    gradient_NV.scatter_add_(1, target_N1, torch.full_like(right_N1, smoothing - 1))
    return (loss_N1 * real_N1).sum(dtype=torch.float64), gradient_NV.mul_(real_N1)
