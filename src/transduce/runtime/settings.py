"""Process-wide settings as context managers, which restore the earlier values.

Settings that cannot be restored, such as how the C library handles freed memory (`transduce.runtime.allocator`), are
made only in processes of our own, by commands and workers.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from transduce.kernels.native import openmp

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let torch compute with `count` threads; None = no change.

    Where torch is not loaded, let the kernels that this thread calls do so; nothing is restored then.
    """
    torch = sys.modules.get("torch")
    if count is None or torch is None:
        if count is not None:
            openmp.set_threads(count)
        yield
        return
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(count)
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def repeatable(count: int | None = None) -> Iterator[None]:
    """Make computations deterministic, and restore the state of the random number generators afterwards.

    Args:
        count: number of threads; see `threads`.
    """
    import torch

    enabled = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    workspace = os.environ.get(CUBLAS)
    with threads(count), random_numbers():
        try:
            os.environ.setdefault(CUBLAS, ":4096:8")  # cuBLAS is deterministic only with this
            torch.use_deterministic_algorithms(True)
            # Filling costs 7 % of a step, and nothing here reads uninitialized memory.
            torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
            yield
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
            torch.use_deterministic_algorithms(enabled, warn_only=only_warned)
            if workspace is None:
                os.environ.pop(CUBLAS, None)


@contextmanager
def switch_interval(seconds: float) -> Iterator[None]:
    """Set how long a Python thread runs before it lets another one run."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def random_numbers() -> Iterator[None]:
    """Restore the state of torch's global random number generators afterwards."""
    import torch

    state = torch.get_rng_state()
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        torch.set_rng_state(state)
        if on_gpu:
            torch.cuda.set_rng_state_all(on_gpu)
