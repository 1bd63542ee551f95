"""Translation without torch beside the same with torch: first answer, memory, speed, and whether the outputs are equal.

The first answer is that of a command, and that of a server.

    python benchmarks/runtime.py --data ../shared/data/multi30k      # with a random model of small.toml's size
    python benchmarks/runtime.py --data ../shared/data/multi30k --model runs/small
    python benchmarks/runtime.py --data .. --python bare/bin/python  # with the wheel in an environment without torch

Both engines take turns, each in a process of its own. Seconds are given by the clock and of the processor: where other
programs run beside, only the latter can be compared.
"""

import argparse
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from markdown_table import markdown_table

Engines = dict[str, tuple[str, str]]  # by name: an interpreter, and a key of `FIRST`
LINES = 320
FIRST = {
    "torch": ["-m", "transduce", "predict", "--engine", "torch"],
    "kernels alone": ["-m", "transduce", "predict", "--engine", "kernels"],
    "wheel": ["-m", "transduce_runtime", "predict"],
}
SERVER = {
    "torch": ["-m", "transduce", "serve", "--engine", "torch"],
    "kernels alone": ["-m", "transduce", "serve", "--engine", "kernels"],
    "wheel": ["-m", "transduce_runtime", "serve"],
}
WORK = """
import hashlib, json, sys, time
{load}
path, lines, search, precision = json.loads(sys.stdin.read())
model = load(path, precision=precision)
model.predict(lines[:8], **search)
wall, cpu = time.perf_counter(), time.process_time()
found = model.predict(lines, **search)
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
told = [json.dumps(each.to_dict()) for each in found]
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
mib = {{name: int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}}
told = [hashlib.sha256(each.encode()).hexdigest() for each in told]
print(json.dumps({{"wall": wall, "cpu": cpu, "told": told, **mib}}))
"""
LOADS = {
    "torch": "from transduce import load",
    "kernels alone": "from transduce.without_torch.translator import load",
    "wheel": "from transduce_runtime import load",
}
SEARCHES: dict[str, tuple[dict[str, Any], str]] = {
    "greedy, fp32": ({"method": "greedy"}, "fp32"),
    "beam 5, fp32": ({"beam": 5}, "fp32"),
    "beam 5, prune 1.5, int8": ({"beam": 5, "prune": 1.5}, "int8"),
}


def environment(engine: str, threads: int) -> dict[str, str]:
    """Of a process that is measured: bytecode may be written, as an installed package has it."""
    source = {} if engine == "wheel" else {"PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src")}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return {**kept, **source, "OMP_NUM_THREADS": str(threads)}


def drawn_model(folder: Path, data: Path) -> Path:
    """A model of small.toml's size with random weights, whose outputs are about as long as their sources."""
    import torch

    from transduce.core.model_file import ModelFile, lasting_tensors, save_model_file
    from transduce.data.columns.packed import pack
    from transduce.data.columns.tokens import Tokens
    from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
    from transduce.pipeline.outline import make_model, make_task
    from transduce.recipe.recipe import load_recipe

    short = ("search.max_length_factor=1.0", "search.max_length_offset=3")
    recipe = load_recipe(Path(__file__).with_name("small.toml"), short)
    texts = [line for side in ("en", "de") for line in lines_of(data / "raw" / f"train.{side}.gz")]
    tokenizer = train_tokenizer(TokenizerConfig(vocabulary=8000), texts)
    task = make_task(
        recipe, {"source": Tokens(tokenizer, ends=True), "target": Tokens(tokenizer, starts=True, ends=True)}
    )
    torch.manual_seed(1)
    model = make_model(recipe, task)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.02)
    tokenizers, columns = pack(task.columns)
    path = folder / "model.safetensors"
    save_model_file(
        path, ModelFile(lasting_tensors(model), recipe.to_table(), tokenizers, {"seed": 1}, {}, columns=columns)
    )
    return path


def lines_of(path: Path) -> list[str]:
    """Of a compressed file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


def first_answer(python: str, engine: str, model: Path, text: str) -> dict[str, float]:
    """Seconds of a process that gives one answer, by the clock and of the processor."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(
        [python, *FIRST[engine], str(model)],
        input=f"{text}\n".encode(), stdout=subprocess.PIPE, env=environment(engine, 2), check=True,
    )  # fmt: skip
    wall = time.perf_counter() - start
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return {"wall": wall, "cpu": cpu}


def served_answer(python: str, engine: str, model: Path, text: str) -> dict[str, float]:
    """The same of a server, asked as soon as it is healthy, and its memory in MiB then."""
    start = time.perf_counter()
    command = [python, *SERVER[engine], f"it={model}", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(engine, 2)) as process:
        try:
            told = (re.search(r"Serving on (http://[^,]+)", line) for line in process.stderr or ())
            address = next(found[1] for found in told if found)
            with urlopen(f"{address}/health", timeout=60):  # waits until it is answered
                pass
            body = json.dumps({"q": text, "source": "auto", "target": "und", "model": "it"}).encode()
            with urlopen(Request(f"{address}/translate", body, {"content-type": "application/json"}), timeout=60):
                pass
            wall = time.perf_counter() - start
            ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            status = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
            mib = {name: int(status[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM")}
            return {"wall": wall, "cpu": sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK"), **mib}
        finally:
            process.terminate()


def work(python: str, engine: str, model: Path, lines: list[str], search: dict[str, Any], precision: str) -> Any:
    """Seconds for `lines`, memory, and what was said."""
    given = json.dumps([str(model), lines, search, precision])
    done = subprocess.run(
        [python, "-c", WORK.format(load=LOADS[engine])],
        input=given, env=environment(engine, 1), capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def spread(values: list[float], digits: int = 2) -> str:
    """Median, least and most."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} - {max(values):.{digits}f})"


def main() -> None:
    """Measure and print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of Multi30k")
    parser.add_argument("--model", type=Path, help="a model from English; by default one is drawn")
    parser.add_argument("--python", help="of an environment with the wheel and without torch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lines", type=int, default=LINES, help="of the test set, at most")
    given = parser.parse_args()
    alone = (given.python, "wheel") if given.python else (sys.executable, "kernels alone")
    engines = {"torch": (sys.executable, "torch"), alone[1]: alone}
    lines = lines_of(given.data / "raw" / "test_2016_flickr.en.gz")[: given.lines]
    with tempfile.TemporaryDirectory() as folder:
        model = given.model or drawn_model(Path(folder), given.data)
        print(starts(engines, model, lines[0], given.rounds))
        print(servers(engines, model, lines[0], given.rounds))
        print(speeds(engines, model, lines, given.rounds))


def starts(engines: Engines, model: Path, text: str, rounds: int) -> str:
    """The table of first answers."""
    rows = [[name, *_seconds(runs)] for name, runs in in_turn(first_answer, engines, model, text, rounds).items()]
    return markdown_table(["from process start to the first answer", "s by the clock", "s of the processor"], rows)


def servers(engines: Engines, model: Path, text: str, rounds: int) -> str:
    """The table of first answers of servers."""
    rows = [
        [name, *_seconds(runs), *(spread([each[kind] for each in runs], 0) for kind in ("VmRSS", "VmHWM"))]
        for name, runs in in_turn(served_answer, engines, model, text, rounds).items()
    ]
    heads = ["a server, from its start to the first answer", "s by the clock", "s of the processor"]
    return markdown_table([*heads, "MiB resident", "MiB at most"], rows)


def in_turn(
    answer: Callable[[str, str, Path, str], dict[str, float]], engines: Engines, model: Path, text: str, rounds: int
) -> dict[str, list[dict[str, float]]]:
    """What each engine took in each round; the first, which fills the caches, is left out."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in engines}
    for _ in range(rounds + 1):
        for name, engine in engines.items():
            found[name].append(answer(*engine, model, text))
    return {name: runs[1:] for name, runs in found.items()}


def _seconds(runs: list[dict[str, float]]) -> list[str]:
    return [spread([each[kind] for each in runs]) for kind in ("wall", "cpu")]


def speeds(engines: Engines, model: Path, lines: list[str], rounds: int) -> str:
    """The table of speed, memory and equality."""
    rows = []
    for search, (settings, precision) in SEARCHES.items():
        found: dict[str, list[Any]] = {name: [] for name in engines}
        for _ in range(rounds):
            for name, engine in engines.items():
                found[name].append(work(*engine, model, lines, settings, precision))
        first, second = found.values()
        equal = sum(one == other for one, other in zip(first[0]["told"], second[0]["told"], strict=True))
        ratio = [one["cpu"] / other["cpu"] for one, other in zip(first, second, strict=True)]
        for name, runs in found.items():
            alone = name != "torch"
            rows.append(
                [
                    search,
                    name,
                    spread([len(lines) / run["cpu"] for run in runs], 0),
                    spread(ratio, 3) if alone else "1",
                    f"{max(run['VmRSS'] for run in runs):.0f} / {max(run['VmHWM'] for run in runs):.0f}",
                    f"{equal} of {len(lines)}" if alone else "",
                ]
            )
    heads = ["one thread", "engine", "sentences a second of the processor", "relative to torch", "MiB: resident / most"]
    return markdown_table([*heads, "predictions equal to the bit"], rows)


if __name__ == "__main__":
    main()
