"""Whether a change left trained weights and predictions as they were, to the last bit.

    python tests/training/same_bits.py BEFORE.json                      # on the code as it was
    python tests/training/same_bits.py AFTER.json --against BEFORE.json   # on the changed code, on the same machine

Every canary and some published recipes train for 200 updates with one thread and predict up to 300 validation inputs.
The file holds a hash of the trained weights and one of the predictions for each. Bits depend on the processor and on
the versions of libraries, so two files are compared only if both are the same.
"""

import argparse
import hashlib
import io
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import canary
from rich.console import Console

import transduce
from transduce.core.model_file import load_model_file
from transduce.inference.prediction import Prediction
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.runtime.environment import library_versions, machine
from transduce.training.display import Display
from transduce.training.run import open_task, run_training

UPDATES, PREDICTED = 200, 300
RECIPES = Path(__file__).parents[2] / "recipes"
PUBLISHED = ("sst2", "sst2-transformer", "sst5", "an4", "cmrc2018", "cora")
TRAINING = {"updates": UPDATES, "validate_every": UPDATES, "threads": 1, "decode_sentences": 50}
QUIET = Display(Console(file=io.StringIO()))


def subjects(folder: Path) -> Iterator[tuple[str, Recipe]]:
    """Names and recipes. Published recipes whose data is absent are left out, which is told."""
    canary.write_data(folder)
    for name in canary.CANARIES:
        yield name, canary.recipe(name, canary.SEEDS[0], folder, **{**TRAINING, "decode_sentences": 0})
    for name in PUBLISHED:
        recipe = load_recipe(RECIPES / f"{name}.toml", [f"training.{key}={value}" for key, value in TRAINING.items()])
        if Path(recipe.data.root).is_dir():  # type: ignore[attr-defined]
            yield f"{name}.toml", recipe
        else:
            print(f"{name}.toml: left out, its data is not here", file=sys.stderr)


def hashes(recipe: Recipe, run: Path) -> dict[str, str]:
    """Of the weights after training in `run`, and of what the model predicts."""
    run_training(recipe, run, QUIET)
    _, data = open_task(recipe, QUIET)
    inputs = [source for source, _ in data.validation.texts[:PREDICTED]] if data.validation else []
    with chdir(recipe.data.root):  # where recordings lie
        predicted = transduce.load(run, trust_code=True).predict(inputs) if inputs else []
    weights = load_model_file(run, trust_code=True).weights
    return {"weights": weights_hash(weights), "predictions": digest(map(line, predicted))}


def weights_hash(weights: dict[str, Any]) -> str:
    """Independent of the tensors' names and of their order, so that a module may be renamed."""
    return digest(
        sorted(digest([str(each.dtype), str(tuple(each.shape)), each.numpy().tobytes()]) for each in weights.values())
    )


def line(prediction: Prediction) -> str:
    """The text and its exact score."""
    return f"{prediction.text}\t{prediction.score.hex()}\n"


def digest(parts: Iterable[str | bytes]) -> str:
    """SHA-256 of all parts."""
    hashed = hashlib.sha256()
    for part in parts:
        hashed.update(part if isinstance(part, bytes) else part.encode())
    return hashed.hexdigest()


def measure(names: list[str]) -> dict[str, Any]:
    """The hashes of all subjects, or of those named."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, recipe in subjects(Path(folder)):
            if not names or name in names:
                found[name] = hashes(recipe, Path(folder) / "runs" / name)
                print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    return {"machine": machine(), "versions": library_versions(), "hashes": found}


def differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """One line for each hash that differs."""
    if problems := [key for key in ("machine", "versions") if before[key] != after[key]]:
        return [f"not comparable: another {problem}: {before[problem]}, {after[problem]}" for problem in problems]
    shared = before["hashes"].keys() & after["hashes"].keys()
    return [
        f"{name}: {what} differ"
        for name in sorted(shared)
        for what, hashed in before["hashes"][name].items()
        if after["hashes"][name][what] != hashed
    ]


def main() -> None:
    """Exit code 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the hashes are written here")
    parser.add_argument("--against", type=Path, help="hashes of the code before the change")
    parser.add_argument("--only", nargs="+", default=[], help="names of canaries, or of recipes as in sst2.toml")
    given = parser.parse_args()
    after = measure(given.only)
    given.file.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")
    found = differences(json.loads(given.against.read_text(encoding="utf-8")), after) if given.against else []
    print("\n".join(found) or f"{len(after['hashes'])} trainings: {'all equal' if given.against else 'written'}")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
