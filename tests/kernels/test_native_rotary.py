"""Rotary positions in one pass, against the same by torch's operators in fp64."""

import pytest
import torch
from torch import Tensor

from transduce.attention.positions import rotate
from transduce.attention.relative import Rotary
from transduce.kernels.native import left_out, rotary

pytestmark = pytest.mark.usefixtures("kernels")
SHAPES = [(1, 1, 1, 2), (3, 4, 7, 8), (2, 3, 70, 6), (5, 2, 1, 32)]  # B, H, T, E


def heads_of(shape: tuple[int, int, int, int], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """A projection's output (B, T, 3 H E), and of it the heads in the middle as attention sees them."""
    batch, heads, positions, width = shape
    torch.manual_seed(positions)
    both = torch.randn(batch, positions, 3 * heads * width, dtype=dtype, requires_grad=True)
    return both, both.chunk(3, -1)[1].unflatten(-1, (heads, width)).transpose(1, 2)


@pytest.mark.parametrize("offset", [0, 1, 90])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_turned_and_its_gradient(shape: tuple[int, int, int, int], dtype: torch.dtype, offset: int) -> None:
    both, x_BHTE = heads_of(shape, dtype)
    found_BHTE = Rotary(shape[1], shape[3], causal=False).turn(x_BHTE, offset)
    expected_BHTE = rotate(x_BHTE.double(), offset)
    assert found_BHTE.dtype is dtype
    tolerance = {"rtol": 1e-5, "atol": 1e-6} if dtype is torch.float32 else {"rtol": 2**-8, "atol": 2**-8}
    torch.testing.assert_close(found_BHTE.double(), expected_BHTE, **tolerance)
    weight_BHTE = torch.randn(shape, dtype=dtype)
    (found,) = torch.autograd.grad(found_BHTE, both, weight_BHTE)
    (expected,) = torch.autograd.grad(expected_BHTE, both, weight_BHTE.double())
    torch.testing.assert_close(found.double(), expected.double(), **tolerance)
    assert found.abs().sum() > 0


def test_a_gradient_in_any_layout() -> None:
    both, x_BHTE = heads_of((3, 4, 7, 8), torch.float32)
    turned = rotary.turned(x_BHTE, Rotary(4, 8, causal=False).turns(7)[:7])
    weight = torch.randn(8, 7, 4, 3).permute(3, 2, 1, 0)
    (found,) = torch.autograd.grad(turned, both, weight)
    (expected,) = torch.autograd.grad(rotate(x_BHTE), both, weight)
    torch.testing.assert_close(found, expected)


def test_without_kernels_it_is_the_same() -> None:
    _, x_BHTE = heads_of((3, 4, 7, 8), torch.float32)
    positions = Rotary(4, 8, causal=True)
    with left_out():
        torch.testing.assert_close(positions.turn(x_BHTE, 3), rotate(x_BHTE, 3), rtol=0, atol=0)
    torch.testing.assert_close(positions.turn(x_BHTE, 3), rotate(x_BHTE, 3))


def test_the_table_is_long_enough_and_of_use_in_training_wherever_it_was_first_asked_for() -> None:
    with torch.inference_mode():
        first = Rotary(1, 10, causal=False).turns(1000)
    assert first.shape[0] >= 1000 and not first.is_inference()
    torch.testing.assert_close(first[:64], Rotary(1, 10, causal=False).turns(1))
