"""Does the wheel work in an empty environment, and does what needs an extra name it?

    python benchmarks/bare_install.py dist/transduce-0.1.0-cp311-abi3-manylinux_2_34_x86_64.whl

Makes a virtual environment, installs the wheel into it and nothing else, runs each verb as a user would, and prints one
line for each. Then it installs the extra `serve` and asks a server for its health. Exit code 1 if anything failed.

    --keep FOLDER      make the environment there, and leave it
    --constraint FILE  versions for pip, by default those of the repository
    --python PATH      the interpreter of the environment, by default this one
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
RECIPE = """
[task]
kind = "translation"
[data]
train = [{ source = "train.digits", target = "train.words" }]
validation = { source = "test.digits", target = "test.words" }
test = { source = "test.digits", target = "test.words" }
[tokenizer]
kind = "whitespace"
[model]
kind = "transformer"
d_model = 32
heads = 2
encoder_layers = 1
decoder_layers = 1
[training]
updates = 20
validate_every = 10
"""
IN_PYTHON = """
import json, transduce
found = transduce.evaluate("runs/tiny", source="test.digits", reference="test.words")
print(json.dumps(found.to_dict()))
try:
    transduce.load("runs/tiny").predict("1 2 3").attention().plot()
except transduce.InputError as error:
    print(error)
"""
Check = Callable[[subprocess.CompletedProcess[str]], bool]


class Bare:
    """An environment with the wheel alone, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.work = folder / "environment" / "bin", folder / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.failed = 0
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TRANSDUCE"))}
        self.environment = {**kept, "TRANSDUCE_CACHE": str(folder / "cache")}

    def step(self, name: str, command: list[str], check: Check, given: str = "") -> None:
        """Run a command of the environment, and print whether it did what it should."""
        start = time.monotonic()
        done = subprocess.run([str(self.bin / command[0]), *command[1:]], input=given, capture_output=True, text=True,
                              cwd=self.work, env=self.environment, check=False)  # fmt: skip
        self.tell(name, check(done), start, f"exit code {done.returncode}\n{done.stdout}{done.stderr}")

    def tell(self, name: str, right: bool, start: float, told: str) -> None:
        """One line; of a failure also what was told."""
        print(f"{'ok    ' if right else 'FAILED'} {name:<58} {time.monotonic() - start:6.1f} s", flush=True)
        if not right:
            self.failed += 1
            print(told[-3000:])


def succeeds(*texts: str) -> Check:
    """Exit code 0, and these texts in the output."""
    return lambda done: done.returncode == 0 and all(text in done.stdout for text in texts)


def has_kernels(done: subprocess.CompletedProcess[str]) -> bool:
    """The compiled kernels were found, and load."""
    return succeeds("kernels: ")(done) and "kernels: none" not in done.stdout


def names(extra: str) -> Check:
    """Exit code 2 and the command that installs the extra."""
    return lambda done: done.returncode == 2 and f"transduce[{extra}]" in done.stderr


def write_data(folder: Path) -> None:
    """Numbers and their digits in words."""
    for name, start in (("train", 0), ("test", 1)):
        numbers = [f"{number:03}" for number in range(start, 1000, 3)]
        sources = "".join(f"{' '.join(each)}\n" for each in numbers)
        targets = "".join(f"{' '.join(DIGITS[int(digit)] for digit in each)}\n" for each in numbers)
        (folder / f"{name}.digits").write_text(sources, encoding="utf-8")
        (folder / f"{name}.words").write_text(targets, encoding="utf-8")
    (folder / "tiny.toml").write_text(RECIPE, encoding="utf-8")


def same_figures(bare: Bare) -> Check:
    """Python says what the command says, and the missing library is named with its extra."""

    def check(done: subprocess.CompletedProcess[str]) -> bool:
        if done.returncode != 0:
            return False
        first, *others = done.stdout.splitlines()
        told = json.loads((bare.work / "evaluation.json").read_text(encoding="utf-8"))
        return json.loads(first)["scores"] == told["scores"] and "transduce[figures]" in " ".join(others)

    return check


def kept(path: Path, check: Check) -> Check:
    """The same, and the output goes into a file."""

    def written(done: subprocess.CompletedProcess[str]) -> bool:
        path.write_text(done.stdout, encoding="utf-8")
        return check(done)

    return written


def serves(bare: Bare) -> None:
    """A real server: it answers for its health, translates, and stops in order."""
    start = time.monotonic()
    command = [str(bare.bin / "transduce"), "serve", "runs/tiny", "--port", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    server = subprocess.Popen(command, cwd=bare.work, env=bare.environment, **pipes)
    told, right = "", False
    assert server.stdout is not None
    for line in server.stdout:
        told += line
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            with urllib.request.urlopen(f"{found[0]}/health", timeout=60) as answer:
                right = answer.status == 200
            break
    server.send_signal(signal.SIGTERM)
    rest, _ = server.communicate(timeout=120)
    bare.tell("serve: answers /health, and stops on SIGTERM", right and server.returncode == 0, start, told + rest)


def run(bare: Bare) -> None:
    """Every verb of a bare installation."""
    write_data(bare.work)
    sides = ["--source", "test.digits", "--reference", "test.words"]
    evaluation = bare.work / "evaluation.json"
    bare.step("transduce --version: the wheel's kernels are in use", ["transduce", "--version"], has_kernels)
    bare.step("train", ["transduce", "train", "tiny.toml"], succeeds("all 20 updates done", "transduce[figures]"))
    predicts = ["transduce", "predict", "runs/tiny"]
    bare.step("predict", predicts, lambda done: succeeds()(done) and done.stdout.count("\n") == 1, given="1 2 3\n")
    evaluates = ["transduce", "evaluate", "runs/tiny", *sides, "--json"]
    bare.step("evaluate", evaluates, kept(evaluation, succeeds("BLEU")))
    bare.step("transduce.evaluate; plot() names the extra", ["python", "-c", IN_PYTHON], same_figures(bare))
    demo = ["transduce", "demo", "training.updates=20", "training.validate_every=20"]
    bare.step("demo, 20 updates", demo, succeeds("runs/demo"))
    bare.step("serve names the extra", ["transduce", "serve", "runs/tiny"], names("serve"))
    bare.step("info", ["transduce", "info", "runs/tiny"], succeeds("tiny"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--constraint", type=Path, default=ROOT / "constraints.txt")
    parser.add_argument("--python", default=sys.executable)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        bare = Bare((asked.keep or Path(temporary)).resolve())
        start = time.monotonic()
        subprocess.run([asked.python, "-m", "venv", str(bare.bin.parent)], check=True)
        wheel = str(asked.wheel.resolve())
        install = ["python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--constraint"]
        bare.step("pip install of the wheel", [*install, str(asked.constraint.resolve()), wheel], succeeds())
        run(bare)
        extra = f"{wheel}[serve]"
        bare.step("pip install of the extra serve", [*install, str(asked.constraint.resolve()), extra], succeeds())
        serves(bare)
        print(f"{bare.failed} failed; {time.monotonic() - start:.0f} s in all")
        return 1 if bare.failed else 0


if __name__ == "__main__":
    sys.exit(main())
