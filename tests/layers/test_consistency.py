"""The divergence of R-Drop against torch's own KL divergence, in value and gradient."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.layers.cross_entropy import CHUNK, symmetric_divergence


def by_torch(one_NV: Tensor, other_NV: Tensor, real_N: Tensor) -> Tensor:
    log_p_NV, log_q_NV = one_NV[real_N].log_softmax(-1), other_NV[real_N].log_softmax(-1)
    forth = F.kl_div(log_q_NV, log_p_NV, log_target=True, reduction="sum")
    return forth + F.kl_div(log_p_NV, log_q_NV, log_target=True, reduction="sum")


@pytest.mark.parametrize("positions", [1, CHUNK, 2 * CHUNK + 3])
def test_it_equals_torch_in_value_and_gradient(positions: int) -> None:
    torch.manual_seed(positions)
    one_NV, other_NV = (torch.randn(positions, 17, requires_grad=True) for _ in range(2))
    real_N = torch.rand(positions) < 0.7
    ours, theirs = symmetric_divergence(one_NV, other_NV, real_N), by_torch(one_NV, other_NV, real_N)
    torch.testing.assert_close(ours, theirs)
    for mine, reference in zip(
        torch.autograd.grad(3 * ours, (one_NV, other_NV)),
        torch.autograd.grad(3 * theirs, (one_NV, other_NV)),
        strict=True,
    ):
        torch.testing.assert_close(mine, reference, atol=1e-6, rtol=1e-4)


def test_equal_predictions_are_not_apart() -> None:
    logits_NV = torch.randn(5, 9, requires_grad=True)
    divergence = symmetric_divergence(logits_NV, logits_NV.detach().clone(), torch.ones(5, dtype=torch.bool))
    assert divergence == 0
    assert not torch.autograd.grad(divergence, logits_NV)[0].any()


def test_logits_in_bf16_are_compared_in_fp32() -> None:
    torch.manual_seed(1)
    one_NV, other_NV = torch.randn(40, 30).bfloat16(), torch.randn(40, 30).bfloat16()
    real_N = torch.ones(40, dtype=torch.bool)
    torch.testing.assert_close(
        symmetric_divergence(one_NV, other_NV, real_N), by_torch(one_NV.float(), other_NV.float(), real_N)
    )
