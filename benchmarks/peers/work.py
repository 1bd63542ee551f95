"""The fixed work "small" that every toolkit is measured on, readable in any environment: needs numpy and torch alone.

d_model 256, 3 + 3 layers, 4 heads, feed-forward 1,024, tied embeddings over a joint vocabulary of 8,000, post-norm,
ReLU, sinusoidal positions, dropout 0.1, label smoothing 0.1; Multi30k en-de in batches of about 4,096 padded target
tokens. The file that `benchmarks/prepare_work.py` writes holds the token ids and the plan of batches, so that every
plain loop gets the same batches.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

WIDTH, LAYERS, HEADS, HIDDEN, DROPOUT, SMOOTHING = 256, 3, 4, 1024, 0.1, 0.1
SIZES = {"small": (WIDTH, LAYERS, HIDDEN), "narrow": (128, 4, 256)}  # the latter for time to quality alone
PAD, START, END = 0, 1, 2
LEARNING_RATE, BETAS = 3e-4, (0.9, 0.98)
WARM_UP_BATCHES = 5


class Work:
    """Token ids of both sides and which rows make a batch."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as arrays:
            self.vocabulary = int(arrays["vocabulary"])
            self.source = _rows(arrays, "source")
            self.target = _rows(arrays, "target")
            self.batches = _rows(arrays, "batches")
            self.test = _rows(arrays, "test")

    def training_batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, int]]:
        """Source (B, S) and target (B, T) ids without end, padded with 0: x ... </s> and <s> y ... </s>; and how many
        target tokens there are to predict."""
        while True:
            for rows in self.batches:
                source = [[*self.source[row], END] for row in rows]
                target = [[START, *self.target[row], END] for row in rows]
                yield padded(source), padded(target), sum(map(len, target)) - len(target)


def _rows(arrays: "np.lib.npyio.NpzFile", name: str) -> list[list[int]]:
    parts = np.split(arrays[f"{name}_values"], arrays[f"{name}_ends"][:-1])
    return [part.tolist() for part in parts]


def padded(rows: list[list[int]]) -> torch.Tensor:
    """(B, T) int64."""
    longest = max(map(len, rows))
    return torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])


def measure_training(work: Work, seconds: float, step: Callable[[torch.Tensor, torch.Tensor], None]) -> None:
    """Run `step` for `seconds` after a warm-up; print target tokens a second as a line of JSON."""
    batches = work.training_batches()
    for _ in range(WARM_UP_BATCHES):
        source, target, _ = next(batches)
        step(source, target)
    tokens, begun = 0, time.perf_counter()
    while (spent := time.perf_counter() - begun) < seconds:
        source, target, count = next(batches)
        step(source, target)
        tokens += count
    report(tokens_per_second=tokens / spent)


def report(**figures: object) -> None:
    """One line of JSON, the last that a worker prints."""
    print(json.dumps(figures))
    sys.stdout.flush()


def plain_loop(
    model: torch.nn.Module, loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], precision: str
) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """The training step that one writes around a library's model: autocast, AdamW (fused), clipping."""
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, betas=BETAS, fused=True)

    def step(source: torch.Tensor, target: torch.Tensor) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            value = loss(source, target)
        value.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return step


def arguments() -> tuple[Work, str, float]:
    """WORK PRECISION SECONDS from the command line."""
    return Work(Path(sys.argv[1])), sys.argv[2], float(sys.argv[3])
