"""Kernels in C++, compiled where there is a compiler; without them everything works, more slowly.

The rest of the package's description is in pyproject.toml.
"""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup

FOLDER = "src/transduce/kernels/native"
AVX512 = ["-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"]
VARIANTS = {  # of x86 processors, slowest first; which of them a machine can run is looked up when it is needed
    "plain": [],
    "avx2": ["-march=x86-64-v3"],
    "avx512": AVX512,
    "amx": [*AVX512, "-mamx-tile", "-mamx-int8"],
}


def kernels(variant: str, flags: list[str]) -> Extension:
    """One module, `transduce.kernels.native.<variant>`. OpenMP's functions are of the library that torch has loaded."""
    return Extension(
        f"transduce.kernels.native.{variant}",
        [f"{FOLDER}/kernels.cpp"],
        depends=[str(path) for path in sorted(Path(FOLDER).glob("*.h"))],
        define_macros=[("MODULE", variant)],
        extra_compile_args=["-std=c++17", "-O3", "-fopenmp", *flags],
        optional=True,
    )


x86 = platform.machine().lower() in ("x86_64", "amd64")
variants = VARIANTS if x86 else {"plain": []}
setup(ext_modules=[kernels(*each) for each in variants.items()] if sys.platform == "linux" else [])
