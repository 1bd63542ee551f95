"""What grows with what: time a token with the tokens before it, memory of training with the corpus, time with the beam.

    python benchmarks/growth.py MODEL --data ../shared/data/multi30k/raw [--pairs 500000]

1. A decoding step of one hypothesis, and of 64, after 1 .. 512 tokens. With a cache a step computes one position; what
   still grows is the attention to those before, and their copy when the cache gets longer.
2. Peak memory of the same updates on 29,000 pairs and on --pairs (memory_of_corpus.py).
3. A beam of k = 1 .. 10 beside greedy search, on the same sentences: at most k times as long.

Times are processor time of one thread, which other work on the machine does not stretch; medians, measured in turn.
Prints a table and writes results/growth.json.
"""

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import memory_of_corpus
import torch

import transduce
from transduce.core.padded import Padded
from transduce.data.files import read_lines
from transduce.pipeline.pipeline import Pipeline
from transduce.runtime.environment import library_versions, machine

RESULT = Path(__file__).parent / "results" / "growth.json"
BEFORE = (1, 16, 32, 64, 128, 256, 512)
ROWS, SOURCE, STEPS = (1, 64), 20, 9  # hypotheses, source positions, steps that are timed around each length
WIDTHS = (1, 2, 3, 4, 5, 6, 8, 10)
ROUNDS = 3


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a run directory or model file, English to something")
    parser.add_argument("--data", type=Path, required=True, help="a folder with test_2016_flickr.en.gz and train.*.gz")
    parser.add_argument("--pairs", type=int, default=500_000, help="of the large corpus; 0 leaves memory out")
    parser.add_argument("--sentences", type=int, default=128, help="that each beam translates")
    options = parser.parse_args()
    torch.set_num_threads(1)
    pipeline = transduce.load(options.model)
    sentences = list(itertools.islice(read_lines(options.data / "test_2016_flickr.en.gz"), options.sentences))
    result: dict[str, Any] = {"date": date.today().isoformat(), "machine": machine(), "versions": library_versions()}
    print(", ".join(f"{name} {value}" for name, value in result["machine"].items()))
    print(", ".join(f"{name} {value}" for name, value in result["versions"].items()))
    result["step_ms"] = {rows: tokens_before(pipeline, rows) for rows in ROWS}
    result["beam_over_greedy"] = beams(pipeline, sentences)
    if options.pairs:
        result["memory_bytes"] = memory(options.data, options.pairs)
    RESULT.write_text(json.dumps(result, indent=1) + "\n")


@torch.inference_mode()
def tokens_before(pipeline: Pipeline, rows: int) -> dict[int, float]:
    """Milliseconds of a step of `rows` hypotheses after so many tokens, which are random: time does not depend."""
    model, (source_size, size) = pipeline.model, pipeline.task.specs.sizes
    found: dict[int, list[float]] = {before: [] for before in BEFORE}
    source = Padded(torch.randint(4, source_size or 5, (rows, SOURCE)), torch.full((rows,), SOURCE))
    for _ in range(ROUNDS):
        memory, state = model.start(source, rows)  # type: ignore[operator]
        for place in range(BEFORE[-1] + STEPS):
            token = torch.randint(4, size, (rows,))
            begun = time.process_time()
            _, state = model.step(token, memory, state)  # type: ignore[operator]
            taken = time.process_time() - begun
            for before, times in found.items():
                if before <= place < before + STEPS:
                    times.append(1000 * taken)
    medians = {before: statistics.median(times) for before, times in found.items()}
    print(f"\ntokens before   ms a step of {rows:2} rows   of the first")
    for before, value in medians.items():
        print(f"{before:13}   {value:23.1f}   {value / medians[BEFORE[0]]:12.2f}")
    return medians


def beams(pipeline: Pipeline, sentences: list[str]) -> dict[int, float]:
    """Time of each beam over that of greedy search."""
    settings: dict[int, dict[str, Any]] = {width: {"beam": width} for width in WIDTHS}
    works = {width: _translation(pipeline, sentences, each) for width, each in settings.items()}
    works[0] = _translation(pipeline, sentences, {"method": "greedy"})
    times: dict[int, list[float]] = {width: [] for width in works}
    for _ in range(ROUNDS):
        for width, work in works.items():
            begun = time.process_time()
            work()
            times[width].append(time.process_time() - begun)
    greedy = statistics.median(times.pop(0))
    ratios = {width: statistics.median(each) / greedy for width, each in times.items()}
    print(f"\nbeam   time / greedy's ({len(sentences) / greedy:.0f} sentences a second)   over k")
    for width, ratio in ratios.items():
        print(f"{width:4}   {ratio:44.2f}   {ratio / width:6.2f}")
    return ratios


def _translation(pipeline: Pipeline, sentences: list[str], settings: dict[str, Any]) -> Callable[[], object]:
    return lambda: pipeline.predict(sentences, **settings)


def memory(data: Path, pairs: int) -> dict[str, dict[str, int]]:
    """Peaks of a training process on the small corpus and on the one with `pairs`."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        small = list(itertools.islice(memory_of_corpus.real_pairs(data), memory_of_corpus.SMALL))
        memory_of_corpus.learn_tokenizer(root, small)
        print("\npairs       seconds   RssAnon   VmHWM")
        for name, count in (("small", len(small)), ("large", pairs)):
            memory_of_corpus.write(root, name, itertools.islice(itertools.cycle(small), count))
            (root / f"{name}.toml").write_text(memory_of_corpus.RECIPE.format(root=root, name=name, updates=60))
            anonymous, everything = memory_of_corpus.measure(root, name, count)
            found[str(count)] = {"anonymous": anonymous, "everything": everything}
    return found


if __name__ == "__main__":
    main()
