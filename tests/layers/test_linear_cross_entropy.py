"""The loss that never holds all logits, against torch's of all of them."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.layers.cross_entropy import IGNORED, ROUND, ROWS, linear_cross_entropy

pytestmark = pytest.mark.usefixtures("either_way")


def drawn(rows: int, words: int = 37, width: int = 8) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(rows)
    hidden_ND, weight_VD = torch.randn(rows, width), torch.randn(words, width)
    target_N = torch.randint(words, (rows,))
    target_N[torch.rand(rows) < 0.3] = IGNORED
    return hidden_ND.requires_grad_(), weight_VD.requires_grad_(), target_N


def gradients(loss: Tensor, *wanted: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(0.37 * loss, wanted)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("rows", [0, 1, ROUND + 1, ROWS - 1, ROWS, ROWS + 1, 2 * ROWS + 3])
def test_value_and_gradients_equal_torchs(rows: int, smoothing: float) -> None:
    hidden_ND, weight_VD, target_N = drawn(rows)
    loss = linear_cross_entropy(hidden_ND, weight_VD, target_N, smoothing)
    exact_ND, exact_VD = hidden_ND.detach().double().requires_grad_(), weight_VD.detach().double().requires_grad_()
    settings = {"ignore_index": IGNORED, "label_smoothing": smoothing}
    expected = F.cross_entropy(exact_ND @ exact_VD.T, target_N, reduction="sum", **settings)  # type: ignore[arg-type]
    torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-5)
    found, wanted = gradients(loss, hidden_ND, weight_VD), gradients(expected, exact_ND, exact_VD)
    for mine, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine.double(), right, rtol=1e-4, atol=1e-4)


def test_under_autocast_it_is_as_near_as_bf16_allows() -> None:
    hidden_ND, weight_VD, target_N = drawn(ROWS + 100, words=300, width=64)
    with torch.autocast("cpu", torch.bfloat16):
        loss = linear_cross_entropy(hidden_ND, weight_VD, target_N, 0.1)
        logits_NV = hidden_ND @ weight_VD.T
    assert logits_NV.dtype is torch.bfloat16
    settings = {"ignore_index": IGNORED, "label_smoothing": 0.1}
    expected = F.cross_entropy(logits_NV.float(), target_N, reduction="sum", **settings)  # type: ignore[arg-type]
    torch.testing.assert_close(loss, expected, rtol=1e-4, atol=0)
    found, wanted = gradients(loss, hidden_ND, weight_VD), gradients(expected, hidden_ND, weight_VD)
    for mine, right in zip(found, wanted, strict=True):
        assert mine.dtype is torch.float32
        assert float((mine - right).norm() / right.norm()) < 2**-7


def test_without_a_gradient_it_is_the_loss_alone() -> None:
    hidden_ND, weight_VD, target_N = drawn(ROWS + 5)
    with torch.no_grad():
        loss = linear_cross_entropy(hidden_ND, weight_VD, target_N, 0.1)
    assert not loss.requires_grad
    torch.testing.assert_close(loss, linear_cross_entropy(hidden_ND, weight_VD, target_N, 0.1).detach())


def test_only_what_is_asked_for_gets_a_gradient() -> None:
    hidden_ND, weight_VD, target_N = drawn(10)
    frozen_VD = weight_VD.detach()
    (alone,) = gradients(linear_cross_entropy(hidden_ND, frozen_VD, target_N), hidden_ND)
    (both, _) = gradients(linear_cross_entropy(hidden_ND, weight_VD, target_N), hidden_ND, weight_VD)
    assert torch.equal(alone, both)


def test_its_memory_grows_with_rows_and_words_but_not_with_their_product() -> None:
    def largest(rows: int) -> int:
        hidden_ND, weight_VD, target_N = drawn(rows, words=500)
        with torch.profiler.profile(profile_memory=True) as profile:
            linear_cross_entropy(hidden_ND, weight_VD, target_N, 0.1).backward()
        events = profile.profiler.kineto_results.events()  # type: ignore[union-attr]
        return max(event.nbytes() for event in events if event.name() == "[memory]")

    sizes = [largest(ROWS * times) for times in (1, 2, 4)]
    for fewer, more in pairwise(sizes):
        assert more <= 2 * fewer
    assert sizes[-1] < 4 * ROWS * 500 * 4
