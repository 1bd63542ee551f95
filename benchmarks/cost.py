"""Time and memory of a pass by the length of the text, and the length at which 20 GiB end.

    python benchmarks/cost.py [--limit 20] [--most 2] [--seconds 20]

The models are the variants of recipes/compare/cost.toml, with a vocabulary of 16. Each length is twice the one before,
and each is measured in a process of its own, with one thread: forward and backward over one text, its seconds and the
memory that the process needs beyond what it held before. A model is measured until the next length, at the growth of
the last two, would need more than --most GiB, half of the memory that is free, or --seconds. The length at --limit GiB
is then extrapolated by c n^p, fitted to the longer half of the lengths.

Prints a table and writes results/limits/cost.json, from which docs/make_limits.py makes its page.
"""

import argparse
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "recipes" / "compare" / "cost.toml"
RESULT = Path(__file__).parent / "results" / "limits" / "cost.json"
GIB = 2**30
SHORTEST, LONGEST = 256, 2**20


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=20, help="GiB whose end is extrapolated")
    parser.add_argument("--most", type=float, default=2, help="GiB that are measured at most")
    parser.add_argument("--seconds", type=float, default=20, help="of a pass that is measured at most")
    parser.add_argument("--one", nargs=2, metavar=("VARIANT", "LENGTH"), help="measure this alone, in this process")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]))))
        return
    from transduce.compare.config import load_comparison
    from transduce.runtime.environment import library_versions, machine, source_commit

    comparison = load_comparison(RECIPE)
    result: dict[str, Any] = {"comparison": "cost", "date": date.today().isoformat(), "commit": source_commit()}
    result |= {"machine": machine() | {"threads": 1}, "versions": library_versions(), "limit": options.limit * GIB}
    result["variants"] = {}
    for name, changes in comparison.changes.items():
        found = grown(name, options.most * GIB, options.seconds)
        result["variants"][name] = {"changes": changes, **found, **extrapolated(found, options.limit * GIB)}
        print(name, json.dumps(result["variants"][name]), flush=True)
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def measure(variant: str, length: int) -> dict[str, float]:
    """Seconds and bytes, in this process."""
    import torch

    from transduce.compare.config import load_comparison
    from transduce.compare.growth import measure_once

    torch.set_num_threads(1)
    return measure_once(load_comparison(RECIPE).variants[variant], length)


def grown(variant: str, most: float, seconds: float) -> dict[str, list[float]]:
    """Lengths with their seconds and bytes, up to what the next would need too much for."""
    found: dict[str, list[float]] = {"lengths": [], "seconds": [], "bytes": []}
    length = SHORTEST
    while length <= LONGEST:
        free = psutil.virtual_memory().available / 2
        if following(found["bytes"]) > min(most, free) or following(found["seconds"]) > seconds:
            break
        command = [sys.executable, __file__, "--one", variant, str(length)]
        told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
        one: dict[str, float] = json.loads(told.splitlines()[-1])
        found["lengths"].append(length)
        for key, value in one.items():
            found[key].append(value)
        length *= 2
    return found


def following(values: list[float]) -> float:
    """What twice the length would need, if it grows as before, and at most four times."""
    if len(values) < 2 or not min(values[-2:]):
        return 0.0
    return values[-1] * min(max(values[-1] / values[-2], 2.0), 4.0)


def extrapolated(found: dict[str, list[float]], limit: float) -> dict[str, float | None]:
    """The exponents, and the length at which the memory is `limit`, with the seconds of a pass there."""
    from transduce.compare.growth import fitted_exponent

    lengths, half = found["lengths"], len(found["lengths"]) // 2
    memory, time = (
        fitted_exponent([int(n) for n in lengths[half:]], found[key][half:]) for key in ("bytes", "seconds")
    )
    if not memory or time is None:
        return {
            "exponent_of_bytes": memory,
            "exponent_of_seconds": time,
            "length_at_limit": None,
            "seconds_there": None,
        }
    times = (limit / found["bytes"][-1]) ** (1 / memory)
    told = {"exponent_of_bytes": memory, "exponent_of_seconds": time, "length_at_limit": lengths[-1] * times}
    return {**told, "seconds_there": found["seconds"][-1] * times**time}


if __name__ == "__main__":
    main()
