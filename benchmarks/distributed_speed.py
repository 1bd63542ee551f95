"""How fast are two processes beside one, and what do they tell each other?

    python benchmarks/distributed_speed.py [--rounds 3]

- The update that `transduce train` makes, with random batches: a small model, and that of Vaswani et al. 2017, base.
- One process with two threads beside two with one thread each, in turn; each round runs all of them once.
- The sum of gradients alone, over gloo on this machine: seconds for tensors of several sizes.
- How many pairs a second an epoch's batches are planned for, which every process does.

Where other work runs on the machine, wall-clock figures say little by themselves; ratios, and target tokens per second
of processor time, say more. Prints tables, writes results/distributed/speed.json. POSIX.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

SIZES = {  # the model, its vocabulary, target tokens of an update
    "small": ({"d_model": 256, "heads": 4, "feed_forward": 1024, "encoder_layers": 3, "decoder_layers": 3}, 8000, 2048),
    "base": ({"d_model": 512, "heads": 8, "feed_forward": 2048, "encoder_layers": 6, "decoder_layers": 6}, 37000, 1024),
}
LENGTH = 32  # tokens of every sentence
UPDATES = {"small": 4, "base": 2}
SUMMED = (2**10, 2**16, 2**20, 2**24)  # numbers
REPEATED = 5
PLANNED = 2**21  # pairs
SOURCE = Path(__file__).parents[1] / "src"


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", choices=[*SIZES, "sum", "plan"], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        workers = {"sum": summed, "plan": planned}
        print(json.dumps(workers[asked.worker]() if asked.worker in workers else updated(asked.worker)))
        return
    began = time.monotonic()
    found: dict[str, Any] = {size: beside(size, asked.rounds) for size in SIZES}
    found["sums"] = run(2, 1, "sum")[0]
    print("numbers      seconds for a sum over two processes")
    for row in found["sums"]["rows"]:
        print(f"{row['numbers']:11,}  {row['seconds']:.5f}")
    found["plan"] = run(1, 1, "plan")[0]
    print(f"planned pairs a processor-second: {found['plan']['pairs_per_processor_second']:,.0f}")
    from trainers import record

    record("speed", time.monotonic() - began, rounds=asked.rounds, **found)


def beside(size: str, rounds: int) -> dict[str, Any]:
    """One process with one and with two threads, and two with one thread each, in turn."""
    ways = {"1 process, 1 thread": (1, 1), "1 process, 2 threads": (1, 2), "2 processes, 1 thread each": (2, 1)}
    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, (world, threads) in ways.items():
            runs[way].append(run(world, threads, size)[0])
    rows = {way: medians(each) for way, each in runs.items()}
    print(f"{size}: {runs['1 process, 1 thread'][0]['parameters']:,} parameters")
    for way, row in rows.items():
        print(
            f"  {way:28} {row['tokens_per_second']:8.0f} tokens/s, {row['tokens_per_processor_second']:8.0f} a core-s"
        )
    one, two = (
        [each["tokens_per_second"] for each in runs[way]]
        for way in ("1 process, 2 threads", "2 processes, 1 thread each")
    )
    ratios = sorted(b / a for a, b in zip(one, two, strict=True))
    print(f"  two processes beside two threads: {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})")
    parameters, tokens = (runs["1 process, 1 thread"][0][key] for key in ("parameters", "tokens_per_update"))
    return {"rows": rows, "ratios": ratios, "parameters": parameters, "tokens_per_update": tokens}


def medians(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Of each figure."""
    return {key: statistics.median(row[key] for row in rows) for key in rows[0] if key.startswith("tokens_per_")}


def run(world: int, threads: int, what: str) -> list[dict[str, Any]]:
    """What each of so many workers prints."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    workers = []
    for rank in range(world):
        given = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": str(threads), "MASTER_ADDR": "127.0.0.1"}
        given |= {"RANK": str(rank), "WORLD_SIZE": str(world), "MASTER_PORT": port}
        command = [sys.executable, __file__, "--worker", what]
        workers.append(subprocess.Popen(command, env=os.environ | given, stdout=subprocess.PIPE, text=True))
    printed = [worker.communicate()[0] for worker in workers]
    if any(worker.returncode for worker in workers):
        sys.exit(f"{what}, {world} processes: {[worker.returncode for worker in workers]}")
    return [json.loads(each.splitlines()[-1]) for each in printed]


class Work(NamedTuple):
    """An update of a model, ready to be made."""

    update: Callable[[], Any]
    parameters: int
    precision: str


def prepared(size: str, group: Any = None) -> Work:
    """The update that `transduce train` makes; without a group it runs on checkouts from before there were groups."""
    import torch

    from transduce.core.padded import Padded
    from transduce.data.collate import Batch
    from transduce.data.columns import Specs
    from transduce.kernels.cpu import bf16_is_faster, capabilities
    from transduce.models.transformer import Transformer, TransformerConfig
    from transduce.objectives.text import text_objective
    from transduce.recipe.training import TrainingConfig
    from transduce.training.average import MovingAverage
    from transduce.training.checkpoint import TrainingState
    from transduce.training.loop import make_update
    from transduce.training.optimizer import Optimizers
    from transduce.training.progress import Progress

    shape, vocabulary, tokens = SIZES[size]
    torch.manual_seed(1)
    config = TrainingConfig(optimizer="adamw")
    model = Transformer(TransformerConfig(**shape), Specs.of_tokens(vocabulary, vocabulary))
    parts = model, text_objective(model, config), Optimizers(model, config), MovingAverage(model, 0.999), Progress()
    ids = torch.randint(4, vocabulary, (tokens // LENGTH, LENGTH + 1))
    own = ids[group.rank :: group.world] if group else ids
    rows = Padded(own, torch.full((len(own),), LENGTH + 1))
    batches = [Batch(rows, rows, LENGTH * len(own))]
    state = TrainingState(*parts, group=group) if group else TrainingState(*parts)
    precision = "bf16" if bf16_is_faster(capabilities()) else "fp32"
    count = sum(each.numel() for each in model.parameters())
    return Work(lambda: make_update(config, state, batches, precision), count, precision)


def updated(size: str) -> dict[str, Any]:
    """Target tokens of all processes a second, and a second of their processor time."""
    if os.environ["WORLD_SIZE"] == "1":
        work = prepared(size)
        wall, processor = measured(work.update, UPDATES[size])
    else:
        from transduce.runtime.process_group import started_group

        with started_group() as group:
            work = prepared(size, group)
            wall, processor = measured(work.update, UPDATES[size])
            (processor,) = group.total(processor)
    tokens = SIZES[size][2]
    speeds = {
        "tokens_per_second": tokens * UPDATES[size] / wall,
        "tokens_per_processor_second": tokens * UPDATES[size] / processor,
    }
    return {**speeds, "parameters": work.parameters, "tokens_per_update": tokens, "precision": work.precision}


def measured(update: Callable[[], Any], repeated: int) -> tuple[float, float]:
    """Seconds by the clock and of the processor, after one update that does not count."""
    update()
    wall, processor = time.monotonic(), time.process_time()
    for _ in range(repeated):
        update()
    return time.monotonic() - wall, time.process_time() - processor


def planned() -> dict[str, float]:
    """Pairs whose batches are planned, of a store that has lengths alone, a second of processor time."""
    import numpy as np

    from transduce.data.batches import BatchConfig, Batches
    from transduce.data.store import BLOCK

    class Lengths:
        fields, blocks = ("source", "target"), PLANNED // BLOCK

        def __len__(self) -> int:
            return PLANNED

        def lengths(self, field: str, block: int) -> Any:
            return np.random.default_rng([block, len(field)]).integers(5, 60, BLOCK)

        def release(self) -> None:
            """Nothing is held."""

    batches = Batches([(Lengths(), 1.0)], BatchConfig(tokens=2**19), seed=1)  # type: ignore[list-item]
    began = time.process_time()
    count = batches.count(0)
    return {"pairs_per_processor_second": PLANNED / (time.process_time() - began), "batches": count}


def summed() -> dict[str, Any]:
    """Seconds for a sum of so many numbers in fp32, the fastest of a few."""
    import torch

    from transduce.runtime.process_group import started_group

    rows = []
    with started_group():
        for numbers in SUMMED:
            tensor, taken = torch.ones(numbers), []
            for _ in range(REPEATED):
                began = time.monotonic()
                torch.distributed.all_reduce(tensor)
                taken.append(time.monotonic() - began)
            rows.append({"numbers": numbers, "seconds": min(taken), "median": statistics.median(taken)})
    return {"rows": rows}


if __name__ == "__main__":
    main()
