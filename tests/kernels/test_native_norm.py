"""The kernel for layer norm, against torch's in fp64."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.kernels.native import norm as native

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


def test_bf16_is_rounded_as_torch_rounds_it() -> None:
    # A gain of 0 hands on the biases. Halfway between two numbers of bf16, above an even and above an odd one; the
    # least bit beside it; what rounds up into the next power of two, and to infinity; signs; numbers of all sizes.
    bits = torch.tensor([0x3F80_8000, 0x3F81_8000, 0x3F80_7FFF, 0x3F80_8001, 0x3F81_7FFF, 0x3FFF_8000, 0x7F7F_FFFF])
    torch.manual_seed(0)
    exact_D = torch.cat((bits.int().view(torch.float32), torch.randn(200) * torch.logspace(-30, 30, 200)))
    exact_D = torch.cat((exact_D, -exact_D))
    x, gain_D = torch.randn(3, len(exact_D)), torch.zeros(len(exact_D))
    rounded = native.layer_norm(x, gain_D, exact_D, 1e-5, torch.bfloat16)
    assert torch.equal(rounded.view(torch.int16), exact_D.bfloat16().view(torch.int16).expand(3, -1))


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
