"""Do 64 processes see every pair once an epoch, in the order of one, and learn what one learns?

    python benchmarks/distributed_ranks.py --processes 64

All of them run here, over gloo: real processes with a tiny model, forked from one. Each notes which rows of each batch
it trains on. Checked is that the shares of a batch are the batch that one process has, each row once; that an epoch
holds every pair once; and that the weights after the last update are those of one process (sgd, fp32, no dropout) to
1e-6. Prints what it finds, writes results/distributed/ranks.json, exits 1 where something differs. POSIX.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed_equality import difference
from trainers import Trainers, record, warm, write_work

from transduce.runtime.process_group import ProcessGroup

SETTINGS = ("model.dropout=0", "model.inner_dropout=0", "training.optimizer=sgd", "training.learning_rate=0.1")
SETTINGS += ("model.activation=gelu",)  # see distributed_equality.py
SETTINGS += ("batch.tokens=1000", "training.accumulate=1", "training.updates=8", "training.checkpoint_every=100")
SETTINGS += ("training.validate_every=100", "training.decode_sentences=8")
PAIRS = 500
Row = tuple[int, int]  # store, row


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=64)
    world, began = parser.parse_args().processes, time.monotonic()
    warm()
    with tempfile.TemporaryDirectory() as name:
        os.environ["TRANSDUCE_CACHE"] = f"{name}/cache"
        recipe = write_work(Path(name))
        alone, whole = train(1, recipe, Path(name))
        many, shares = train(world, recipe, Path(name))
        found = checked(whole[0], shares) | {"difference": difference(alone, many, None)}
    found["processes"] = world
    for key, value in found.items():
        print(f"{key.replace('_', ' ')}: {value}")
    record("ranks", time.monotonic() - began, **found)
    right = found["batches_alike"] == found["batches"] and found["epochs_whole"] == found["epochs"] > 0
    sys.exit(0 if right and found["difference"] <= 1e-6 else 1)


def train(world: int, recipe: Path, folder: Path) -> tuple[Path, list[list[list[Row]]]]:
    """The run, and for each process the rows of each of its batches."""
    run, noted = folder / str(world), folder / f"{world}.rows"
    noted.mkdir()
    arguments = ["train", str(recipe), *SETTINGS, "--run", str(run)]
    trainers = Trainers(world, arguments, folder / f"{world}.told", before=noting(noted)).start()
    trainers.wait()
    if trainers.failed:
        raise RuntimeError(f"{trainers.ended}\n{trainers.told()}")
    files = [noted / str(rank) for rank in range(world)]
    return run, [[[tuple(row) for row in json.loads(line)] for line in file.open()] for file in files]


def noting(folder: Path) -> Callable[[int], None]:
    """Let a process write its rows of each batch, a line each, into the file of its rank."""

    def begin(rank: int) -> None:
        share, file = ProcessGroup.share, (folder / str(rank)).open("w", buffering=1)

        def noted(group: ProcessGroup, rows: Any) -> Any:
            own = share(group, rows)
            kept = (
                [] if own is None or own.stands_in else list(zip(own.stores.tolist(), own.rows.tolist(), strict=True))
            )
            file.write(json.dumps(kept) + "\n")
            return own

        ProcessGroup.share = noted  # type: ignore[method-assign]

    return begin


def checked(whole: list[list[Row]], shares: list[list[list[Row]]]) -> dict[str, Any]:
    """How many batches and epochs there were, and how many of them are as they must be."""
    joined = [Counter(row for own in every for row in own) for every in zip(*shares, strict=True)]
    alike = sum(Counter(one) == many for one, many in zip(whole, joined, strict=True))
    epochs, epoch = [], Counter[Row]()
    for batch in joined:
        epoch += batch
        if epoch.total() >= PAIRS:
            epochs.append(len(epoch) == PAIRS and set(epoch.values()) == {1})
            epoch = Counter()
    rows = [len(own) for every in shares for own in every]
    return {
        "batches": len(whole),
        "batches_alike": alike,
        "epochs": len(epochs),
        "epochs_whole": sum(epochs),
        "rows_of_a_process": f"{min(rows)} to {max(rows)}",
    }


if __name__ == "__main__":
    main()
