"""C++ kernels for operations that take torch many passes over memory. Without them, callers use torch.

If there is a compiler, `setup.py` compiles them for several kinds of processors, and the best variant for this
processor is loaded. The environment variable `TRANSDUCE_NATIVE` overrides this: `off` disables the kernels; `plain`,
`avx2`, `avx512` or `amx` loads that variant; `required` loads the best one, and it is an error if there is none.
Kernels work on CPU tensors in fp32 and bf16. Their results do not depend on the number of threads.

Kernels take addresses and sizes and check nothing. The Python functions beside them, one file for each, do the checks,
and pass arrays, never addresses (`call.py`).
Kernels that were compiled from other sources are left out, with a warning (`layout.py`). Neither this file nor those
for prediction (`linear`, `decoder`, `beam`) import torch.
"""

import os
import platform
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.kernels.native.call import call
from transduce.kernels.native.layout import differences
from transduce.kernels.native.openmp import provide

VARIANTS = ("plain", "avx2", "avx512", "amx")  # which `setup.py` compiles
CHOICE = "TRANSDUCE_NATIVE"  # in the environment
TYPES = ("float32", "bfloat16")  # endings of the names of functions that exist for several
PROCESSOR = Path("/proc/cpuinfo")
BEGINNING = 16_384  # characters of it, which hold all about the first core


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
    provide()
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
    wrong = differences(module, TYPES)
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


def kernel(name: str, *types: object) -> Callable[..., None]:
    """The kernel of that name for those dtypes, of torch or NumPy. It takes numbers, arrays, structs and None."""
    found = getattr(_found(), "_".join([name, *(str(each).removeprefix("torch.") for each in types)]))
    return partial(call, found)


def multiplies_int8() -> bool:
    """Whether the kernels for this processor multiply matrices in 8 bits."""
    found = kernels()
    return found is not None and found.__name__.endswith(("avx2", "avx512", "amx"))


def _variants() -> list[str]:
    """Those that this processor can run, fastest first."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return ["plain"]
    able = _instructions()
    variants = ["plain"]
    if {"avx2", "fma"} <= able:
        variants.insert(0, "avx2")
        if {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512_vnni"} <= able:
            variants.insert(0, "avx512")
            if {"amx_tile", "amx_int8"} <= able:
                variants.insert(0, "amx")
    return variants


def _instructions() -> set[str]:
    """The extensions of the processor that the system lets programs use, as Linux calls them."""
    try:
        with PROCESSOR.open(encoding="utf-8") as file:
            beginning = file.read(BEGINNING)
    except OSError:
        return set()
    flags = next((line for line in beginning.splitlines() if line.startswith("flags")), "")
    return set(flags.partition(":")[2].split())
