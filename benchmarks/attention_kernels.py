"""Where plain matrix products and the fused kernel cross, forward and backward, by number of keys.

    python benchmarks/attention_kernels.py

Sets `FUSED_FROM_KEYS` in attention/scaled_dot_product.py. Prints milliseconds a step (median of interleaved runs) and
their ratio.
"""

import statistics
import time

import torch
import torch.nn.functional as F

from transduce.attention.scaled_dot_product import attend_with_weights
from transduce.runtime.allocator import keep_freed_memory

HEADS, WIDTH, TOKENS, RUNS = 4, 32, 4096, 7


def step(fused: bool, length: int, dtype: torch.dtype) -> float:
    """Milliseconds of one forward and backward pass over `TOKENS` tokens in rows of `length`."""
    shape = (TOKENS // length, HEADS, length, WIDTH)
    query, key, value = (torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(3))
    allowed = torch.ones(shape[0], 1, 1, length, dtype=torch.bool)
    start = time.perf_counter()
    if fused:
        output = F.scaled_dot_product_attention(query, key, value, allowed)
    else:
        output = attend_with_weights(query, key, value, allowed)[0]
    output.sum().backward()
    return 1000 * (time.perf_counter() - start)


def main() -> None:
    """One line a length and type."""
    keep_freed_memory()
    print(f"{torch.get_num_threads()} threads, {HEADS} heads of {WIDTH}, {TOKENS} tokens")
    for dtype in (torch.float32, torch.bfloat16):
        for length in (16, 32, 64, 128, 256, 512):
            runs = [(step(False, length, dtype), step(True, length, dtype)) for _ in range(RUNS + 1)][1:]
            plain, fused = (statistics.median(each) for each in zip(*runs, strict=True))
            name = str(dtype).removeprefix("torch.")
            print(f"{name:8}  keys {length:3}  plain {plain:6.1f} ms  fused {fused:6.1f} ms  ratio {fused / plain:.2f}")


if __name__ == "__main__":
    main()
