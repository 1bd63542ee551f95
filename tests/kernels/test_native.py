"""Which kernels are taken, and that everything works without them."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import transduce.kernels.native
from transduce.core.errors import InputError
from transduce.kernels.native import VARIANTS, kernels, left_out
from transduce.kernels.native.tensors import TYPES, serves


def test_the_kernels_are_there_where_they_are_required() -> None:
    if os.environ.get("TRANSDUCE_NATIVE") != "required":
        pytest.skip("TRANSDUCE_NATIVE=required is not set: without a C++ compiler there are none")
    assert kernels() is not None


@pytest.fixture
def chosen_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets TRANSDUCE_NATIVE as if the process had begun with it; undone afterwards."""

    def choose(value: str) -> None:
        monkeypatch.setenv("TRANSDUCE_NATIVE", value)
        transduce.kernels.native._found.cache_clear()

    yield choose
    monkeypatch.undo()
    transduce.kernels.native._found.cache_clear()


def test_off_leaves_them_out() -> None:
    code = "from transduce.kernels.native import kernels; print(kernels())"
    off = {**os.environ, "TRANSDUCE_NATIVE": "off"}
    done = subprocess.run([sys.executable, "-c", code], env=off, capture_output=True, text=True, check=True)
    assert done.stdout == "None\n"


def test_a_choice_that_does_not_exist_is_refused(chosen_anew: Callable[[str], None]) -> None:
    chosen_anew("avx1024")
    with pytest.raises(InputError, match='TRANSDUCE_NATIVE="avx1024": expected off, required, or one of plain, avx2'):
        kernels()


def test_a_variant_that_this_processor_cannot_run_is_refused(
    chosen_anew: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    processor = tmp_path / "cpuinfo"
    processor.write_text("processor\t: 0\nflags\t\t: fpu sse2 fma avx avx2\n\nprocessor\t: 1\nflags\t\t: avx512f\n")
    monkeypatch.setattr(transduce.kernels.native, "PROCESSOR", processor)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    chosen_anew("avx512")
    with pytest.raises(InputError, match=r"TRANSDUCE_NATIVE=avx512: this processor runs only plain, avx2$"):
        kernels()


@pytest.mark.parametrize("value", ["plain", "required"])
def test_a_variant_that_was_not_compiled_is_refused(
    value: str, chosen_anew: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variant in VARIANTS:
        monkeypatch.setitem(sys.modules, f"transduce.kernels.native.{variant}", None)  # as if its file were not there
    chosen_anew(value)
    with pytest.raises(InputError, match=f"TRANSDUCE_NATIVE={value}: these kernels were not compiled; install a C"):
        kernels()
    chosen_anew("")
    assert kernels() is None


def test_a_training_says_so_and_writes_nothing(tiny_recipe: Path, tmp_path: Path) -> None:
    wrong = {**os.environ, "TRANSDUCE_NATIVE": "fast"}
    command = [sys.executable, "-m", "transduce", "train", str(tiny_recipe), "--run", str(tmp_path / "run")]
    done = subprocess.run(command, env=wrong, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert 'TRANSDUCE_NATIVE="fast": expected off, required' in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("kernels")
def test_only_fp32_and_bf16_on_a_cpu() -> None:
    assert all(serves(torch.zeros(2, dtype=dtype), None) for dtype in TYPES)
    assert not serves(torch.zeros(2), torch.zeros(2, dtype=torch.float64))
    assert not serves(torch.zeros(2, device="meta"))


@pytest.mark.usefixtures("kernels")
def test_every_variant_that_this_processor_can_run_computes_the_same(chosen_anew: Callable[[str], None]) -> None:
    from transduce.kernels.native.norm import layer_norm

    x, gain, bias = torch.randn(9, 40), torch.randn(40), torch.randn(40)
    expected = torch.nn.functional.layer_norm(x, (40,), gain, bias)
    variants = transduce.kernels.native._variants()
    assert variants[-1] == "plain"
    for variant in variants:
        chosen_anew(variant)
        assert kernels().__name__ == f"transduce.kernels.native.{variant}"
        torch.testing.assert_close(layer_norm(x, gain, bias, 1e-5, torch.float32), expected)


def test_what_the_processor_can_is_what_torch_says() -> None:
    able, found = torch.cpu.get_capabilities(), transduce.kernels.native._instructions()
    for torchs, linuxs in {"avx2": "avx2", "fma3": "fma", "avx512_vnni": "avx512_vnni", "amx_int8": "amx_int8"}.items():
        assert bool(able.get(torchs)) == (linuxs in found)


@pytest.mark.usefixtures("kernels")
def test_left_out_for_a_while() -> None:
    with left_out():
        assert kernels() is None
        assert not serves(torch.zeros(2))
    assert kernels() is not None
