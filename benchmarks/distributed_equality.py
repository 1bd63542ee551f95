"""Do 2 and 4 processes learn what one does? Weights after 50 updates in fp32, and scores of the final evaluation.

    python benchmarks/distributed_equality.py

A tiny translation model without dropout, as the noise of dropout is each process' own, and with GELU. With ReLU and
twice the learning rate, weights of several processes differed by up to 6.7e-6: where a sum is rounded another way, a
ReLU may fall on the other side of its kink, which is a likely cause but was not tested apart. Prints a table, writes
results/distributed/equality.json, exits 1 where weights differ by more than 1e-6 or scores at all. POSIX.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file
from trainers import record, trained, warm, write_work

from transduce.training.finished import read_report

SETTINGS = ("model.dropout=0", "model.inner_dropout=0", "model.activation=gelu", "training.updates=50")
OPTIMIZERS = {"sgd": ("training.optimizer=sgd", "training.learning_rate=0.1"), "adamw": ("training.optimizer=adamw",)}
WITHOUT_GRADIENT = "key_value.bias"  # its keys' half: softmax forgets what all keys have in common, AdamW divides noise
LIMIT = 1e-6


def main() -> None:
    """Measure, print, write."""
    began, rows = time.monotonic(), []
    warm()
    print("optimizer  processes  parallel  largest difference of a tensor  scores the same")
    with tempfile.TemporaryDirectory() as name:
        os.environ["TRANSDUCE_CACHE"] = f"{name}/cache"
        recipe = write_work(Path(name))
        for optimizer, settings in OPTIMIZERS.items():
            alone = trained(1, recipe, Path(name) / optimizer, *SETTINGS, *settings)
            for world in (2, 4):
                for parallel in ("ddp", "fsdp"):
                    run = Path(name) / f"{optimizer}-{world}-{parallel}"
                    trained(world, recipe, run, *SETTINGS, *settings, f"training.parallel={parallel}")
                    rows.append(compared(alone, run, optimizer, world, parallel))
    record("equality", time.monotonic() - began, rows=rows, limit=LIMIT)
    sys.exit(0 if all(row["scores_the_same"] and row["difference"] <= LIMIT for row in rows) else 1)


def compared(alone: Path, run: Path, optimizer: str, world: int, parallel: str) -> dict[str, Any]:
    """One row of the table, printed."""
    scores, theirs = (scores_of(each) for each in (alone, run))
    found = difference(alone, run, WITHOUT_GRADIENT if optimizer == "adamw" else None)
    row = {
        "optimizer": optimizer,
        "processes": world,
        "parallel": parallel,
        "difference": found,
        "scores_the_same": scores == theirs,
        "scores": scores,
    }
    print(f"{optimizer:9}  {world:9}  {parallel:8}  {found:30.1e}  {'yes' if scores == theirs else 'NO'}", flush=True)
    return row


def scores_of(run: Path) -> Any:
    """Of the held-out sentences."""
    report = read_report(run)
    assert report is not None
    return report["tests"]["held_out"]["scores"]


def difference(one: Path, other: Path, leave_out: str | None) -> float:
    """Of the tensors of two models, the largest, relative to the tensor's norm."""
    ours, theirs = (load_file(run / "model.safetensors") for run in (one, other))
    assert ours.keys() == theirs.keys()
    kept = [(ours[name].astype(float), theirs[name]) for name in ours if leave_out is None or leave_out not in name]
    return max(float(np.linalg.norm(a - b) / max(np.linalg.norm(a), 1e-12)) for a, b in kept)


if __name__ == "__main__":
    main()
