"""How well the doctor finds slipped lines: 100 copies of Multi30k with one line deleted, and clean corpora.

    OMP_NUM_THREADS=1 python benchmarks/doctor_shift.py [--data FOLDER]

For every language pair, 100 times, one line at a random place in either side of the first 5,000 is deleted; half
of the copies also lose the last line of the other side, so that the counts are equal and tell nothing. Found
means: a shift of the right direction within 50 lines of the place. Clean corpora must raise no alarm.
"""

import argparse
import gzip
import platform
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from transduce.doctor.lines import ScannedFile
from transduce.doctor.scan import scan
from transduce.doctor.shift import align

HEAD, COPIES, NEAR, SEED = 5_000, 100, 50, 2026
PAIRS = [("en", "de"), ("en", "fr"), ("en", "cs"), ("de", "fr"), ("de", "cs")]
Stretches = list[tuple[int, int | None]]


def read(path: Path) -> list[str]:
    return gzip.decompress(path.read_bytes()).decode().split("\n")[:-1]


def examined(source: list[str], target: list[str]) -> tuple[bool, Stretches, float]:
    """Whether it was judged, (first row, offset) of every stretch, and the seconds it took, files read included."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in "st"]
        for path, lines in zip(paths, (source, target), strict=True):
            path.write_bytes("".join(f"{line}\n" for line in lines).encode())
        began = time.perf_counter()
        alignment = align(*(scan(ScannedFile(path)) for path in paths))
        seconds = time.perf_counter() - began
    return alignment.judged, [(part.first, part.offset) for part in alignment.stretches], seconds


def deletions(source: list[str], target: list[str]) -> tuple[list[int], list[float]]:
    """How many lines off the place was found in each copy (a miss counts as the whole corpus), and seconds."""
    dice, errors, times = random.Random(SEED), [], []
    for copy in range(COPIES):
        sides = [list(source), list(target)]
        side, place = dice.randrange(2), dice.randrange(len(source))
        del sides[side][place]
        if copy % 2:
            sides[1 - side].pop()
        _, stretches, seconds = examined(*sides)
        times.append(seconds)
        wanted = 1 if side == 0 else -1
        if stretches == [(0, 0)]:  # none found: right if it was at the very end
            stretches.append((len(sides[0]), wanted))
        shifts = [stretch for stretch in stretches if stretch != (0, 0)]
        errors.append(abs(shifts[0][0] - place) if [k for _, k in shifts] == [wanted] else len(source))
    return errors, times


def clean_corpora(data: Path) -> Iterator[tuple[str, list[str], list[str]]]:
    for a, b in PAIRS:
        source, target = (read(data / "multi30k" / "raw" / f"train.{language}.gz") for language in (a, b))
        for lines in (len(source), HEAD, 1_000, 300):
            yield f"Multi30k {a}-{b} {lines}", source[:lines], target[:lines]
        for start in range(HEAD, len(source) - HEAD, HEAD):
            part = slice(start, start + HEAD)
            yield f"Multi30k {a}-{b} from {start}", source[part], target[part]
    for part in ("train", "dev", "test"):
        source, target = (read(data / "small_parallel_enja" / f"{part}.{language}.gz") for language in ("en", "ja"))
        yield f"Tanaka en-ja {part} {len(source)}", source, target
    for folder, name in (("tatoeba_eng_cmn", "cmn"), ("tatoeba_eng_fra", "fra")):
        rows = [line.split("\t") for line in read(data / folder / f"{name}.txt.gz")]
        for lines in (len(rows), HEAD):
            yield f"Tatoeba eng-{name} {lines}", [r[0] for r in rows[:lines]], [r[1] for r in rows[:lines]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(__file__).parents[1] / ".." / "shared" / "data"
    data = parser.add_argument("--data", type=Path, default=default) and parser.parse_args().data
    print(f"seed {SEED}; Python {platform.python_version()}, numpy {np.__version__}, {platform.machine()}")
    for a, b in PAIRS:
        sides = [read(data / "multi30k" / "raw" / f"train.{language}.gz")[:HEAD] for language in (a, b)]
        errors, times = deletions(*sides)
        found = sum(error <= NEAR for error in errors)
        print(
            f"deleted {a}-{b}: found {found}/{COPIES} within {NEAR} lines; median error "
            f"{np.median(errors):.0f}, largest {max(errors)}; {np.mean(times):.2f} s a copy"
        )
        sys.stdout.flush()
    alarms = 0
    for name, source, target in clean_corpora(data):
        judged, stretches, seconds = examined(source, target)
        alarm = stretches != [(0, 0)]
        alarms += alarm
        said = f"ALARM {stretches}" if alarm else "no alarm" if judged else "no alarm (too little evidence)"
        print(f"clean {name}: {said}, {seconds:.2f} s", flush=True)
    print(f"false alarms: {alarms}")


if __name__ == "__main__":
    main()
