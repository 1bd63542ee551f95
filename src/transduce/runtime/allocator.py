"""Keep the C library from returning freed tensors to the operating system, which would zero their pages again.

Blocks of 32 MiB and more are still returned. Keeping them would fragment the heap, which would grow to several times
what a step needs.
"""

import ctypes
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # glibc's malloc.h
MIB = 2**20
KEPT = {M_MMAP_THRESHOLD: 32 * MIB, M_TRIM_THRESHOLD: 2047 * MIB, M_TOP_PAD: 64 * MIB}
USUAL = {M_MMAP_THRESHOLD: 32 * MIB, M_TRIM_THRESHOLD: 64 * MIB, M_TOP_PAD: MIB // 8}
"""What glibc itself comes to, once it has freed a block of 32 MiB."""


def keep_freed_memory() -> bool:
    """Returns True if the setting took effect (glibc); on other systems it does nothing."""
    if not _is_glibc():
        return False
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # torch asks for huge pages: a hundredth of the page faults
    return _set(KEPT)


@contextmanager
def freed_memory_kept() -> Iterator[None]:
    """Keep freed memory while the block runs, and return it to the operating system at the end.

    For code that others call, whose process should not stay large. glibc does not say what was set before, so its usual
    settings hold from then on.
    """
    known = _is_glibc() and _set(KEPT)
    try:
        yield
    finally:
        if known:
            _set(USUAL)
            ctypes.CDLL(None).malloc_trim(0)


def _is_glibc() -> bool:
    return platform.libc_ver()[0] == "glibc"


def _set(settings: dict[int, int]) -> bool:
    mallopt = ctypes.CDLL(None).mallopt
    accepted = [mallopt(name, value) for name, value in settings.items()]
    return all(accepted)
