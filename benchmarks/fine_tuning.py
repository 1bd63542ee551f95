"""Does a fine-tuned model learn what is new, and keep what it could do?

    transduce demo --run RUNS/demo
    python benchmarks/fine_tuning.py RUNS [--seeds 1 2 3] [--time 3m] [--ways planned alone plain low]

The demo's sentences with "street" (235 of its training sentences) get another word in French: *avenue* in the place of
*rue* after "la" and in the plural, and *rue* as before after "une" and adjectives. Each way fine-tunes the demo's model
on them. Printed, in per cent, for the demo's test sentences:

- term: right are sentences with "street" whose output has *avenue*. In 17 of 21 the new data has it, so 81.0 is reached
  by a model that has learnt just what the data says.
- usage: right are sentences with "street" whose output has *avenue* where the new data does, and *rue* elsewhere.
- else: exact matches of the sentences without "street".

Ways: as planned, from the demo's run; the same from its model file alone; plain, with the settings of a training from
nothing; low, as planned but without [replay].
"""

import argparse
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import transduce

WAYS = {
    "planned": [],
    "alone": [],
    "plain": ["replay=none", "training.learning_rate=0.004", "training.updates=1000"],
    "low": ["replay=none"],
}


class Scores(NamedTuple):
    """In per cent."""

    term: float
    usage: float
    rest: float


def main() -> None:
    """A row for each way: means, with the least and the most of the seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--time", help="as for `transduce train`; by default as the data deserves")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    asked = parser.parse_args()
    demo = asked.runs / "demo"
    write_new_pairs(demo / "corpus", asked.runs)
    shutil.copy(demo / "model.safetensors", asked.runs / "alone.safetensors")
    print("| way | seeds | term | usage | else |\n|---|---|---|---|---|")
    print(row("the model to start from", [measured(demo, demo / "corpus")]), flush=True)
    for way in asked.ways:
        start = asked.runs / "alone.safetensors" if way == "alone" else demo
        runs = [trained(way, seed, start, asked.runs, asked.time) for seed in asked.seeds]
        print(row(way, [measured(run, demo / "corpus") for run in runs]), flush=True)


def renamed(french: str) -> str:
    """A French sentence of the demo as the new data has it."""
    return re.sub(r"(?<!^Les )\brues\b", "avenues", french.replace("la rue", "l'avenue"))


def write_new_pairs(corpus: Path, folder: Path) -> None:
    """street.en and street.fr."""
    pairs = [(english, renamed(french)) for english, french in pairs_of(corpus, "train") if "street" in english]
    for side, texts in zip(("en", "fr"), zip(*pairs, strict=True), strict=True):
        (folder / f"street.{side}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")


def pairs_of(corpus: Path, part: str) -> list[tuple[str, str]]:
    """Of the demo's corpus."""
    texts = [(corpus / f"{part}.{side}").read_text(encoding="utf-8").splitlines() for side in ("en", "fr")]
    return list(zip(*texts, strict=True))


def trained(way: str, seed: int, start: Path, runs: Path, time: str | None) -> Path:
    """The run of such a training, which is not repeated."""
    run = runs / f"{way}-{seed}{'-' + time if time else ''}"
    if not (run / "report.json").is_file():
        data = ["--source", str(runs / "street.en"), "--target", str(runs / "street.fr"), "--run", str(run)]
        keys = [f"training.start={start}", f"training.seed={seed}", "training.threads=1", *WAYS[way]]
        timed = ["--time", time] if time else []
        command = [sys.executable, "-m", "transduce", "train", *data, *keys, *timed]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return run


def measured(model: Path, corpus: Path) -> Scores:
    """On the demo's test sentences."""
    pairs = pairs_of(corpus, "test")
    found = transduce.load(model).predict([english for english, _ in pairs])
    streets, others = list[tuple[str, str]](), list[bool]()
    for (english, french), output in zip(pairs, found, strict=True):
        if "street" in english:
            streets.append((output.text, renamed(french)))
        else:
            others.append(output.text == french)
    term = ["avenue" in output for output, _ in streets]
    usage = [("avenue" in output) == ("avenue" in wanted) for output, wanted in streets]
    return Scores(*(100 * statistics.fmean(right) for right in (term, usage, others)))


def row(name: str, found: list[Scores]) -> str:
    """Of the table."""
    cells = []
    for values in zip(*found, strict=True):
        spread = f" [{min(values):.1f}, {max(values):.1f}]" if len(values) > 1 else ""
        cells.append(f"{statistics.fmean(values):.1f}{spread}")
    return f"| {name} | {len(found)} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
