"""8-bit products against their equation, in whole numbers."""

import os
import subprocess
import sys

import pytest
import torch

from transduce.core.errors import InputError
from transduce.kernels.matmul import Int8, Linear

pytestmark = pytest.mark.skipif(
    torch.cpu.get_capabilities().get("architecture") != "x86_64", reason="8-bit products are for x86 processors"
)


def rounded(x_NI: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Whole numbers of at most 127, and what one of them stands for, row by row."""
    scale_N1 = x_NI.abs().amax(1, keepdim=True).clamp(min=1e-30) / 127
    return (x_NI / scale_N1).round().to(torch.int64), scale_N1


@pytest.mark.parametrize("bias", [True, False])
def test_the_product_is_the_equation(bias: bool) -> None:
    torch.manual_seed(1)
    x_NI, weight_OI = torch.randn(37, 96) * torch.logspace(-3, 3, 37)[:, None], torch.randn(50, 96)
    x_NI[5] = 0
    bias_O = torch.randn(50) if bias else None
    (whole_NI, scale_N1), (whole_OI, scale_O1) = rounded(x_NI), rounded(weight_OI)
    expected_NO = (whole_NI @ whole_OI.T) * scale_N1.double() * scale_O1.T.double()
    expected_NO = expected_NO if bias_O is None else expected_NO + bias_O
    found_NO = Int8(weight_OI, bias_O)(x_NI)
    # A number half-way between two whole ones may go to either: one step of one input, times one weight.
    step_N1 = scale_N1 * 127 * scale_O1.max()
    assert ((found_NO - expected_NO).abs() <= step_N1 + 1e-5).all()
    assert ((found_NO - expected_NO).abs() > 1e-4 * step_N1 + 1e-5).double().mean() < 0.05
    exact_NO = x_NI @ weight_OI.T + (0 if bias_O is None else bias_O)
    assert ((found_NO - exact_NO).norm(dim=1) <= 0.02 * exact_NO.norm(dim=1) + 1e-5).all()


def test_a_row_is_the_same_in_any_batch() -> None:
    torch.manual_seed(2)
    product = Int8(torch.randn(300, 64))
    x_NI = torch.randn(130, 64) * torch.logspace(-2, 2, 130)[:, None]
    together_NO = product(x_NI)
    for row in (0, 7, 129):
        assert torch.equal(product(x_NI[row : row + 1])[0], together_NO[row])
    assert torch.equal(product(x_NI.flip(0)).flip(0), together_NO)


def test_a_layer_packed_in_8_bits() -> None:
    torch.manual_seed(3)
    layer = Linear(256, 512)
    x_BTI = torch.randn(4, 32, 256)
    with torch.inference_mode():
        exact_BTO = layer(x_BTI)
        layer.pack("int8")
        found_BTO = layer(x_BTI)
    difference = float((found_BTO - exact_BTO).norm() / exact_BTO.norm())
    assert 0 < difference < 0.02


@pytest.mark.parametrize(
    "instructions",
    [pytest.param("SSE41", marks=pytest.mark.slow), "AVX2", pytest.param("AVX512_CORE", marks=pytest.mark.slow)],
)
def test_it_is_as_exact_on_processors_without_vnni(instructions: str) -> None:
    code = """
import torch
from transduce.kernels.matmul import Int8
torch.manual_seed(3)
x_NI, weight_OI = torch.randn(33, 256).abs(), torch.randn(64, 256).abs()  # sums as great as can be
for rows in (1, 33):
    exact_NO = x_NI[:rows] @ weight_OI.T
    print(float((Int8(weight_OI)(x_NI[:rows]) - exact_NO).norm() / exact_NO.norm()))
"""
    without = {**os.environ, "ONEDNN_MAX_CPU_ISA": instructions}
    done = subprocess.run([sys.executable, "-c", code], env=without, capture_output=True, text=True, check=True)
    assert all(float(line) < 0.005 for line in done.stdout.split())


def test_no_8_bits_elsewhere() -> None:
    with pytest.raises(InputError, match="x86"):
        Int8(torch.empty(4, 4, device="meta"))
