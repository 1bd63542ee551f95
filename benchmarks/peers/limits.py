"""What the machine can do at best: matrix products in fp32 and bf16, and reading memory.

    python limits.py

Prints GFLOP/s and GB/s, the best of several sizes and repeats.
"""

import time

import torch
from work import report


def best_rate(size: int, dtype: torch.dtype, repeats: int = 8) -> float:
    """GFLOP/s of the fastest of `repeats` products of two (size, size) matrices."""
    left, right = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    fastest = min(_timed(lambda: left @ right) for _ in range(repeats))
    return 2 * size**3 / fastest / 1e9


def bandwidth(megabytes: int = 256, repeats: int = 8) -> float:
    """GB/s of the fastest sum over a tensor that no cache holds."""
    values = torch.ones(megabytes * 2**18)
    fastest = min(_timed(values.sum) for _ in range(repeats))
    return values.numel() * 4 / fastest / 1e9


def _timed(work: "object") -> float:
    begun = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - begun


if __name__ == "__main__":
    sizes = (1024, 2048, 3072)
    report(
        fp32_gflops=max(best_rate(size, torch.float32) for size in sizes),
        bf16_gflops=max(best_rate(size, torch.bfloat16) for size in sizes),
        gigabytes_per_second=bandwidth(),
    )
