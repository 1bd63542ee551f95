"""The output layer's product and the cross-entropy together, a few hundred rows at a time. All logits are never held.

The gradient is computed in the same pass, while the logits are in the processor's cache. What is stored for the
backward pass has the size of the hidden states and of the matrix.

Shapes: N predicted positions, D width, V vocabulary.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from transduce.kernels.matmul import linear
from transduce.layers.cross_entropy import IGNORED, loss_and_gradient, smoothed_cross_entropy

ROWS = 512  # rows of logits at a time on a CPU: of 8,000 words in bf16 8 MB
ELEMENTS = 2**26  # logits at a time elsewhere
ROUND = 64  # on a CPU in bf16 rows come in multiples of this: oneDNN makes a program for each number that it meets


def linear_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, smoothing: float = 0.0, bias_V: Tensor | None = None
) -> Tensor:
    """`smoothed_cross_entropy(hidden_ND @ weight_VD.T + bias_V, target_N, smoothing)`, a scalar in nats.

    Under autocast, products use its dtype and sums use fp32. Its backward can run only once, and gives no gradient for
    the bias.

    Args:
        hidden_ND: hidden states.
        weight_VD: the matrix of the output layer.
        target_N: int64 target ids; `IGNORED` positions add nothing.
        smoothing: label smoothing.
        bias_V: added to the logits; None = no bias.
    """
    device = hidden_ND.device.type
    lower = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden_ND.dtype
    loss: Tensor = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden_ND, weight_VD, target_N, smoothing, None if bias_V is None else bias_V.to(lower), lower
    )
    return loss


class _LinearCrossEntropy(torch.autograd.Function):
    """With G = d loss / d logits:   d hidden = G W,   d W = G^T hidden."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        target_N: Tensor,
        smoothing: float,
        bias_V: Tensor | None,
        lower: torch.dtype,
    ) -> Tensor:
        given = hidden_ND.to(lower), weight_VD.to(lower), target_N, smoothing, bias_V
        with torch.autocast(hidden_ND.device.type, enabled=False):
            if not any(ctx.needs_input_grad[:2]):
                return _loss(*given)
            total, *gradients = _loss_and_gradients(*given)
        ctx.save_for_backward(*gradients)
        ctx.dtypes = hidden_ND.dtype, weight_VD.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dloss: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        dhidden_ND, dweight_VD = (
            each.mul_(dloss).to(to) for each, to in zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        )
        return dhidden_ND, dweight_VD, None, None, None, None


def _loss(hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, smoothing: float, bias_V: Tensor | None) -> Tensor:
    rows = _rows(weight_VD)
    total = torch.zeros((), dtype=torch.float64, device=hidden_ND.device)
    for some_CD, target_C in zip(torch.split(hidden_ND, rows), torch.split(target_N, rows), strict=True):
        total += smoothed_cross_entropy(linear(some_CD, weight_VD, bias_V), target_C, smoothing)
    return total.float()


def _loss_and_gradients(
    hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, smoothing: float, bias_V: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss, and its gradients for the hidden states (in their dtype) and the matrix (in fp32)."""
    rows, count = _rows(weight_VD), len(hidden_ND)
    if more := -count % ROUND if hidden_ND.dtype is torch.bfloat16 and hidden_ND.device.type == "cpu" else 0:
        hidden_ND, target_N = F.pad(hidden_ND, (0, 0, 0, more)), F.pad(target_N, (0, more), value=IGNORED)
    total = torch.zeros((), dtype=torch.float64, device=hidden_ND.device)
    dhidden: list[Tensor] = []
    dweight_VD: Tensor | None = None
    for some_CD, target_C in zip(torch.split(hidden_ND, rows), torch.split(target_N, rows), strict=True):
        loss, gradient_CV = loss_and_gradient(linear(some_CD, weight_VD, bias_V), target_C, smoothing)
        total += loss
        dhidden.append(linear(gradient_CV, weight_VD.T))
        part_VD = linear(gradient_CV.T, some_CD.T)
        dweight_VD = part_VD.float() if dweight_VD is None else dweight_VD.add_(part_VD)
    assert dweight_VD is not None
    return total.float(), (torch.cat(dhidden) if len(dhidden) > 1 else dhidden[0])[:count], dweight_VD


def _rows(weight_VD: Tensor) -> int:
    return ROWS if weight_VD.device.type == "cpu" else max(ROWS, ELEMENTS // len(weight_VD))
