"""Keep the C library from returning freed tensors to the operating system, which would zero their pages again.

Blocks of 32 MiB and more are still returned. Keeping them would fragment the heap, which would grow to several times
what a step needs.
"""

import ctypes
import os
import platform

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # glibc's malloc.h
MIB = 2**20


def keep_freed_memory() -> bool:
    """Returns True if the setting took effect (glibc); on other systems it does nothing."""
    if platform.libc_ver()[0] != "glibc":
        return False
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # torch asks for huge pages: a hundredth of the page faults
    mallopt = ctypes.CDLL(None).mallopt
    settings = {M_MMAP_THRESHOLD: 32 * MIB, M_TRIM_THRESHOLD: 2047 * MIB, M_TOP_PAD: 64 * MIB}
    accepted = [mallopt(name, value) for name, value in settings.items()]
    return all(accepted)
