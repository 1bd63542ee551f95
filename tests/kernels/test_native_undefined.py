"""Kernels do nothing that C++ leaves undefined, on numbers of every size; and in 8 bits NaN stays NaN."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from transduce.kernels.matmul import Int8
from transduce.kernels.native.linear import Packed
from transduce.kernels.native.tensors import can_pack

FOLDER = Path(__file__).parents[2] / "src/transduce/kernels/native"
EMPTY = "int main() { return 0; }"
PROGRAM = """
#include "linear.h"
#include "top.h"

using namespace transduce;

int main() {
    volatile float sum = 0;
    for (float x = -200; x <= 88; x += 0.25f) sum = sum + exponential(x);
    for (float x : {-INFINITY, -87.0f, -0.0f, 0.0f, 1e-45f}) sum = sum + exponential(x);
    const float extremes[] = {0.0f, 1.0f, -1.0f, 1e-45f, 1e-38f, 3e38f, -3e38f, INFINITY, -INFINITY, NAN};
    for (float x : extremes) {
        float row[8] = {x, x, 0, 0, 0, 0, 0, 0}, scale[1], log_probability[8];
        std::uint8_t whole[8];
        quantise(row, 1, 8, 8, whole, scale);
        std::int8_t panels[2 * 4 * DEEP] = {};
        std::int32_t above[1];
        pack_whole(row, 1, 8, panels, scale, above);
        std::copy(row, row + 8, log_probability);
        log_softmax(log_probability, 1, 8);
        sum = sum + log_probability[0];
    }
    return 0;
}
"""


def compiled(program: str, folder: Path) -> Path | None:
    """`program` with checks for what is undefined; None where that cannot be compiled here."""
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        return None
    (folder / "program.cpp").write_text(program)
    checks = ["-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all"]
    command = [compiler, "-std=c++17", "-O1", "-fopenmp-simd", *checks, f"-I{FOLDER}", "program.cpp", "-o", "program"]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return folder / "program" if done.returncode == 0 else None


def test_no_number_is_undefined(tmp_path: Path) -> None:
    if compiled(EMPTY, tmp_path) is None:
        pytest.skip("no C++ compiler that checks for undefined behaviour")
    program = compiled(PROGRAM, tmp_path)
    assert program is not None
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_in_8_bits_what_is_not_finite_shows(wrong: float) -> None:
    torch.manual_seed(1)
    weight_OI, x_NI = torch.randn(70, 20), torch.randn(12, 20)
    for product in (Packed, Int8):
        if product is Packed and not can_pack(weight_OI, int8=True):
            continue
        make = (lambda weight: Packed(weight, None, True)) if product is Packed else Int8
        sound_NO, (broken_NI, broken_OI) = make(weight_OI)(x_NI), (x_NI.clone(), weight_OI.clone())
        broken_NI[3, 5] = broken_OI[7, 2] = wrong
        by_row_NO, by_column_NO = make(weight_OI)(broken_NI), make(broken_OI)(x_NI)
        assert not by_row_NO[3].isfinite().any()
        assert not by_column_NO[:, 7].isfinite().any()
        rows, columns = torch.arange(12) != 3, torch.arange(70) != 7
        assert torch.equal(by_row_NO[rows], sound_NO[rows]), "other rows are as they were"
        assert torch.equal(by_column_NO[:, columns], sound_NO[:, columns]), "other columns are as they were"
