"""Is one process as fast as it was before a training could have several?

    python benchmarks/one_process.py CHECKOUT [--rounds 6]

CHECKOUT: an earlier commit of this repository, with its kernels compiled. One process of its code and one of this make
the updates of `distributed_speed.py` with its small model in turn, one thread each; every round starts both anew.
The figure is processor time of an update by the earlier code over that by this: the median of a round's turns, and
the median of the rounds. Writes results/distributed/one_process.json, for `python docs/make_scale.py`.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
TURNS = 12


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.worker:
        make_updates()
        return
    began, medians = time.monotonic(), []
    for number in range(asked.rounds):
        ratios = in_turn(asked.checkout, earlier_first=bool(number % 2))
        medians.append(statistics.median(ratios))
        print(f"round {number + 1}: {medians[-1]:.3f} ({min(ratios):.3f} to {max(ratios):.3f})", flush=True)
    print(f"speed of one process beside before: {statistics.median(medians):.3f}")
    git = ["git", "-C", str(asked.checkout), "rev-parse", "--short=10", "HEAD"]
    earlier = subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    from trainers import record

    seconds = time.monotonic() - began
    record(
        "one_process", seconds, before=earlier, turns=TURNS, ratios=sorted(medians), median=statistics.median(medians)
    )


def in_turn(checkout: Path, earlier_first: bool) -> list[float]:
    """Of each turn: processor time of the checkout's update over that of this code's."""
    earlier, this = checkout.resolve() / "src", SOURCE
    workers = {source: worker(source) for source in ((earlier, this) if earlier_first else (this, earlier))}
    ratios = []
    for _ in range(TURNS):
        seconds = {source: turn(process) for source, process in workers.items()}
        ratios.append(seconds[earlier] / seconds[this])
    for process in workers.values():
        process.communicate()
    return ratios


def worker(source: Path) -> "subprocess.Popen[str]":
    """A process that makes an update for every line that it reads."""
    given = {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, ".", "--worker"]
    return subprocess.Popen(
        command, env=os.environ | given, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )  # fmt: skip


def turn(process: "subprocess.Popen[str]") -> float:
    """Seconds of the processor that its next update takes."""
    assert process.stdin and process.stdout
    print(file=process.stdin, flush=True)
    return float(process.stdout.readline())


def make_updates() -> None:
    """The worker: prints the processor time of each update."""
    from distributed_speed import prepared

    update = prepared("small").update
    update()
    for _ in sys.stdin:
        began = time.process_time()
        update()
        print(time.process_time() - began, flush=True)


if __name__ == "__main__":
    main()
