"""The OpenMP library whose functions the kernels call.

The kernels are not linked to one: torch brings its own, and two in one process would each start threads. Where torch is
not loaded, one is loaded here: the one that lies beside the kernels in a wheel, or torch's file, or the system's.
"""

import ctypes
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

NAME = "libgomp.so.1"

_loaded: Any = None


def provide() -> bool:
    """Make its functions known to modules that are loaded from now on. Returns False where there is none."""
    global _loaded  # noqa: PLW0603
    if _loaded is None and sys.modules.get("torch") is None:
        for name in _places():
            try:
                _loaded = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
                break
            except OSError:
                continue
    return _loaded is not None or sys.modules.get("torch") is not None


def is_provided() -> bool:
    """Whether one was loaded here."""
    return _loaded is not None


def set_threads(count: int) -> None:
    """How many threads kernels use that this thread calls, where torch is not there to say it."""
    if provide() and _loaded is not None:
        _loaded.omp_set_num_threads(count)


def _places() -> Iterator[str]:
    beside = Path(__file__).with_name(NAME)
    if beside.exists():
        yield str(beside)
    torch = find_spec("torch")  # which may be imported later, and finds its library loaded then
    for folder in (torch.submodule_search_locations or []) if torch else []:
        yield from map(str, sorted((Path(folder) / "lib").glob("libgomp*.so*")))
    yield NAME
