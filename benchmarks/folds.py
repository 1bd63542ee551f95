"""Cross-validation: trains a recipe once for each fold and prints every test score, their mean and their spread.

    python benchmarks/folds.py recipes/mutag.toml --runs /tmp/mutag [KEY=VALUE ..]

Each fold chooses its weights by validation inside its own training folds, never by its test fold.
"""

import argparse
import json
import statistics
from pathlib import Path

from rich.console import Console

from transduce.recipe.recipe import load_recipe
from transduce.training.display import Display
from transduce.training.run import run_training


def main() -> None:
    """Trains what is not trained yet, so that the same command goes on after an interruption."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--runs", type=Path, required=True, help="the folder of the runs, one a fold")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_intermixed_args()
    folds = load_recipe(options.recipe, options.overrides).data.folds  # type: ignore[union-attr]
    scores: dict[str, list[float]] = {"test": [], "validation": []}
    for fold in range(folds):
        recipe = load_recipe(options.recipe, [*options.overrides, f"data.fold={fold}"])
        report = run_training(recipe, options.runs / f"fold-{fold}", Display(Console(stderr=True)))
        [test] = report["tests"].values()
        scores["test"].append(test["scores"]["accuracy"]["value"])
        if best := report["validation"]:
            scores["validation"].append(best["accuracy"])
    for name, values in scores.items():
        if values:
            mean, spread = statistics.fmean(values), statistics.stdev(values)
            each = ", ".join(f"{value:.2f}" for value in values)
            print(f"{name}: accuracy {mean:.2f}, standard deviation {spread:.2f} over {len(values)} folds: {each}")
    (options.runs / "folds.json").write_text(json.dumps(scores))


if __name__ == "__main__":
    main()
