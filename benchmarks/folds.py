"""Cross-validation: trains a recipe once for each fold and prints every test score, their mean and their spread.

    python benchmarks/folds.py recipes/mutag.toml --runs /tmp/mutag [KEY=VALUE ..]
    python benchmarks/folds.py recipes/mutag.toml --runs /tmp/mutag --choose "model.pooling=mean" --choose ""

Alone, each fold chooses its weights by validation inside its own training folds, never by its test fold. With
`--choose`, given once for each of several settings, it chooses its setting too (nested cross-validation): each setting
is trained without the test fold and without one more fold, for each of `--inner` folds; that of the best mean accuracy
on those is trained on all folds but the test's. Trainings last all their updates then.

What is trained already is not trained again, so that the same command goes on after an interruption.
"""

import argparse
import json
import shlex
import statistics
from pathlib import Path
from typing import Any

from rich.console import Console

from transduce.recipe.recipe import load_recipe
from transduce.training.display import Display
from transduce.training.run import run_training


def main() -> None:
    """Prints the scores, and writes them to folds.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--runs", type=Path, required=True, help="the folder of the runs")
    parser.add_argument("--choose", action="append", default=[], metavar="SETTINGS", help="KEY=VALUE .. to choose from")
    parser.add_argument("--inner", type=int, default=3, help="folds that each setting is judged by")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE")
    options = parser.parse_intermixed_args()
    recipe: Any = load_recipe(options.recipe, options.overrides)
    found: dict[str, list[Any]] = {"test": [], "validation": []}
    if options.choose:
        found["chosen"] = []
    for fold in range(recipe.data.fold_count):
        chosen, name = [], f"fold-{fold}"
        if options.choose:
            accuracy, setting = choice(options, recipe, fold)
            found["validation"].append(accuracy)
            found["chosen"].append(setting)
            chosen, name = [*shlex.split(setting), "data.validation_fold=none"], f"fold-{fold}-chosen"
        report = trained(options, name, [*chosen, f"data.fold={fold}"])
        [test] = report["tests"].values()
        found["test"].append(test["scores"]["accuracy"]["value"])
        if best := report["validation"]:
            found["validation"].append(best["accuracy"])
    for name in ("test", "validation"):
        if values := found[name]:
            mean, spread = statistics.fmean(values), statistics.stdev(values)
            each = ", ".join(f"{value:.2f}" for value in values)
            print(f"{name}: accuracy {mean:.2f}, standard deviation {spread:.2f} over {len(values)} folds: {each}")
    for setting in options.choose:
        print(f"chosen by {found['chosen'].count(setting)} folds: {setting or 'the recipe as it is'}")
    (options.runs / "folds.json").write_text(json.dumps(found))


def choice(options: argparse.Namespace, recipe: Any, fold: int) -> tuple[float, str]:
    """The setting with the best mean accuracy on folds that it was not trained on, without this one; that accuracy."""
    folds, last = recipe.data.fold_count, f"training.validate_every={recipe.training.updates}"
    means = []
    for number, setting in enumerate(options.choose):
        accuracies = []
        for step in range(1, options.inner + 1):
            held = (fold + step) % folds
            own = [*shlex.split(setting), last, f"data.fold={fold}", f"data.validation_fold={held}"]
            report = trained(options, f"fold-{fold}-{number}-without-{held}", own)
            accuracies.append(report["validation"]["accuracy"])
        means.append((statistics.fmean(accuracies), -number))
    best = max(means)
    return best[0], options.choose[-best[1]]


def trained(options: argparse.Namespace, name: str, overrides: list[str]) -> dict[str, Any]:
    """The report of a training."""
    recipe = load_recipe(options.recipe, [*options.overrides, *overrides])
    return run_training(recipe, options.runs / name, Display(Console(stderr=True)))


if __name__ == "__main__":
    main()
