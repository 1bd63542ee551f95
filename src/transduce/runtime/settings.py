"""What holds for the whole process is set for a while and put back, so that nobody's other work is changed.

What cannot be put back, as what the C library does with freed memory (`transduce.runtime.allocator`), is for a process
of our own: verbs and workers set it.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Inside, torch computes with so many threads; None = as many as before."""
    before = torch.get_num_threads()
    try:
        if count is not None:
            torch.set_num_threads(count)
        yield
    finally:
        if count is not None:
            torch.set_num_threads(before)


@contextmanager
def repeatable(count: int | None = None) -> Iterator[None]:
    """Inside, the same computation gives the same bits, and random numbers may be seeded: their state is put back.

    Args:
        count: of threads, see `threads`.
    """
    enabled = torch.are_deterministic_algorithms_enabled()
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    filled = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    workspace = os.environ.get(CUBLAS)
    with threads(count), random_numbers():
        try:
            os.environ.setdefault(CUBLAS, ":4096:8")  # cuBLAS repeats itself only with this
            torch.use_deterministic_algorithms(True)
            # Costs 7 % of a step, and nothing here reads memory that was not written.
            torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
            yield
        finally:
            torch.utils.deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined]
            torch.use_deterministic_algorithms(enabled, warn_only=only_warned)
            if workspace is None:
                os.environ.pop(CUBLAS, None)


@contextmanager
def switch_interval(seconds: float) -> Iterator[None]:
    """Inside, a thread gives way to another of Python's after so long."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def random_numbers() -> Iterator[None]:
    """Inside they may be seeded and drawn: the state of torch's global generators is put back."""
    state = torch.get_rng_state()
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        torch.set_rng_state(state)
        if on_gpu:
            torch.cuda.set_rng_state_all(on_gpu)
