"""The loss with its own gradient against torch's."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.layers.cross_entropy import CHUNK, IGNORED, smoothed_cross_entropy

pytestmark = pytest.mark.usefixtures("either_way")


def both(logits_NV: Tensor, target_N: Tensor, smoothing: float, weight: float = 1.0) -> list[tuple[Tensor, Tensor]]:
    """(loss, gradient) of ours and of torch's, each times `weight`."""
    ours = logits_NV.detach().clone().requires_grad_()
    theirs = logits_NV.detach().clone().requires_grad_()
    our_loss = smoothed_cross_entropy(ours, target_N, smoothing)
    their_loss = F.cross_entropy(
        theirs.float(), target_N, ignore_index=IGNORED, label_smoothing=smoothing, reduction="sum"
    )
    (our_loss * weight).backward()
    (their_loss * weight).backward()
    assert ours.grad is not None
    assert theirs.grad is not None
    return [(our_loss, ours.grad), (their_loss, theirs.grad)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("rows", [1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 2 * CHUNK + 3])
def test_value_and_gradient_equal_torchs(rows: int, smoothing: float) -> None:
    torch.manual_seed(rows)
    logits_NV = 5 * torch.randn(rows, 11)
    target_N = torch.randint(11, (rows,))
    target_N[torch.rand(rows) < 0.3] = IGNORED
    (loss, gradient_NV), (expected, expected_NV) = both(logits_NV, target_N, smoothing, weight=0.37)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient_NV, expected_NV, rtol=1e-4, atol=1e-6)
    assert (gradient_NV[target_N == IGNORED] == 0).all()


def test_bf16_logits_lose_nothing_but_the_rounding_of_their_gradient() -> None:
    torch.manual_seed(0)
    logits_NV = (3 * torch.randn(CHUNK + 6, 50)).bfloat16()
    target_N = torch.randint(50, (CHUNK + 6,))
    (loss, gradient_NV), (expected, expected_NV) = both(logits_NV, target_N, 0.1)
    assert loss.dtype == torch.float32
    assert gradient_NV.dtype == torch.bfloat16
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient_NV, expected_NV, rtol=2**-7, atol=1e-4)


def test_nothing_to_predict_costs_nothing() -> None:
    logits_NV = torch.randn(5, 7, requires_grad=True)
    loss = smoothed_cross_entropy(logits_NV, torch.full((5,), IGNORED), 0.1)
    loss.backward()
    assert loss.item() == 0
    assert logits_NV.grad is not None
    assert (logits_NV.grad == 0).all()
    assert smoothed_cross_entropy(torch.empty(0, 7), torch.empty(0, dtype=torch.int64)).item() == 0


def test_the_formula_by_hand() -> None:
    logits_NV = torch.tensor([[0.5, 0.25, 0.25]]).log()
    right, wrong = torch.tensor(0.5).log(), torch.tensor(0.25).log()
    torch.testing.assert_close(smoothed_cross_entropy(logits_NV, torch.tensor([0])), -right)
    smoothed = -(0.9 * right + 0.1 / 3 * (right + 2 * wrong))
    torch.testing.assert_close(smoothed_cross_entropy(logits_NV, torch.tensor([0]), 0.1), smoothed)


def test_huge_logits_stay_finite() -> None:
    (loss, gradient_NV), (expected, expected_NV) = both(torch.tensor([[1e4, -1e4, 0.0]]), torch.tensor([1]), 0.1)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(gradient_NV, expected_NV)


def test_the_logits_are_left_as_they_were() -> None:
    logits_NV = torch.randn(3, 5)
    before_NV = logits_NV.clone()
    smoothed_cross_entropy(logits_NV, torch.tensor([0, 1, IGNORED]), 0.1)
    assert torch.equal(logits_NV, before_NV)
