"""The divergence of two predictions of the same tokens, which R-Drop minimizes (Wu et al. 2021).

Shapes: N predicted positions, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from transduce.layers.cross_entropy import CHUNK


def symmetric_divergence(one_NV: Tensor, other_NV: Tensor, real_N: Tensor) -> Tensor:
    """The sum over the real positions of KL(p || q) + KL(q || p), a scalar in nats (Wu et al. 2021, equation 2).

    p and q are the softmax of the two logits. The sum is computed in fp32 for any dtype of the logits, one chunk at a
    time, with the gradient in the same pass. Its backward can run only once.

    Args:
        one_NV: logits of p.
        other_NV: logits of q.
        real_N: bool, True = a real position.
    """
    divergence: Tensor = _SymmetricDivergence.apply(one_NV, other_NV, real_N)  # type: ignore[no-untyped-call]
    return divergence


class _SymmetricDivergence(torch.autograd.Function):
    """With d = log p - log q, the gradient of p's logits is p (d - KL(p || q)) + p - q; that of q's is symmetric."""

    @staticmethod
    def forward(ctx: Any, one_NV: Tensor, other_NV: Tensor, real_N: Tensor) -> Tensor:
        total = torch.zeros((), dtype=torch.float64, device=one_NV.device)
        one_gradient_NV, other_gradient_NV = torch.empty_like(one_NV), torch.empty_like(other_NV)
        for start in range(0, len(one_NV), CHUNK):
            rows = slice(start, start + CHUNK)
            log_p_NV = one_NV[rows].log_softmax(-1, dtype=torch.float32)
            log_q_NV = other_NV[rows].log_softmax(-1, dtype=torch.float32)
            real_N1 = real_N[rows, None]
            apart_NV = (log_p_NV - log_q_NV).mul_(real_N1)
            p_NV, q_NV = log_p_NV.exp_(), log_q_NV.exp_()
            forth_N1 = (p_NV * apart_NV).sum(-1, keepdim=True)
            back_N1 = -(q_NV * apart_NV).sum(-1, keepdim=True)
            difference_NV = (p_NV - q_NV).mul_(real_N1)
            one_gradient_NV[rows] = p_NV * (apart_NV - forth_N1) + difference_NV
            other_gradient_NV[rows] = q_NV * (-apart_NV - back_N1) - difference_NV
            total += (forth_N1 + back_N1).sum(dtype=torch.float64)
        ctx.save_for_backward(one_gradient_NV, other_gradient_NV)
        return total.float()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        one_NV, other_NV = ctx.saved_tensors
        return one_NV.mul_(gradients[0]), other_NV.mul_(gradients[0]), None
