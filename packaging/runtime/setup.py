"""The wheel `transduce-runtime`: those modules of Transduce that need no torch, the kernels, and OpenMP's library.

The package's description is in the pyproject.toml beside this file. Build it with `make runtime-wheel`.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
BUILD = Path("build")
OPENMP = "libgomp.so.1"

os.chdir(HERE)
sys.path.insert(0, str(HERE))

from carried import NEW_NAME, SOURCE, TEMPLATE, write_to  # noqa: E402


def whole_package() -> object:
    """The setup.py of the whole package, which knows how kernels are compiled."""
    spec = importlib.util.spec_from_file_location("whole_package_setup", SOURCE.parent / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copy_sources() -> None:
    """Lay out the package under `build/`, anew; of an earlier build only what was compiled is kept."""
    for stale in (BUILD / "package", BUILD / "native"):
        shutil.rmtree(stale, ignore_errors=True)
    for stale in BUILD.glob("lib*/**/*.py"):
        stale.unlink()
    write_to(BUILD / "package")
    shutil.copytree(
        SOURCE / "transduce/kernels/native",
        BUILD / "native",
        ignore=lambda folder, names: [name for name in names if not name.endswith((".h", ".cpp"))],
    )
    shutil.copy(openmp(), BUILD / "package" / NEW_NAME / "kernels/native" / OPENMP)
    shutil.copy(SOURCE.parent / "LICENSE", "LICENSE")


def openmp() -> Path:
    """GCC's OpenMP library, which the kernels call. Without torch nobody else brings it."""
    compiler = os.environ.get("CXX", "g++")
    said = subprocess.run([compiler, f"-print-file-name={OPENMP}"], capture_output=True, text=True, check=True).stdout
    path = Path(said.strip())
    if not path.is_absolute():
        sys.exit(f"{compiler} does not know where {OPENMP} is.")
    return path.resolve()


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("transduce-runtime is built on Linux, as its kernels are.")
    copy_sources()
    whole = whole_package()
    setup(
        packages=find_packages(str(BUILD / "package")),
        package_dir={"": str(BUILD / "package")},
        package_data={f"{NEW_NAME}.kernels.native": [OPENMP], NEW_NAME: ["py.typed"], "": [f"*{TEMPLATE}", "page/*"]},
        ext_modules=[
            whole.kernels(*each, package=NEW_NAME, folder=str(BUILD / "native"), optional=False)
            for each in whole.variants().items()
        ],
        options={"bdist_wheel": {"py_limited_api": whole.STABLE}} if whole.stable else {},
    )
