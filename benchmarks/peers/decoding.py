"""What every decoding worker does around its toolkit: arguments, warm-up, clock, one line of JSON. Needs numpy alone.

    WORKER.py WORK MODEL [--beam 5] [--batch 64] [--sentences 1000] [--outputs FILE]

Batches of one are sentences that come alone: their milliseconds at the 50th and 95th percentile. Otherwise sentences a
second.
"""

import argparse
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ALPHA, END, LONGEST = 0.75, 2, 100
Rows = list[list[int]]


def arguments(*more: tuple[str, str]) -> argparse.Namespace:
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
        begun = time.process_time()
        seconds, found = _seconds(translate, sources)
        work = time.process_time() - begun
        figures = {
            "sentences_per_second": len(sources) / seconds,
            "sentences_per_processor_second": len(sources) / work,
        }
        if asked.outputs:
            asked.outputs.write_text("".join(" ".join(map(str, row)) + "\n" for row in found))
    print(json.dumps({**figures, "peak_memory_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}))


def in_batches(sources: Rows, size: int, translate: Callable[[Rows], Rows]) -> Rows:
    """Like lengths translated together, `size` at a time; in the order of `sources`."""
    found: dict[int, list[int]] = {}
    order = sorted(range(len(sources)), key=lambda place: -len(sources[place]))
    for first in range(0, len(order), size):
        places = order[first : first + size]
        found |= dict(zip(places, translate([sources[place] for place in places]), strict=True))
    return [found[place] for place in range(len(sources))]


def test_sources(work: Path) -> Rows:
    """The token ids of the test set."""
    with np.load(work) as arrays:
        return [row.tolist() for row in np.split(arrays["test_values"], arrays["test_ends"][:-1])]


def _seconds(translate: Callable[[Rows], Rows], sources: Rows) -> tuple[float, Rows]:
    begun = time.perf_counter()
    found = translate(sources)
    return time.perf_counter() - begun, found
