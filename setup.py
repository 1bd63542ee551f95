"""Kernels in C++, compiled where there is a compiler; without them everything works, more slowly.

The rest of the package's description is in pyproject.toml.
"""

import platform
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FOLDER = "src/transduce/kernels/native"
AVX512 = ["-march=x86-64-v4", "-mavx512vnni", "-mprefer-vector-width=512"]
VARIANTS = {  # of x86 processors, slowest first; which of them a machine can run is looked up when it is needed
    "plain": [],
    "avx2": ["-march=x86-64-v3"],
    "avx512": AVX512,
    "amx": [*AVX512, "-mamx-tile", "-mamx-int8"],
}
QUIET = ["-fno-trapping-math", "-fno-math-errno"]
"""Nobody asks for the processor's floating-point exceptions. Values stay the same, but where a loop chooses between two
numbers, both may be computed, so that it becomes vector instructions: e^x then takes a sixth of the time."""
STABLE = "cp311"  # kernels use Python's stable interface, so one wheel serves this version and all later ones
stable = not sysconfig.get_config_var("Py_GIL_DISABLED")  # which a build without the interpreter's lock has not


class BuildKernels(build_ext):
    """In a checkout, modules of earlier builds under another name are removed: Python would load them first."""

    def run(self) -> None:
        super().run()
        for extension in self.extensions if self.inplace else ():
            built = Path(self.get_ext_fullpath(extension.name))
            for other in built.parent.glob(f"{built.name.split('.')[0]}.*.so"):
                if built.exists() and other != built:
                    other.unlink()


def kernels(
    variant: str, flags: list[str], package: str = "transduce", folder: str = FOLDER, optional: bool = True
) -> Extension:
    """One module, `transduce.kernels.native.<variant>`. OpenMP's functions are of the library that torch has loaded.

    package, folder: where it belongs, and where its sources are. optional: an installation may do without it.
    """
    return Extension(
        f"{package}.kernels.native.{variant}",
        [f"{folder}/kernels.cpp"],
        depends=[str(path) for path in sorted(Path(folder).glob("*.h"))],
        define_macros=[("MODULE", variant), *([("Py_LIMITED_API", "0x030B0000")] if stable else [])],
        py_limited_api=stable,
        extra_compile_args=["-std=c++17", "-O3", "-fopenmp", *QUIET, *flags],
        extra_link_args=["-Wl,-s"] if sys.platform == "linux" else [],  # without symbols that only debuggers read
        optional=optional,
    )


def variants() -> dict[str, list[str]]:
    """Those of this machine's kind of processor, with the compiler's options for each."""
    x86 = platform.machine().lower() in ("x86_64", "amd64")
    return VARIANTS if x86 else {"plain": []}


if __name__ == "__main__":  # as installers run it; packaging/runtime imports it
    extensions = [kernels(*each) for each in variants().items()] if sys.platform == "linux" else []
    setup(
        ext_modules=extensions,
        cmdclass={"build_ext": BuildKernels},
        options={"bdist_wheel": {"py_limited_api": STABLE}} if stable and extensions else {},
    )
