"""C++ kernels for operations that take torch many passes over memory. Without them, callers use torch.

If there is a compiler, `setup.py` compiles them for several kinds of processors, and the best variant for this
processor is loaded. The environment variable `TRANSDUCE_NATIVE` overrides this: `off` disables the kernels; `plain`,
`avx2`, `avx512` or `amx` loads that variant; `required` loads the best one, and it is an error if there is none.
Kernels work on CPU tensors in fp32 and bf16. Their results do not depend on the number of threads.

Kernels take addresses and sizes and check nothing. The Python functions beside them, one file for each, do the checks.
Kernels that were compiled from other sources are left out, with a warning (`layout.py`).
"""

import os
import platform
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.kernels.native.layout import differences

VARIANTS = ("plain", "avx2", "avx512", "amx")  # which `setup.py` compiles
CHOICE = "TRANSDUCE_NATIVE"  # in the environment
TYPES = {torch.float32: "float32", torch.bfloat16: "bfloat16"}


_wanted = True


def kernels() -> Any:
    """The module of kernels for this machine; None if there is none or it is disabled."""
    return _found() if _wanted else None


@contextmanager
def left_out() -> Iterator[None]:
    """Inside the block, the kernels are disabled and torch is used."""
    global _wanted  # noqa: PLW0603
    before, _wanted = _wanted, False
    try:
        yield
    finally:
        _wanted = before


@cache
def _found() -> Any:
    chosen = os.environ.get(CHOICE, "")
    if chosen not in ("", "off", "required", *VARIANTS):
        raise InputError(f'{CHOICE}="{chosen}": expected off, required, or one of {", ".join(VARIANTS)}')
    if chosen == "off":
        return None
    able = _variants()
    if chosen in VARIANTS and chosen not in able:
        raise InputError(f"{CHOICE}={chosen}: this processor runs only {', '.join(reversed(able))}")
    for variant in [chosen] if chosen in VARIANTS else able:
        try:
            found = import_module(f"transduce.kernels.native.{variant}")
        except ImportError:  # never compiled
            continue
        return found if _reads_what_is_written(found, chosen) else None
    if chosen:
        raise InputError(
            f"{CHOICE}={chosen}: these kernels were not compiled; install a C++ compiler, then reinstall Transduce"
        )
    return None


def _reads_what_is_written(module: Any, chosen: str) -> bool:
    """Whether it was compiled from these sources. If not, it warns, or raises if they were chosen explicitly."""
    wrong = differences(module, tuple(TYPES.values()))
    if not wrong:
        return True
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    why = (
        f"{getattr(module, '__file__', module.__name__)}: these C++ kernels were compiled from other sources than the "
        f"Python code beside them ({wrong[0]}{more})."
    )
    rebuild = "Rebuild them with `python setup.py build_ext --inplace` in a checkout; otherwise reinstall Transduce."
    if chosen:
        raise InputError(f"{CHOICE}={chosen}: {why} {rebuild}")
    told = f"{why} Torch is used instead, which is slower. {rebuild}"
    warnings.warn(told, RuntimeWarning, stacklevel=2)
    return False


def kernel(name: str, *types: torch.dtype) -> Any:
    """The kernel of that name for those dtypes."""
    return getattr(_found(), "_".join([name, *(TYPES[each] for each in types)]))


def serves(*tensors: Tensor | None) -> bool:
    """Whether there are kernels for these tensors. None stands for an absent tensor."""
    there = [each for each in tensors if each is not None]
    return all(each.dtype in TYPES and each.device.type == "cpu" for each in there) and kernels() is not None


def _variants() -> list[str]:
    """Those that this processor can run, fastest first."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return ["plain"]
    able = torch.cpu.get_capabilities()
    variants = ["plain"]
    if able.get("avx2") and able.get("fma3"):
        variants.insert(0, "avx2")
        if all(able.get(f"avx512_{part}") for part in ("f", "bw", "dq", "vl", "vnni")):
            variants.insert(0, "avx512")
            if able.get("amx_tile") and able.get("amx_int8"):
                variants.insert(0, "amx")
    return variants
