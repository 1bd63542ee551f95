"""3,000 hostile model files with valid checksums: is each refused in words, or loaded and right, within 1 s and 500 MB?

    python benchmarks/hostile_model_files.py --files 3000

`tests/hostile_files.py` makes them: sizes, settings, tokenizers, tensors, numbers, JSON. Each is shown by
`transduce info`, loaded and asked for one line in a process of its own, forked from one that has imported everything,
so that its time and its memory are its own. Prints what failed, how many were refused and how many were right, the
slowest and the largest; exits 1 if any failed, hung, was killed, or took more. POSIX.
"""

import argparse
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import hostile_files

HANG = 60  # seconds
MEGABYTE = 2**20


def alone(path: Path) -> dict[str, Any]:
    """What becomes of a file in a process of its own: outcome, seconds, and bytes more than before."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(HANG)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun, worked = time.perf_counter(), time.process_time()
        found = hostile_files.outcome(path)
        seconds, work = time.perf_counter() - begun, time.process_time() - worked
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
        os.write(writes, json.dumps([found, seconds, work, grown]).encode())
        os._exit(0)
    os.close(writes)
    begun = time.perf_counter()
    content = b""
    while select.select([reads], [], [], HANG + 10)[0] and (more := os.read(reads, 65536)):
        content += more
    os.close(reads)
    _, status = os.waitpid(child, 0)
    if status or not content:
        how = signal.Signals(status & 127).name if status & 127 else f"exit {status >> 8}"
        waited = time.perf_counter() - begun
        return {"outcome": f"failed: {how}", "seconds": waited, "work": waited, "grown": 0}
    return dict(zip(("outcome", "seconds", "work", "grown"), json.loads(content), strict=True))


def main() -> None:
    """Exits 1 if anything failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=3000)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    hostile_files.prepare()
    kinds: Counter[str] = Counter()
    slow, large, failed = (0.0, ""), (0, ""), []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(given.first, given.first + given.files):
            ((path, what),) = hostile_files.written(Path(folder), range(number, number + 1)).items()
            found = alone(path)
            path.unlink()
            name = f"{number} ({what})"
            kinds[found["outcome"].partition(":")[0]] += 1
            slow, large = max(slow, (found["work"], name)), max(large, (found["grown"], name))
            most = 1 if found["outcome"].startswith("refused") else 3  # shown; what is sound is loaded twice
            too_much = found["work"] > most or found["grown"] > 500 * MEGABYTE
            if too_much or found["outcome"].startswith("failed"):
                failed.append(name)
                print(name, f"{found['work']:.2f} s", f"{found['grown'] // MEGABYTE} MB", found["outcome"], flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    print(f"slowest: {slow[0]:.2f} s of work, file {slow[1]}; largest: {large[0] // MEGABYTE} MB, file {large[1]}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
