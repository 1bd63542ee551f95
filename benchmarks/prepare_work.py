"""Write the fixed work that `benchmarks/peers/` measures on: token ids and a plan of batches.

    python benchmarks/prepare_work.py MULTI30K OUTPUT.npz

MULTI30K is the folder of the data set (with raw/train.en.gz ...). The tokenizer is Transduce's joint BPE of 8,000.
What each id adds to a text is written too, and the validation references, so that translations can be scored anywhere.
"""

import sys
from pathlib import Path

import numpy as np
from rich.console import Console

from transduce.data.batches import Batches
from transduce.data.files import read_lines
from transduce.recipe.recipe import parse_recipe
from transduce.training.display import Display
from transduce.training.run import open_task


def main() -> None:
    """Tokenise, plan, write."""
    root, output = Path(sys.argv[1]), Path(sys.argv[2])
    recipe = parse_recipe(
        {
            "name": "small",
            "task": {"kind": "translation", "source": "en", "target": "de"},
            "data": {"root": str(root), "train": [{"source": "raw/train.en.gz", "target": "raw/train.de.gz"}]},
            "tokenizer": {"kind": "bpe", "vocabulary": 8000},
        },
        "the fixed work",
    )
    task, data = open_task(recipe, Display(Console(stderr=True)))
    ((store, _),) = data.corpora
    rows = np.arange(len(store))
    plan = Batches(data.corpora, recipe.batch, seed=1)
    tokenizer = task.tokenizers["source"]
    texts = {
        name: list(read_lines(root / "raw" / f"{name}.gz")) for name in ("test_2016_flickr.en", "val.en", "val.de")
    }
    arrays = {
        "vocabulary": np.array(task.specs.target.size),
        "spellings": np.array([spelled.decode() for spelled in tokenizer.spellings()]),
        "validation_references": np.array(texts["val.de"]),
    }
    for name, sequences in {
        "source": store.read("source", rows),
        "target": store.read("target", rows),
        "batches": [batch.rows for batch in plan.epoch(0)],
        "test": tokenizer.encode(texts["test_2016_flickr.en"]),
        "validation_source": tokenizer.encode(texts["val.en"]),
        "validation_target": tokenizer.encode(texts["val.de"]),
    }.items():
        arrays[f"{name}_values"] = np.concatenate([np.asarray(each, np.int32) for each in sequences])
        arrays[f"{name}_ends"] = np.cumsum([len(each) for each in sequences])
    np.savez(output, **arrays)


if __name__ == "__main__":
    main()
