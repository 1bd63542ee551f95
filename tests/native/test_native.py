"""Which kernels are taken, and that everything works without them."""

import os
import subprocess
import sys

import pytest
import torch

import transduce.native
from transduce.native import TYPES, kernels, left_out, serves


def test_the_kernels_are_there_where_they_are_required() -> None:
    if os.environ.get("TRANSDUCE_NATIVE") != "required":
        pytest.skip("TRANSDUCE_NATIVE=required is not set: without a C++ compiler there are none")
    assert kernels() is not None


def test_off_leaves_them_out() -> None:
    code = "from transduce.native import kernels; print(kernels())"
    off = {**os.environ, "TRANSDUCE_NATIVE": "off"}
    done = subprocess.run([sys.executable, "-c", code], env=off, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


@pytest.mark.usefixtures("kernels")
def test_only_fp32_and_bf16_on_a_cpu() -> None:
    assert all(serves(torch.zeros(2, dtype=dtype), None) for dtype in TYPES)
    assert not serves(torch.zeros(2), torch.zeros(2, dtype=torch.float64))
    assert not serves(torch.zeros(2, device="meta"))


@pytest.mark.usefixtures("kernels")
def test_every_variant_that_this_processor_can_run_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from transduce.native.norm import layer_norm

    x, gain, bias = torch.randn(9, 40), torch.randn(40), torch.randn(40)
    expected = torch.nn.functional.layer_norm(x, (40,), gain, bias)
    variants = transduce.native._variants()
    assert variants[-1] == "plain"
    for variant in variants:
        monkeypatch.setattr(transduce.native, "_variants", lambda variant=variant: [variant])
        transduce.native._found.cache_clear()
        assert kernels().__name__.endswith(variant)
        torch.testing.assert_close(layer_norm(x, gain, bias, 1e-5, torch.float32), expected)
    transduce.native._found.cache_clear()


@pytest.mark.usefixtures("kernels")
def test_left_out_for_a_while() -> None:
    with left_out():
        assert kernels() is None
        assert not serves(torch.zeros(2))
    assert kernels() is not None
