"""How fast are training and decoding, beside the machine's limit and beside what one would use instead?

    python benchmarks/speed.py --data ../shared/data/multi30k [--model small.safetensors] [--peers] [--rounds 3]
    python benchmarks/speed.py --data ../shared/data/multi30k --device cuda

Every worker (benchmarks/peers/) is a process of its own; a round runs each of them once, so that all of them meet the
same weather, and what is written is the median of the rounds with the least and the most. `--peers` makes the peers'
environments first (benchmarks/.environments, pinned versions). Without --model a model of the fixed work's size is
trained first (benchmarks/small.toml, half an hour): what is decoded is real text of real length. On a GPU there are no
8-bit products, and peers are measured on the processor alone.

Writes benchmarks/results/speed-MACHINE.json, in the place of what this kind of machine had, and docs/performance.md
with its figures.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import sacrebleu
from speed_report import name_of

import transduce
from transduce.core.errors import InputError
from transduce.data.files import read_lines
from transduce.runtime.devices import use_device
from transduce.runtime.environment import library_versions, machine

HERE = Path(__file__).parent
WORKERS = HERE / "peers"
ENVIRONMENTS = HERE / ".environments"
RESULTS = HERE / "results"
PINNED = {
    "huggingface": [
        "torch==2.13.0",
        "transformers==5.23.0",
        "accelerate==1.15.0",
        "x-transformers==2.31.10",
        "sacrebleu==2.6.0",
        "numpy",
    ],
    "ctranslate2": ["ctranslate2==4.8.5", "safetensors", "numpy"],
    "joeynmt": ["torch==2.13.0", "joeynmt==2.3.0", "sacrebleu==2.6.0", "importlib_metadata"],
}
OURS = "Transduce"
OUR_WAYS = {
    OURS: (),
    f"{OURS} int8": ("--precision", "int8"),
    f"{OURS} int8, shortlist": ("--precision", "int8", "--shortlist", "50"),
    f"{OURS} int8, pruned": ("--precision", "int8", "--prune", "1.5"),
    f"{OURS} int8, pruned, shortlist": ("--precision", "int8", "--prune", "1.5", "--shortlist", "50"),
}


@dataclass(frozen=True)
class Entry:
    """One line of the table: who, on which work, and the worker with its arguments.

    environment: a key of PINNED, or None for the one that this runs in.
    writes: whether it writes outputs when asked to, which are then scored.
    """

    who: str
    what: str
    worker: str
    arguments: tuple[str, ...]
    environment: str | None = None
    writes: bool = False

    def run(self, score: Callable[[Path], float]) -> dict[str, Any]:
        """The figures of one run: the last line that the worker prints, and what its outputs score."""
        command = [str(python(self.environment)), str(WORKERS / f"{self.worker}.py"), *self.arguments]
        outputs = RESULTS / "outputs.txt"
        command += ["--outputs", str(outputs)] if self.writes else []
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{self.who}, {self.what}: {' '.join(command)}\n{done.stdout}\n{done.stderr}")
        figures: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        if self.writes:
            figures["bleu"] = score(outputs)
            outputs.unlink()
        return figures


def python(environment: str | None) -> Path:
    """The interpreter of a peer's environment."""
    if environment is None:
        return Path(sys.executable)
    return ENVIRONMENTS / environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def make_environments(names: Iterable[str] = tuple(PINNED)) -> None:
    """Each once; made again only when its requirements change."""
    for name in names:
        requirements = PINNED[name]
        stamp = ENVIRONMENTS / name / ".installed"
        if stamp.is_file() and stamp.read_text().split() == requirements:
            continue
        print(f"Making the environment {name}: {' '.join(requirements)}", flush=True)
        venv.create(ENVIRONMENTS / name, with_pip=True, clear=True)
        subprocess.run([python(name), "-m", "pip", "install", "--quiet", *requirements], check=True)
        stamp.write_text(" ".join(requirements))


def entries(work: Path, model: Path, seconds: float, peers: bool) -> Iterator[Entry]:
    """Everything that is measured, in the order of a round."""
    yield Entry("the machine", "limits", "limits", ())
    for precision in ("fp32", "bf16"):
        training = (str(work), precision, str(seconds))
        yield Entry(OURS, f"training {precision}", "train_transduce", training)
        if peers:
            yield Entry("torch.nn.Transformer", f"training {precision}", "train_torch", training, "huggingface")
            yield Entry("Marian, Hugging Face", f"training {precision}", "train_marian", training, "huggingface")
            yield Entry("x-transformers", f"training {precision}", "train_x_transformers", training, "huggingface")
            yield Entry("JoeyNMT", f"training {precision}", "train_joeynmt", training, "joeynmt")
    for what, options in {
        "beam 5": ("--beam", "5"),
        "greedy": ("--beam", "1"),
        "one at a time, beam 5": ("--beam", "5", "--batch", "1", "--sentences", "200"),
    }.items():
        decoding, writes = (str(work), str(model), *options), "--batch" not in options
        for who, more in OUR_WAYS.items():
            if "--prune" not in more or what != "greedy":
                yield Entry(who, what, "decode_transduce", (*decoding, *more), writes=writes)
        if peers:
            for compute in ("float32", "int8"):
                arguments = (*decoding, "--compute", compute)
                yield Entry(f"CTranslate2 {compute}", what, "decode_ctranslate2", arguments, "ctranslate2", writes)
            yield Entry("Marian, Hugging Face", what, "decode_marian", decoding, "huggingface", writes)
    yield Entry(OURS, "first answer", "first_answer", (str(model),))
    yield Entry("import torch, no answer", "first answer", "first_answer", ())


def runs_on(entry: Entry, device: str) -> bool:
    """Whether it can be measured there."""
    return device == "cpu" or "int8" not in entry.arguments


def measure(everything: list[Entry], rounds: int, score: Callable[[Path], float]) -> list[dict[str, Any]]:
    """A row for each entry and figure: all rounds, and their least, median and most."""
    runs: dict[Entry, list[dict[str, Any]]] = {entry: [] for entry in everything}
    for number in range(rounds):
        for entry in everything:
            runs[entry].append(entry.run(score))
            print(f"round {number + 1}: {entry.who}, {entry.what}: {runs[entry][-1]}", flush=True)
    return [
        {
            "who": entry.who,
            "what": entry.what,
            "figure": figure,
            "least": min(values),
            "median": statistics.median(values),
            "most": max(values),
        }
        for entry, found in runs.items()
        for figure in found[0]
        for values in [[run[figure] for run in found]]
    ]


def main() -> None:
    """Prepare, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of Multi30k")
    parser.add_argument("--model", type=Path, help="a model file of the fixed work's size")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20, help="of training, a worker and round")
    asked = parser.parse_args()
    if asked.device == "cuda" and asked.peers:
        parser.error("--peers are measured on the processor: leave out --device, or --peers.")
    try:
        use_device(asked.device)  # in all workers, too
    except InputError as error:
        parser.error(f"--device {error}")
    if asked.peers:
        make_environments()
    RESULTS.mkdir(exist_ok=True)
    work = RESULTS / "work.npz"
    if not work.is_file():
        subprocess.run([sys.executable, str(HERE / "prepare_work.py"), str(asked.data), str(work)], check=True)
    model = asked.model or small_model(asked.data)
    everything = [each for each in entries(work, model, asked.seconds, asked.peers) if runs_on(each, asked.device)]
    rows = measure(everything, asked.rounds, scorer(model, asked.data))
    described = {key: each for key, each in machine().items() if asked.device == "cuda" or key != "accelerator"}
    about = {"date": date.today().isoformat(), "machine": described, "versions": library_versions(), "peers": PINNED}
    result = {**about, "work": ratio(work), "rounds": asked.rounds, "rows": rows}
    (RESULTS / f"speed-{name_of(about['machine'])}.json").write_text(json.dumps(result, indent=1) + "\n")
    subprocess.run([sys.executable, str(HERE / "speed_report.py")], check=True)


def scorer(model: Path, data: Path) -> Callable[[Path], float]:
    """A function from a file of token ids to the cased sacreBLEU (13a) of their text on test_2016_flickr."""
    tokenizer = transduce.load(model).task.tokenizers["target"]
    references = list(read_lines(data / "raw" / "test_2016_flickr.de.gz"))

    def score(outputs: Path) -> float:
        rows = outputs.read_text().splitlines()
        texts = [tokenizer.decode([int(token) for token in row.split()]) for row in rows]
        return round(sacrebleu.corpus_bleu(texts, [references]).score, 2)

    return score


def ratio(work: Path) -> dict[str, float]:
    """What the count of operations must know of the work: positions of a source for each token of a target."""
    with np.load(work) as arrays:
        pairs = len(arrays["source_ends"])
        source, target = (int(arrays[f"{side}_ends"][-1]) + pairs for side in ("source", "target"))
        return {"vocabulary": int(arrays["vocabulary"]), "source_per_target": source / target}


def small_model(data: Path) -> Path:
    """A model of the fixed work, trained to the end."""
    run = HERE.parent / "runs" / "speed-small"
    recipe = HERE / "small.toml"
    command = [sys.executable, "-m", "transduce", "train", str(recipe), f"data.root={data}", "--run", str(run)]
    subprocess.run(command, check=True)
    return run / "model.safetensors"


if __name__ == "__main__":
    main()
