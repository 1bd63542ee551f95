"""The kernels' tests with every access to memory checked, and everything that C++ leaves undefined.

    make sanitize
    python tests/sanitize.py [PYTEST'S ARGUMENTS]     # in the place of the tests below

Each variant of the kernels that this processor can run is compiled with AddressSanitizer and
UndefinedBehaviorSanitizer into a copy of the package in build/sanitized. The first fault ends the run, with the line of
C++ where it happened. A variant that this processor cannot run is named.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from variants import can_run

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/sanitized"
NATIVE = "transduce/kernels/native"
CHECKS = ["-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"]
OPTIONS = {
    # Python and torch free nothing at the end, and torch frees with another function than it allocates with.
    "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "PYTHONMALLOC": "malloc",  # each object of Python's in memory of its own, which is checked
    "OMP_NUM_THREADS": "2",
    "PYTHONPATH": str(BUILD),
}
TESTS = [
    *sorted(str(path) for path in (ROOT / "tests/kernels").glob("test_native_*.py") if "undefined" not in path.name),
    *(str(ROOT / "tests" / name) for name in ("attention/test_dropout.py", "layers/test_cross_entropy.py")),
    *(str(ROOT / "tests" / name) for name in ("layers/test_external_memory.py", "search/test_topk.py")),
]


def compiler() -> str:
    """The C++ compiler; ends the program where there is none."""
    found = shutil.which(os.environ.get("CXX", "g++"))
    return found or sys.exit("no C++ compiler: install g++, or say which with CXX")


def preloaded() -> str:
    """What must be loaded before Python: the sanitizer, and the library whose exceptions it watches."""
    names = ("libasan.so", "libubsan.so", "libstdc++.so")
    command = [compiler(), *(f"-print-file-name={name}" for name in names)]
    places = [subprocess.run([command[0], each], capture_output=True, text=True, check=True) for each in command[1:]]
    return ":".join(str(Path(place.stdout.strip()).resolve()) for place in places)


def copy_package() -> None:
    """The package as it is, without compiled kernels."""
    shutil.rmtree(BUILD, ignore_errors=True)
    shutil.copytree(ROOT / "src", BUILD, ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info"))


def compile_variant(variant: str, flags: list[str]) -> None:
    """`setup.py` builds it fast; here it is built to be checked."""
    source, compiled = BUILD / NATIVE / "kernels.cpp", BUILD / NATIVE / f"{variant}.o"
    defined = [f"-DMODULE={variant}", "-DPy_LIMITED_API=0x030B0000", f"-I{sysconfig.get_paths()['include']}"]
    plain = ["-std=c++17", "-O1", "-g", "-fPIC", *CHECKS]
    subprocess.run(
        [compiler(), *plain, *flags, *defined, "-fopenmp", "-c", str(source), "-o", str(compiled)], check=True
    )
    library = compiled.with_suffix(".abi3.so")  # without -fopenmp: OpenMP's functions are torch's
    subprocess.run([compiler(), "-shared", *CHECKS, str(compiled), "-o", str(library)], check=True)


def run(variant: str, arguments: list[str]) -> int:
    """Pytest's exit code; what it says is shown as it comes."""
    environment = os.environ | OPTIONS | {"TRANSDUCE_NATIVE": variant, "LD_PRELOAD": preloaded()}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *(arguments or TESTS)]
    return subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode


def main() -> None:
    """Every variant in turn; exit code 1 if a fault was found in any."""
    sys.path.insert(0, str(ROOT))
    from setup import variants

    copy_package()
    codes = []
    for variant, flags in variants().items():
        if problem := can_run({"TRANSDUCE_NATIVE": variant}):
            print(f"left out: {problem}", flush=True)
            continue
        compile_variant(variant, flags)
        codes.append(run(variant, sys.argv[1:]))
        print(f"{variant}: {'a fault was found' if codes[-1] else 'clean'}", flush=True)
    sys.exit(any(codes))


if __name__ == "__main__":
    main()
