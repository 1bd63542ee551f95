"""How fast are the linear maps of a small model by torch's own product, by oneDNN's, and packed?

    python benchmarks/matrix_products.py

One thread; the best of several repeats, in GFLOP/s: forward, gradient of the input, gradient of the weight, for rows
as training has them, and packed for rows as decoding has them.
"""

import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.kernels.matmul import _product, linear, pack
from transduce.runtime.environment import machine

SHAPES = ((256, 256), (256, 1024), (1024, 256), (256, 8000))


def main() -> None:
    """A line for each shape."""
    torch.set_num_threads(1)
    print(machine())
    with torch.inference_mode():
        for inputs, outputs in SHAPES:
            training(4096, inputs, outputs)
        for rows in (1, 5, 320):
            for inputs, outputs in SHAPES:
                decoding(rows, inputs, outputs)


def training(rows: int, inputs: int, outputs: int) -> None:
    """The three products of a step."""
    x, dy, weight = torch.randn(rows, inputs), torch.randn(rows, outputs), torch.randn(outputs, inputs)
    work = 2e-9 * rows * inputs * outputs
    rates = {
        "y": (rate(work, lambda: F.linear(x, weight)), rate(work, lambda: _product(x, weight, None))),
        "dx": (rate(work, lambda: dy @ weight), rate(work, lambda: _product(dy, weight.T, None))),
        "dW": (rate(work, lambda: dy.T @ x), rate(work, lambda: _product(dy.T, x.T, None))),
    }
    told = "   ".join(f"{name} {torchs:4.0f} | {onednn:4.0f}" for name, (torchs, onednn) in rates.items())
    print(f"{rows} rows, {inputs} -> {outputs}: torch | oneDNN, GFLOP/s:   {told}")


def decoding(rows: int, inputs: int, outputs: int) -> None:
    """The forward product alone."""
    x, weight = torch.randn(rows, inputs), torch.randn(outputs, inputs)
    packed, work = pack(weight), 2e-9 * rows * inputs * outputs
    torchs, onednn = rate(work, lambda: F.linear(x, weight)), rate(work, lambda: linear(x, weight, None, packed))
    print(f"{rows} rows, {inputs} -> {outputs}: torch {torchs:4.0f} | packed {onednn:4.0f} GFLOP/s")


def rate(work: float, product: Callable[[], Tensor], repeats: int = 7) -> float:
    """GFLOP/s of the fastest repeat, each of at least a millisecond."""
    fastest = float("inf")
    times = max(1, int(0.2 / work))
    for _ in range(repeats):
        begun = time.process_time()
        for _ in range(times):
            product()
        fastest = min(fastest, (time.process_time() - begun) / times)
    return work / fastest


if __name__ == "__main__":
    main()
