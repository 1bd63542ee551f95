"""Keep the C library from handing every freed tensor back to the kernel, which would zero its pages anew next step."""

import ctypes
import platform

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # glibc's malloc.h


def keep_freed_memory() -> bool:
    """True where it could be asked for (glibc); elsewhere nothing happens."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    settings = {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: 2**31 - 1, M_TOP_PAD: 2**26}
    accepted = [mallopt(name, value) for name, value in settings.items()]
    return all(accepted)
