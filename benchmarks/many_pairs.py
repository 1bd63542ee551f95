"""A corpus of 100 million pairs: how long it takes to open, to give its first batch, to shuffle; how much memory.

    python benchmarks/many_pairs.py --record benchmarks/results/many_pairs.json

The corpus is made up: 1,000 shards of 100,000 pairs, named by a pattern. Eight of them are real, which is where
Transduce looks at the text of a corpus. The texts of the others are sparse files, each of other content, which are read
for their fingerprints alone. One shard is encoded; the stores of the others are links to its store, so that each is a
file of its own to Transduce. The first opening compares all checksums and takes all fingerprints; then both are
remembered. Everything is measured in processes of their own. Training takes the same 60 updates on 29,000 pairs and on
all. RssAnon is what a process itself allocated (its peak, sampled 100 times a second); VmHWM counts pages of the mapped
stores too, which the system may take back at any time. Linux. Exits 1 when opening takes 5 seconds or more, or RssAnon
grows by more than a tenth.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from memory_of_corpus import RECIPE, SMALL, learn_tokenizer, made_up_pairs, measure, train, write

from transduce.data.shards import SAMPLED

SHARD = 100_000
TEXT_BYTES = 1_500_000  # of a sparse file
PLANNED = 20  # pools whose shuffling is timed
LARGE = RECIPE.replace("{name}.source", "{name}-*.source").replace("{name}.target", "{name}-*.target")


def main() -> None:
    """Measure, print, record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=100_000_000)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--folder", type=Path, help="where the files are made; by default a temporary folder")
    parser.add_argument("--record", type=Path, help="write the figures to this JSON file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        root = Path(folder)
        figures = measured(root, options.pairs // SHARD, options.updates)
    print(json.dumps(figures, indent=2))
    if options.record:
        from transduce.core.atomic import write_json
        from transduce.runtime.environment import library_versions, machine

        write_json(options.record, {**figures, "machine": machine(), "versions": library_versions()})
    sys.exit(0 if figures["opening"]["open_seconds"] < 5 and figures["anonymous_ratio"] <= 1.1 else 1)


def measured(root: Path, shards: int, updates: int) -> dict[str, Any]:
    """All figures."""
    pairs = list(itertools.islice(made_up_pairs(), SMALL))
    learn_tokenizer(root, pairs)
    write(root, "small", iter(pairs))
    recipes = {"small": RECIPE, "large": LARGE}
    for name, text in recipes.items():
        (root / f"{name}.toml").write_text(text.format(root=root, name=name, updates=updates))
    write(root, "large-0000", itertools.islice(itertools.cycle(pairs), SHARD))
    read = range(0, shards, -(-shards // SAMPLED))
    for number in range(1, shards):
        (copy_shard if number in read else sparse_shard)(root, number)
    began = time.monotonic()
    stores = json.loads(in_a_process(root, "--link", "large"))
    print(f"{stores:,} stores made in {time.monotonic() - began:.0f} s", flush=True)
    found = {name: json.loads(in_a_process(root, "--open", "large")) for name in ("first_opening", "opening")}
    print(json.dumps(found), flush=True)
    print("pairs       seconds   RssAnon   VmHWM")
    peaks = {name: measure(root, name, count) for name, count in (("small", SMALL), ("large", shards * SHARD))}
    return {
        "pairs": shards * SHARD,
        "files": 2 * shards,
        **found,
        "updates": updates,
        "memory": {name: {"anonymous_bytes": each[0], "peak_bytes": each[1]} for name, each in peaks.items()},
        "anonymous_ratio": round(peaks["large"][0] / peaks["small"][0], 3),
    }


def copy_shard(root: Path, number: int) -> None:
    """The first shard under another name, with its number for gzip's time stamp: other bytes, the same text."""
    for side in ("source", "target"):
        content = bytearray((root / f"large-0000.{side}.gz").read_bytes())
        content[4:8] = number.to_bytes(4, "little")
        (root / f"large-{number:04}.{side}.gz").write_bytes(content)


def sparse_shard(root: Path, number: int) -> None:
    """Two files that begin with the shard's number and hold nothing else."""
    for side in ("source", "target"):
        with (root / f"large-{number:04}.{side}.gz").open("wb") as file:
            file.write(f"{side} {number}".encode())
            file.truncate(TEXT_BYTES)


def in_a_process(root: Path, what: str, name: str) -> str:
    """The last line that this script prints in a process of its own."""
    command = [sys.executable, __file__, what, str(root / f"{name}.toml")]
    environment = {**os.environ, "TRANSDUCE_CACHE": str(root / f"cache-{name}")}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()[-1]


def link_stores(recipe: str) -> None:
    """Encode the first shard, and link its store under the key of each other one."""
    from transduce.core.cache import cache_folder
    from transduce.data.encoding import pairs_store_key
    from transduce.data.shards import shards_of

    task, data = task_of(recipe)
    shards, sides = shards_of(data.train, task.root), (task.source, task.target)
    first = task._store(shards[0], data.filters, cache_folder())
    for shard in shards[1:]:
        key = pairs_store_key(shard, task.root, sides, data.filters)
        os.link(first.path, cache_folder() / f"{key}.arrow")
    print(len(shards))


def open_corpus(recipe: str) -> None:
    """Seconds until everything is open, until the first batch, and of shuffling `PLANNED` pools."""
    import transduce.training.run  # noqa: F401 (all that is imported)
    from transduce.core.cache import cache_folder
    from transduce.data.batches import BatchConfig, Batches

    began, computed = time.monotonic(), time.process_time()
    task, _ = task_of(recipe)
    data = task.open(cache_folder(), lambda line: None)
    opened, computing = time.monotonic(), time.process_time() - computed
    batches = Batches(data.corpora, BatchConfig(tokens=2048), seed=1)
    next(batches.epoch(0))
    first = time.monotonic()
    pairs = sum(len(batch.rows) for batch in pools(batches, PLANNED))
    done = time.monotonic()
    files = len(list(Path("/proc/self/fd").iterdir()))
    print(
        json.dumps(
            {
                "open_seconds": round(opened - began, 2),
                "open_processor_seconds": round(computing, 2),
                "first_batch_seconds": round(first - opened, 2),
                "shuffled_pairs_a_second": round(pairs / (done - first)),
                "open_files": files,
            }
        )
    )


def pools(batches: Any, count: int) -> Any:
    """The batches of so many pools of an epoch's beginning."""
    enough = count * batches._config.pool * 4096
    seen = 0
    for batch in batches.epoch(0):
        yield batch
        seen += len(batch.rows)
        if seen >= enough:
            return


def task_of(recipe: str) -> Any:
    """The task of a recipe whose tokenizer is a file, and its data section; everything heavy is imported."""
    from functools import partial

    from transduce.core.cache import cache_folder
    from transduce.core.registry import resolve
    from transduce.pipeline.outline import make_task
    from transduce.recipe.recipe import load_recipe
    from transduce.tasks.column_cache import cached_columns

    loaded = load_recipe(Path(recipe))
    learn = partial(cached_columns, cache_folder(), resolve("tasks", "translation"), loaded.tokenizer, loaded.data)
    return make_task(loaded, learn()), loaded.data


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train(*sys.argv[2:])
    elif sys.argv[1:2] == ["--link"]:
        link_stores(*sys.argv[2:])
    elif sys.argv[1:2] == ["--open"]:
        open_corpus(*sys.argv[2:])
    else:
        main()
