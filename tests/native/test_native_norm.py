"""The kernel for layer norm, against torch's in fp64."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.native import norm as native

pytestmark = pytest.mark.usefixtures("kernels")


@pytest.mark.parametrize("to", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(1, 1, 3), (4, 7, 16), (1, 127, 33), (3, 128, 20), (5, 77, 256), (0, 4, 8)])
def test_output_and_gradients_equal_torchs(shape: tuple[int, int, int], to: torch.dtype) -> None:
    torch.manual_seed(sum(shape))
    values = 5 + 3 * torch.randn(shape), torch.randn(shape[-1]), torch.randn(shape[-1])
    ours = [each.clone().requires_grad_() for each in values]
    theirs = [each.double().requires_grad_() for each in values]
    normed = native.layer_norm(*ours, 1e-5, to)
    expected = F.layer_norm(theirs[0], shape[-1:], *theirs[1:], 1e-5)
    incoming = torch.randn(shape).to(to)
    normed.backward(incoming)
    expected.backward(incoming.double())
    assert normed.dtype is to
    rounding = 1e-5 if to is torch.float32 else 2**-8
    torch.testing.assert_close(normed.double(), expected, rtol=rounding, atol=rounding)
    for our, their in zip(ours, theirs, strict=True):
        assert our.grad is not None
        torch.testing.assert_close(our.grad.double(), their.grad, rtol=1e-4, atol=1e-4)


def test_rows_do_not_know_each_other_and_threads_change_nothing() -> None:
    torch.manual_seed(0)
    x, gain, bias = torch.randn(300, 24), torch.randn(24), torch.randn(24)

    def found(rows: int) -> list[Tensor]:
        given = [each.clone().requires_grad_() for each in (x[:rows], gain, bias)]
        normed = native.layer_norm(*given, 1e-5, torch.float32)
        normed.square().sum().backward()
        return [normed, *(each.grad for each in given if each.grad is not None)]

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = found(300)
        assert torch.equal(found(7)[0], alone[0][:7])
        torch.set_num_threads(3)
        assert all(map(torch.equal, alone, found(300)))
    finally:
        torch.set_num_threads(threads)
