"""Freed memory: kept while a block lasts, so that its pages are not made anew, and returned at its end."""

import platform
import subprocess
import sys

import pytest

WORK = """
import resource
import numpy as np
from transduce.runtime.allocator import freed_memory_kept

def resident():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) / 1024

def fill():
    return [np.full(2**18, 1.0, np.float32) for _ in range(80)]  # 80 times 1 MiB

def faults(repeated=10):
    fill()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(repeated):
        fill()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

outside, before = faults(), resident()
with freed_memory_kept():
    inside = faults()
    held = resident()
print(outside, inside, held - before, resident() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc's settings")
def test_pages_are_kept_in_the_block_and_returned_after_it() -> None:
    done = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True)
    outside, inside, held, left = map(float, done.stdout.split())
    assert outside > 10_000  # 20,480 pages are made each time where nothing is kept
    assert inside < outside / 10
    assert held > 60
    assert left < 20
