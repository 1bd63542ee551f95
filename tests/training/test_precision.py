"""`auto` takes the precision that is the faster one where it runs."""

import pytest
import torch

from transduce.kernels.cpu import bf16_is_faster, capabilities, foreign_x86
from transduce.training.precision import resolve_precision

INTEL = {"architecture": "x86_64", "cpu_name": "Intel(R) Xeon(R) Processor"}
AMD = {"architecture": "x86_64", "cpu_name": "AMD EPYC 9B45"}


@pytest.mark.parametrize(
    ("processor", "faster"),
    [
        (INTEL, False),
        (INTEL | {"avx512_bf16": True}, False),
        (INTEL | {"avx512_bf16": True, "amx_bf16": True}, True),
        (AMD, False),
        (AMD | {"avx512_bf16": True}, True),
        ({"architecture": "aarch64"}, False),
    ],
)
def test_bf16_is_faster_by_matrix_tiles_and_by_dot_products_of_amd_alone(processor, faster):
    assert bf16_is_faster(processor) is faster


def test_auto_is_what_this_processor_multiplies_faster():
    expected = "bf16" if bf16_is_faster(capabilities()) else "fp32"
    assert resolve_precision("auto", torch.device("cpu")) == expected


@pytest.mark.parametrize("wanted", ["fp32", "bf16"])
def test_what_is_asked_for_stays(wanted):
    assert resolve_precision(wanted, torch.device("cpu")) == wanted


def test_arm_is_no_x86_of_anybody():
    assert not foreign_x86({"architecture": "aarch64"})
    assert foreign_x86(AMD) and not foreign_x86(INTEL)
