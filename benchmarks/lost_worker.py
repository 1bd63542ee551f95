"""Is the output of a Ray cluster that lost a worker on the way, byte for byte, that of one process?

    python benchmarks/lost_worker.py RUN --source english.txt

Lines of the file (repeated until there are --lines) are predicted by one process, then by `--engine ray` on a cluster
of this machine, one of whose workers is killed (-9) after it has answered its first block. Linux.
"""

import argparse
import hashlib
import itertools
import os
import signal
import sys
import time
from pathlib import Path

from transduce.bulk.blocks import LINES, blocks_of
from transduce.bulk.engine import LocalEngine
from transduce.bulk.job import Placement
from transduce.bulk.ray_engine import RayEngine
from transduce.core.model_file import find_model_file
from transduce.data.files import text_lines


def main() -> None:
    """Predict twice, kill, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    lines = list(itertools.islice(itertools.cycle(text_lines(options.source)), options.lines))
    engine = RayEngine(options.workers)
    killed: list[int] = []

    def kill(done: int) -> None:
        if not killed:
            killed.append(next(iter(engine.processes))[1])
            os.kill(killed[0], signal.SIGKILL)

    found = {}
    for name, placed, advance in (("one process", LocalEngine(), lambda lines: None), ("ray", engine, kill)):
        began = time.monotonic()
        found[name] = output(Placement(placed, [find_model_file(options.run)], {"device": "cpu"}), lines, advance)
        digest = hashlib.sha256(found[name]).hexdigest()[:16]
        print(f"{name}: {len(found[name]):,} bytes, SHA-256 {digest}.., {time.monotonic() - began:.0f} s", flush=True)
    print(f"{len(lines):,} lines in blocks of {LINES:,}; killed: {killed}; answered: {sorted(engine.processes)}")
    same = found["one process"] == found["ray"] and found["ray"].count(b"\n") == len(lines)
    print("the same bytes" if same and killed else "DIFFERENT")
    sys.exit(0 if same and killed else 1)


def output(placed: Placement, lines: list[str], advance: object) -> bytes:
    """What `predict` writes."""
    job = placed.job("predict", {"predict": {"batch_size": 64}, "form": "text"})
    answers = placed.engine.answers(job, blocks_of({"text": line} for line in lines), advance)  # type: ignore[arg-type]
    return b"".join(f"{each}\n".encode() for answer in answers for each in answer["outputs"])


if __name__ == "__main__":
    main()
