"""With dropout, do 2 and 4 processes learn what one does? Loss curves of many seeds.

    python benchmarks/distributed_dropout.py --seeds 12

The noise of dropout is each process' own, so weights differ; the validation losses should have the same distribution.
The same tiny translation model is trained with every seed by 1, 2 and 4 processes. For each validation of the curve a
permutation test (two-sided, on the difference of the means over seeds) asks how often so large a difference arises if
the number of processes does not matter. Prints a table, writes results/distributed/dropout.json. POSIX.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from trainers import record, trained, warm, write_work

from transduce.runtime.event_log import NAME, read_log

SETTINGS = (
    "model.d_model=64",
    "model.dropout=0.2",
    "batch.tokens=480",
    "training.updates=200",
    "training.validate_every=50",
    "training.checkpoint_every=200",
)
WORLDS = (1, 2, 4)
PERMUTATIONS = 100_000


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=12)
    seeds = parser.parse_args().seeds
    began = time.monotonic()
    warm()
    with tempfile.TemporaryDirectory() as name:
        os.environ["TRANSDUCE_CACHE"] = f"{name}/cache"
        recipe = write_work(Path(name))
        losses: dict[int, dict[int, list[float]]] = {world: {} for world in WORLDS}
        for seed in range(1, seeds + 1):
            for world in WORLDS:
                run = trained(world, recipe, Path(name) / f"{world}-{seed}", *SETTINGS, f"training.seed={seed}")
                for update, loss in curve(run):
                    losses[world].setdefault(update, []).append(loss)
            print(f"seed {seed} of {seeds}", flush=True)
    rows = [row for world in WORLDS for row in compared(world, losses[world], losses[1])]
    for row in rows:
        print(" ".join(f"{key} {value:.4g}" for key, value in row.items() if key != "losses"))
    record("dropout", time.monotonic() - began, rows=rows, seeds=seeds, settings=SETTINGS)


def curve(run: Path) -> list[tuple[int, float]]:
    """Validation losses by update."""
    return [(each["update"], each["loss"]) for each in read_log(run / NAME) if each["event"] == "validation"]


def compared(world: int, losses: dict[int, list[float]], alone: dict[int, list[float]]) -> list[dict[str, Any]]:
    """A row for each validation of the curve."""
    return [
        {
            "processes": world,
            "update": update,
            "mean": float(np.mean(each)),
            "deviation": float(np.std(each, ddof=1)),
            "difference": float(np.mean(each) - np.mean(alone[update])),
            "p": permutation_test(np.array(each), np.array(alone[update])),
            "losses": each,
        }
        for update, each in losses.items()
    ]


def permutation_test(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """How often the means of two random halves of all differ as much as those of these two, or more."""
    found = abs(one.mean() - other.mean())
    drawn = np.random.default_rng(1).permuted(np.tile(np.concatenate([one, other]), (PERMUTATIONS, 1)), axis=1)
    means = drawn[:, : len(one)].mean(1) - drawn[:, len(one) :].mean(1)
    return float((np.sum(np.abs(means) >= found - 1e-12) + 1) / (PERMUTATIONS + 1))


if __name__ == "__main__":
    main()
