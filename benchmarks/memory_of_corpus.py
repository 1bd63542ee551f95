"""Does training need more memory when the corpus grows? Peak resident memory of the same 60 updates on two corpora.

    python benchmarks/memory_of_corpus.py --pairs 5000000

The small corpus has 29,000 pairs (Multi30k's training set where --data names its folder, else made-up sentences of
the same lengths); the large one repeats it until it has --pairs, written as gzip line by line. Both are trained with
one tokenizer, learnt before from the small one, as the vocabulary decides how large the model is. What is measured is
a whole process: reading, tokenising, writing the store, planning epochs, training. RssAnon is what the process itself
allocated; VmHWM counts the pages of the memory-mapped store too, which the system may take back at any time.
Linux. Exits 1 when RssAnon grows by more than a tenth.
"""

import argparse
import gzip
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

SMALL = 29_000
RECIPE = """
[data]
root = "{root}"
train = [{{ source = "{name}.source.gz", target = "{name}.target.gz" }}]
[tokenizer]
file = "tokenizer.json"
[batch]
tokens = 2048
[model]
d_model = 64
encoder_layers = 2
decoder_layers = 2
feed_forward = 128
[training]
updates = {updates}
warmup = 10
checkpoint_every = 20
log_every = 10
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5_000_000)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--data", type=Path, help="a folder with train.en.gz and train.de.gz")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        pairs = list(itertools.islice(real_pairs(options.data) if options.data else made_up_pairs(), SMALL))
        learn_tokenizer(root, pairs)
        print("pairs       seconds   RssAnon   VmHWM")
        peaks = []
        for name, count in (("small", len(pairs)), ("large", options.pairs)):
            write(root, name, itertools.islice(itertools.cycle(pairs), count))
            (root / f"{name}.toml").write_text(RECIPE.format(root=root, name=name, updates=options.updates))
            peaks.append(measure(root, name, count))
    ratios = [large / small for small, large in zip(*peaks, strict=True)]
    print(f"ratio: RssAnon {ratios[0]:.3f}, VmHWM {ratios[1]:.3f}")
    sys.exit(0 if ratios[0] <= 1.1 else 1)


def measure(root: Path, name: str, count: int) -> tuple[int, int]:
    """Peaks of RssAnon (sampled 100 times a second) and VmHWM, bytes, of one training in its own process."""
    began = time.monotonic()
    command = [sys.executable, __file__, "--train", str(root / f"{name}.toml"), str(root / f"run-{name}")]
    environment = {**os.environ, "TRANSDUCE_CACHE": str(root / f"cache-{name}")}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    anonymous, everything = json.loads(done.stdout.splitlines()[-1])
    seconds = time.monotonic() - began
    print(f"{count:<11,} {seconds:7.1f}   {anonymous / 2**20:5.0f} MiB {everything / 2**20:5.0f} MiB", flush=True)
    return anonymous, everything


def train(recipe: str, run: str) -> None:
    """In the process that is measured."""
    from rich.console import Console

    from transduce.recipe.recipe import load_recipe
    from transduce.training.display import Display
    from transduce.training.run import run_training

    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.01):
            peak[0] = max(peak[0], status("RssAnon"))

    watcher = threading.Thread(target=watch)
    watcher.start()
    run_training(load_recipe(Path(recipe)), Path(run), Display(Console(stderr=True)))
    done.set()
    watcher.join()
    print(json.dumps([peak[0], status("VmHWM")]))


def status(key: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))


def learn_tokenizer(root: Path, pairs: list[tuple[str, str]]) -> None:
    """One for both sides, from the small corpus."""
    from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer

    learnt = train_tokenizer(TokenizerConfig(vocabulary=4000), (text for pair in pairs for text in pair))
    (root / "tokenizer.json").write_text(learnt.to_json(), encoding="utf-8")


def write(root: Path, name: str, pairs: Iterator[tuple[str, str]]) -> None:
    """Two gzip files, a line at a time."""
    source_path, target_path = (root / f"{name}.{side}.gz" for side in ("source", "target"))
    with gzip.open(source_path, "wb", 1) as source, gzip.open(target_path, "wb", 1) as target:
        for one, other in pairs:
            source.write(f"{one}\n".encode())
            target.write(f"{other}\n".encode())


def real_pairs(folder: Path) -> Iterator[tuple[str, str]]:
    """Multi30k's training set."""
    from transduce.data.files import read_lines

    yield from zip(read_lines(folder / "train.en.gz"), read_lines(folder / "train.de.gz"), strict=True)


def made_up_pairs() -> Iterator[tuple[str, str]]:
    """Sentences of 5 to 25 words of a vocabulary of 9,000; the target is the source with each word turned round."""
    drawn = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(drawn.choices(letters, k=drawn.randint(2, 9))) for _ in range(9000)]
    while True:
        chosen = [words[int(len(words) * drawn.random() ** 3)] for _ in range(drawn.randint(5, 25))]
        yield " ".join(chosen), " ".join(word[::-1] for word in chosen)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train(*sys.argv[2:])
    else:
        main()
