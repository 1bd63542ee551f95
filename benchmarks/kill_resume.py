"""Kill -9 a training at random moments, start it again until it is done: is the model file the same, bit for bit?

    python benchmarks/kill_resume.py --cases 20 --precision fp32 bf16
    python benchmarks/kill_resume.py --cases 25 --precision fp32 --processes 2 4
    python benchmarks/kill_resume.py --cases 25 --precision fp32 --processes 2 4 --parallel fsdp

A tiny translation model is trained by `python -m transduce train` (dropout, Muon and AdamW, averaged weights, two
batches an update, validation that decodes, checkpoints every few updates). Each case kills its process at a moment
drawn uniformly from what an uninterrupted training takes, imports and evaluation included, one to three times over;
then lets it finish. Of several processes that torchrun starts, one at random is killed, or all with torchrun itself.
POSIX. Prints a table, exits 1 if any file differs.
"""

import argparse
import hashlib
import itertools
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

RECIPE = """
[task]
metrics = ["bleu"]
[data]
root = "{root}"
train = [{{ source = "train.digits", target = "train.words" }}]
validation = {{ source = "valid.digits", target = "valid.words" }}
[tokenizer]
kind = "whitespace"
[batch]
tokens = 400
[model]
d_model = 32
heads = 2
encoder_layers = 2
decoder_layers = 2
feed_forward = 64
dropout = 0.1
inner_dropout = 0.1
[training]
updates = {updates}
optimizer = "{optimizer}"
parallel = "{parallel}"
learning_rate = 5e-3
warmup = 20
accumulate = 2
average = 0.95
precision = "{precision}"
best = "bleu"
validate_every = 15
decode_sentences = 50
checkpoint_every = 7
log_every = 5
"""
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--precision", nargs="+", default=["fp32", "bf16"], choices=["fp32", "bf16"])
    parser.add_argument("--processes", type=int, nargs="+", default=[1], help="how many train together")
    parser.add_argument("--parallel", choices=["ddp", "fsdp"], default="ddp", help="what several processes share")
    parser.add_argument("--updates", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, seed {options.seed}")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRANSDUCE_CACHE"] = f"{folder}/cache"
        write_corpus(Path(folder))
        kinds = itertools.product(options.precision, options.processes)
        failed = [measure(Path(folder), precision, processes, options) for precision, processes in kinds]
    sys.exit(1 if any(failed) else 0)


def measure(folder: Path, precision: str, processes: int, options: argparse.Namespace) -> int:
    """All cases of one precision and number of processes; how many differed."""
    recipe = folder / f"{precision}.toml"
    optimizer = "muon" if options.parallel == "ddp" else "adamw"
    settings = {
        "precision": precision,
        "updates": options.updates,
        "optimizer": optimizer,
        "parallel": options.parallel,
    }
    recipe.write_text(RECIPE.format(root=folder, **settings))
    began = time.monotonic()
    whole = folder / f"{precision}-{processes}-whole"
    train(recipe, whole, processes)
    seconds = time.monotonic() - began
    wanted = sha256(whole)
    print(
        f"\n{precision}, {processes} together: uninterrupted {seconds:.1f} s, sha256 {wanted[:16]}\n"
        "case  kills  killed after updates   same"
    )
    drawn, differed = random.Random(options.seed), 0
    for case in range(1, options.cases + 1):
        run = folder / f"{precision}-{processes}-{case}"
        moments = [drawn.uniform(0, seconds) for _ in range(drawn.randint(1, 3))]
        stood = [kill_after(recipe, run, moment, processes, drawn) for moment in moments]
        train(recipe, run, processes)
        same = sha256(run) == wanted
        differed += not same
        print(f"{case:4}  {len(moments):5}  {' '.join(stood):21}  {'yes' if same else 'NO'}", flush=True)
    print(f"{precision}, {processes} together: {options.cases - differed} of {options.cases} the same.")
    return differed


def command(recipe: Path, run: Path, processes: int) -> list[str]:
    """The one command, first time and every time."""
    started = [sys.executable, "-m"]
    if processes > 1:
        started += ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m", "--"]
    return [*started, "transduce", "train", str(recipe), "--run", str(run)]


def train(recipe: Path, run: Path, processes: int) -> None:
    """To its end."""
    subprocess.run(command(recipe, run, processes), check=True, stdout=subprocess.DEVNULL)


def kill_after(recipe: Path, run: Path, seconds: float, processes: int, drawn: random.Random) -> str:
    """Kill after so long; where the newest checkpoint stood then, `done` if it was faster, `-` if there was none."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command(recipe, run, processes), stdout=quiet, stderr=quiet) as process:
        try:
            process.wait(seconds)
            return "done"
        except subprocess.TimeoutExpired:
            for victim in victims(process.pid, drawn):
                with suppress(psutil.NoSuchProcess):
                    victim.kill()
    checkpoints = sorted((run / "checkpoints").glob("update-*.safetensors"))
    return str(int(checkpoints[-1].stem.removeprefix("update-"))) if checkpoints else "-"


def victims(pid: int, drawn: random.Random) -> list[psutil.Process]:
    """One of the processes that train, or everything; a process alone is everything."""
    started = psutil.Process(pid)
    trainers = started.children()
    if trainers and drawn.random() < 0.7:
        return [drawn.choice(trainers)]
    return [started, *trainers]


def sha256(run: Path) -> str:
    """Of the model file."""
    return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()


def write_corpus(folder: Path) -> None:
    """2,000 + 100 numbers, digit by digit, to their digits' names from the last to the first."""
    drawn = random.Random(5)
    numbers = list(dict.fromkeys(str(drawn.randrange(10 ** drawn.randint(1, 8))) for _ in range(4000)))
    for name, chosen in (("train", numbers[:2000]), ("valid", numbers[2000:2100])):
        (folder / f"{name}.digits").write_text("".join(" ".join(number) + "\n" for number in chosen))
        words = (" ".join(NAMES[int(digit)] for digit in reversed(number)) for number in chosen)
        (folder / f"{name}.words").write_text("".join(f"{line}\n" for line in words))


if __name__ == "__main__":
    main()
