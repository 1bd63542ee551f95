"""How long does it take until a translation model is good, with ours and with what one would train instead?

    python benchmarks/time_to_quality.py --data ../shared/data/multi30k [--threads 1] [--who Transduce JoeyNMT] [--read]

Everyone trains a model of the fixed work's size with a recipe that suits it, ours being benchmarks/quality_small.toml,
or a narrower and deeper one (quality_narrow.toml), and translates the validation set greedily now and then; BLEU is
cased sacreBLEU (13a) of the text. The workers (benchmarks/peers/) run one after another, for hours; a stopped one goes
on where it was. With one thread, two may run side by side, each on a core: name one with --who. --read only reads the
curves that are there.

Times count from the start of the process, with and without validations, by the wall and of the processor. With one
thread the table is in processor seconds, so that other work on the machine does not matter, else in the wall's; both
without validations.

Writes benchmarks/results/time_to_quality.json, and docs/performance.md anew with it.
"""

import argparse
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sacrebleu
from quality_report import table
from speed import HERE, OURS, PINNED, RESULTS, WORKERS, make_environments, python

from transduce.runtime.environment import library_versions, machine

FOLDER = HERE.parent / "runs" / "time-to-quality"
CLOCKS = ("training_processor_seconds", "training_seconds", "processor_seconds", "seconds")
HEIGHTS = (36, 34, 32, 30, 27)  # BLEU that are compared besides a peer's best
Point = dict[str, float]


class Toolkit(NamedTuple):
    """A worker, how many updates its recipe has, how many there are between validations, its environment and sizes.

    environment: None = this one.
    """

    worker: str
    updates: int
    every: int
    environment: str | None = None
    sizes: str = "small"

    @property
    def folder(self) -> str:
        """Where it keeps its curve, inside of --folder."""
        return self.worker if self.sizes == "small" else f"{self.worker}_{self.sizes}"


MARIAN, JOEYNMT = "Marian, Hugging Face", "JoeyNMT"
WHO = {
    OURS: Toolkit("quality_transduce", 1150, 100),
    f"{OURS}, d_model 128": Toolkit("quality_transduce", 4000, 200, sizes="narrow"),
    MARIAN: Toolkit("quality_marian", 2000, 200, "huggingface"),
    f"{MARIAN}, d_model 128": Toolkit("quality_marian", 2400, 200, "huggingface", "narrow"),
    JOEYNMT: Toolkit("quality_joeynmt", 3000, 300, "joeynmt"),
}


def main() -> None:
    """Train, compare, write."""
    asked = arguments()
    if not asked.read:
        make_environments(name for who in asked.who if (name := WHO[who].environment))
        work = prepared(asked.data)
        for who in asked.who:
            train(who, work, asked)
    curves = {who: read(asked.folder / WHO[who].folder / "curve.jsonl") for who in WHO}
    curves = {who: curve for who, curve in curves.items() if curve}
    clock = CLOCKS[0] if asked.threads == 1 else CLOCKS[1]
    result = {
        "date": date.today().isoformat(),
        "machine": machine(),
        "versions": library_versions(),
        "peers": PINNED,
        "threads": asked.threads,
        "seed": 1,
        "bleu": f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}|search:greedy",
        "precision": asked.precision,
        "clock": clock,
        "best": {who: best(curve) for who, curve in curves.items()},
        "rows": compare(curves),
        "curves": curves,
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "time_to_quality.json").write_text(json.dumps(result, indent=1) + "\n")
    print(table(result["rows"], clock))
    subprocess.run([sys.executable, str(HERE / "speed_report.py")], check=True)


def arguments() -> argparse.Namespace:
    """From the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE.parent.parent / "shared" / "data" / "multi30k")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="for checkpoints and curves")
    parser.add_argument("--who", nargs="+", choices=WHO, default=list(WHO))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", default="fp32", help="Marian's: the one that it is faster in on this machine")
    parser.add_argument("--read", action="store_true", help="train nothing")
    return parser.parse_args()


def prepared(data: Path) -> Path:
    """The fixed work with its validation set."""
    work = RESULTS / "work.npz"
    if work.is_file():
        with np.load(work) as arrays:
            if "validation_references" in arrays:
                return work
    RESULTS.mkdir(exist_ok=True)
    subprocess.run([sys.executable, str(HERE / "prepare_work.py"), str(data), str(work)], check=True)
    return work


def train(who: str, work: Path, asked: argparse.Namespace) -> None:
    """One of them to the end."""
    toolkit = WHO[who]
    command = [python(toolkit.environment), WORKERS / f"{toolkit.worker}.py", work, asked.folder / toolkit.folder]
    command += ["--threads", asked.threads, "--updates", toolkit.updates, "--every", toolkit.every]
    command += ["--sizes", toolkit.sizes] if who != JOEYNMT else []
    command += ["--data", asked.data] if who.startswith(OURS) else []
    command += ["--precision", asked.precision] if who.startswith(MARIAN) else []
    print(f"{who}: {toolkit.updates} updates", flush=True)
    subprocess.run([str(part) for part in command], check=True)


def read(path: Path) -> list[Point]:
    """The points of a curve; none where there is no file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def best(curve: list[Point]) -> Point:
    """The first point with the highest BLEU."""
    return max(curve, key=lambda point: point["bleu"])


def compare(curves: dict[str, list[Point]]) -> list[dict[str, Any]]:
    """For each peer's best BLEU and for lower ones: how long it took, and how many times as long as each of ours.

    The better peer first.
    """
    ours = {who: curve for who, curve in curves.items() if who.startswith(OURS)}
    peers = sorted(curves.keys() - ours.keys(), key=lambda who: -best(curves[who])["bleu"])
    return [
        {
            "who": who,
            "bleu": height,
            "theirs": (theirs := reached(curves[who], height)),
            "ours": {name: times(theirs, reached(curve, height)) for name, curve in ours.items()},
        }
        for who in peers
        for height in (best(curves[who])["bleu"], *HEIGHTS)
        if height <= best(curves[who])["bleu"]
    ]


def times(theirs: Point | None, ours: Point | None) -> dict[str, Point | None]:
    """When we are there, by every clock, and how many times as long they take; None where one never is."""
    ratio = {clock: round(theirs[clock] / ours[clock], 2) for clock in CLOCKS} if theirs and ours else None
    return {"reached": ours, "ratio": ratio}


def reached(curve: list[Point], height: float) -> Point | None:
    """When the straight lines between a curve's points first are that high, by every clock."""
    before = dict.fromkeys((*CLOCKS, "bleu"), 0.0)
    for point in curve:
        if point["bleu"] >= height:
            share = (height - before["bleu"]) / (point["bleu"] - before["bleu"])
            return {clock: round(before[clock] + share * (point[clock] - before[clock]), 2) for clock in CLOCKS}
        before = point
    return None


if __name__ == "__main__":
    main()
