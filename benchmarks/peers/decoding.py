"""What every decoding worker does around its toolkit: arguments, warm-up, clock, one line of JSON. Needs numpy alone.

    WORKER.py WORK MODEL [--beam 5] [--batch 64] [--sentences 1000] [--outputs FILE]

Batches of one are sentences that come alone: their milliseconds at the 50th and 95th percentile. Otherwise sentences a
second.
"""

import argparse
import json
import os
import resource
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

ALPHA, END, LONGEST = 0.75, 2, 100
WORKERS = os.cpu_count() or 1  # of one thread each, where sentences come in batches
Rows = list[list[int]]
Each = Callable[[Callable[[int], Rows], int], Iterable[Rows]]


def arguments(*more: tuple[str, str | None]) -> argparse.Namespace:
    """Those above; `more`: further options of one worker with their defaults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--outputs", type=Path)
    for name, default in more:
        parser.add_argument(name, default=default)
    return parser.parse_args()


def measure(asked: argparse.Namespace, translate: Callable[[Rows], Rows]) -> None:
    """Print the figures of `translate`, which takes sources and gives outputs, both token ids without their ends."""
    sources = test_sources(asked.work)[: asked.sentences]
    translate(sources[: min(100, 2 * asked.batch)])
    if asked.batch == 1:
        milliseconds = [1000 * _seconds(translate, [source])[0] for source in sources]
        figures = {"p50_ms": float(np.percentile(milliseconds, 50)), "p95_ms": float(np.percentile(milliseconds, 95))}
    else:
        begun = _processor_seconds()
        seconds, found = _seconds(translate, sources)
        work = _processor_seconds() - begun
        figures = {
            "sentences_per_second": len(sources) / seconds,
            "sentences_per_processor_second": len(sources) / work,
        }
        if asked.outputs:
            asked.outputs.write_text("".join(" ".join(map(str, row)) + "\n" for row in found))
    memory = PeakMemory()  # of a pass of its own: to look at it takes a tenth of the time
    translate(sources)
    print(json.dumps({**figures, "peak_memory_gb": round(memory.end(), 3)}))


def one_by_one(work: Callable[[int], Rows], count: int) -> Iterator[Rows]:
    """work(0), work(1), .."""
    return map(work, range(count))


def in_batches(sources: Rows, size: int, translate: Callable[[Rows], Rows], each: Each = one_by_one) -> Rows:
    """Like lengths translated together, `size` at a time; in the order of `sources`.

    each: calls a function with the number of every batch, perhaps in several processes.
    """
    order = sorted(range(len(sources)), key=lambda place: -len(sources[place]))
    batches = [order[first : first + size] for first in range(0, len(order), size)]
    outputs = each(lambda number: translate([sources[place] for place in batches[number]]), len(batches))
    found = {
        place: row
        for places, rows in zip(batches, outputs, strict=True)
        for place, row in zip(places, rows, strict=True)
    }
    return [found[place] for place in range(len(sources))]


def test_sources(work: Path) -> Rows:
    """The token ids of the test set."""
    with np.load(work) as arrays:
        return [row.tolist() for row in np.split(arrays["test_values"], arrays["test_ends"][:-1])]


def _processor_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


class PeakMemory:
    """The most that this process and those it started held at any time; what they share counts once (PSS, of Linux)."""

    def __init__(self) -> None:
        self._most = 0
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._look_again, daemon=True)
        self._watch.start()

    def end(self) -> float:
        """In GB; 0 where the system does not tell."""
        self._ended.set()
        self._watch.join()
        return self._most / 1e6

    def _look_again(self) -> None:
        while True:
            self._most = max(self._most, sum(map(_kilobytes, ["self", *_children()])))
            if self._ended.wait(0.1):
                return


def _children() -> list[str]:
    return [pid for path in Path("/proc/self/task").glob("*/children") for pid in path.read_text().split()]


def _kilobytes(process: str) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended, or there is no such file
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _seconds(translate: Callable[[Rows], Rows], sources: Rows) -> tuple[float, Rows]:
    begun = time.perf_counter()
    found = translate(sources)
    return time.perf_counter() - begun, found
