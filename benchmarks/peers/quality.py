"""What every worker of `benchmarks/time_to_quality.py` shares: the validation set, its BLEU, and a curve over time.

    WORKER.py WORK FOLDER [--threads 1] [--updates 2400] [--every 200] [--sizes small]

WORK: what `prepare_work.py` wrote. FOLDER: for checkpoints and for curve.jsonl; the same command goes on from there.
Needs numpy and sacrebleu alone; times are read as Linux tells them.
"""

import argparse
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import sacrebleu

LONGEST = 100  # tokens of a translation


def arguments(*more: tuple[str, str | None]) -> argparse.Namespace:
    """Those above; `more`: further options of one worker with their defaults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--updates", type=int, default=2400)
    parser.add_argument("--every", type=int, default=200, help="updates between validations")
    parser.add_argument("--sizes", choices=("small", "narrow"), default="small", help="of the model: see work.SIZES")
    for name, default in more:
        parser.add_argument(name, default=default)
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    return asked


class Validation:
    """Sources and references as token ids without end, and the BLEU of translations."""

    def __init__(self, work: Path) -> None:
        with np.load(work) as arrays:
            self.sources, self.targets = (rows(arrays, f"validation_{side}") for side in ("source", "target"))
            self._references: list[str] = arrays["validation_references"].tolist()
            self._spellings: list[str] = arrays["spellings"].tolist()

    def bleu(self, outputs: Iterable[Iterable[int]]) -> float:
        """Cased sacreBLEU (13a) of the text of `outputs`, token ids without end, in the order of the sources."""
        texts = ["".join(self._spellings[token] for token in row).removeprefix(" ") for row in outputs]
        return sacrebleu.corpus_bleu(texts, [self._references]).score


def rows(arrays: "np.lib.npyio.NpzFile", name: str) -> list[list[int]]:
    """Sequences of token ids as `prepare_work.py` writes them."""
    parts = np.split(arrays[f"{name}_values"], arrays[f"{name}_ends"][:-1])
    return [part.tolist() for part in parts]


class Spent(NamedTuple):
    """Seconds by the wall and of the processor."""

    wall: float
    processor: float

    def plus(self, other: "Spent") -> "Spent":
        """The sum of both."""
        return Spent(self.wall + other.wall, self.processor + other.processor)

    def minus(self, other: "Spent") -> "Spent":
        """The difference of both."""
        return Spent(self.wall - other.wall, self.processor - other.processor)


def spent(process: int | str = "self") -> Spent:
    """What a process has used since it began, all its threads together."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    user, system, begun = (int(fields[place]) / os.sysconf("SC_CLK_TCK") for place in (11, 12, 19))
    return Spent(float(Path("/proc/uptime").read_text().split()[0]) - begun, user + system)


class Curve:
    """Quality over time as lines of JSON, summed over the processes of a training that was stopped and went on.

    A line has the time from the start of the process until the weights were there, in all and without validations, and
    what their validation took.

    Args:
        update: where the training goes on; lines of later updates are dropped.
        process: whose time it is.
    """

    def __init__(self, path: Path, update: int = 0, process: int | str = "self") -> None:
        self._path, self._process = path, process
        self._used, self._validated = Spent(0, 0), Spent(0, 0)
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
        kept = [line for line in lines if line["update"] <= update]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in kept))
        if kept:
            self._begun = Spent(kept[-1]["seconds"], kept[-1]["processor_seconds"])
            trained = Spent(kept[-1]["training_seconds"], kept[-1]["training_processor_seconds"])
            took = Spent(kept[-1]["validation_seconds"], kept[-1]["validation_processor_seconds"])
            self._used = self._begun.plus(took)
            self._validated = self._used.minus(trained)

    def begin(self) -> None:
        """A validation begins."""
        self._begun = self._used.plus(spent(self._process))

    def end(self, update: int, tokens: int, bleu: float) -> None:
        """It has ended; tokens: of the target that were trained on, without padding."""
        trained = self._begun.minus(self._validated)
        took = self._used.plus(spent(self._process)).minus(self._begun)
        self._validated = self._validated.plus(took)
        line = {"update": update, "tokens": tokens, "bleu": round(bleu, 3)}
        for name, each in {"": self._begun, "training_": trained, "validation_": took}.items():
            line |= {f"{name}seconds": round(each.wall, 2), f"{name}processor_seconds": round(each.processor, 2)}
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
