"""What a training without a recipe decides: would another value have been better? And is the time promised kept?

    python benchmarks/decisions.py --runs /tmp/d [--record]
    python benchmarks/decisions.py benchmarks/decision_data/g2p-hindi.toml --runs /tmp/d --variants dropout-0.1 pointer

For each recipe, `transduce train --source ..` learns from its files as it decides by itself, and then once more with
each variant of one decision. What counts is the validation; the tests are not looked at. `seed-2` changes nothing that
was decided: other differences are to be compared with this one. A batch of twice the tokens makes half of the updates.

What is trained already is not trained again, so that the same command goes on after an interruption. `--record` writes
benchmarks/results/decisions/RECIPE.json; then `python docs/make_results.py`.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.planning.decisions import SIZES, Size, decide
from transduce.planning.facts import facts_of
from transduce.recipe.recipe import Recipe, Table, load_recipe

sys.path.insert(0, str(Path(__file__).parent))
from decision_tables import USUAL, promises_table, scores_table
from metric_headings import unnumbered
from no_recipe import plan_command, run
from records import save_measurement

ROOT = Path(__file__).parents[1]
CHOSEN = (  # small sets of different kinds: decisions matter most where data is scarce
    "recipes/geoquery.toml",
    "recipes/low-resource.toml",
    "benchmarks/decision_data/inflection-1000.toml",
    "benchmarks/decision_data/g2p-hindi.toml",
)
Change = Callable[[Recipe, Table], list[str]]


def main() -> None:
    """Train what is not trained yet; print the tables."""
    asked = arguments()
    records = []
    for recipe in asked.read:
        records.append(measured(recipe, asked))
        if asked.record:
            found = {key: value for key, value in records[-1].items() if key != "seconds"}
            save_measurement(f"decisions/{recipe.name}", records[-1]["seconds"], **found)
    headings = unnumbered(score for record in records for score in record["scores"])
    print(f"\n{scores_table(records, headings)}\n{promises_table(records)}")


def arguments() -> argparse.Namespace:
    """From the command line, with the recipes read; what is wrong is told before the first training."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", type=Path, nargs="*", help=f"by default {', '.join(CHOSEN)}")
    parser.add_argument("--runs", type=Path, required=True, help="a folder is made in it for each recipe")
    parser.add_argument("--variants", nargs="+", choices=[*VARIANTS], default=[*VARIANTS], help="by default all")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--both", action="append", default=[], metavar="KEY=VALUE", help="set for all trainings")
    parser.add_argument("--busy", action="store_true", help="other work ran meanwhile, so the times say nothing")
    parser.add_argument("--record", action="store_true", help="put the scores on record for docs/results.md")
    asked = parser.parse_intermixed_args()
    try:
        asked.read = [load_recipe(path) for path in asked.recipes or [ROOT / path for path in CHOSEN]]
        for recipe in asked.read:
            plan_command(recipe, Path(), None, asked.threads)
    except InputError as error:
        parser.error(str(error))
    return asked


def measured(recipe: Recipe, asked: argparse.Namespace) -> dict[str, Any]:
    """The record of one data set."""
    usual = trained(recipe, USUAL, [], asked)
    table = json.loads((asked.runs / recipe.name / USUAL / "plan.json").read_text(encoding="utf-8"))["table"]
    table["training"]["updates"] = usual["updates"]  # made, where time ended it
    same = [f"training.updates={usual['updates']}"]
    found = {USUAL: usual}
    for name in asked.variants:
        if change := VARIANTS[name](recipe, table):
            found[name] = trained(recipe, name, [*same, *change], asked)
    return {
        "recipe": recipe.name,
        "threads": asked.threads,
        "busy": asked.busy,
        "seconds": sum(each["took_seconds"] for each in found.values()),
        "metric": usual["best"],
        "scores": usual["scores"],
        "trainings": {name: {key: each[key] for key in KEPT} for name, each in found.items()},
    }


KEPT = ("change", "validation", "updates", "parameters", "promised_seconds", "took_seconds")


def trained(recipe: Recipe, name: str, change: list[str], asked: argparse.Namespace) -> dict[str, Any]:
    """One training: its validation, and what it was promised to take and took."""
    folder = asked.runs / recipe.name / name
    if not (folder / "report.json").is_file():
        run(asked, plan_command(recipe, folder, None, asked.threads, [*asked.both, *change]))
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    training = load_recipe(folder / "recipe.toml").training
    names = {key: score["name"] for key, score in next(iter(report["tests"].values()))["scores"].items()}
    signatures = report["validation_signatures"]
    return {
        "best": next(iter(names)) if training.best == "loss" else training.best,
        "scores": [
            {"metric": key, "name": names.get(key, f"validation {key}"), "signature": signature}
            for key, signature in signatures.items()
        ],
        "change": change,
        "validation": {key: report["validation"][key] for key in signatures},
        "updates": report["training"]["updates"],
        "parameters": report["model"]["parameters"],
        **report["plan"],
    }


# ---- variants: the keys that change; none where the variant is what is decided anyway ---------------------


def dropout(value: float) -> Change:
    """Another one."""
    return lambda _, table: [] if table["model"]["dropout"] == value else [f"model.dropout={value}"]


def pointer(_: Recipe, table: Table) -> list[str]:
    """Copies from the source, which takes one vocabulary for both sides."""
    return ["model.pointer=true"] if table["tokenizer"].get("joint") else []


def rate(factor: float) -> Change:
    """So many times the learning rate."""
    return lambda _, table: [f"training.learning_rate={table['training']['learning_rate'] * factor:g}"]


def batch(factor: float) -> Change:
    """Batches of so many times the tokens, and fewer or more updates in turn."""
    return lambda _, table: [
        f"batch.tokens={round(table['batch']['tokens'] * factor)}",
        f"training.updates={round(table['training']['updates'] / factor)}",
    ]


def size(step: int) -> Change:
    """The next smaller or larger model of the table of sizes, with the learning rate that it is given."""

    def change(recipe: Recipe, table: Table) -> list[str]:
        sizes = [Size(width, layers) for _, width, layers in SIZES]
        data: Any = recipe.data
        number = sizes.index(Size(table["model"]["d_model"], table["model"]["encoder_layers"])) + step
        if not 0 <= number < len(sizes):
            return []
        decided = decide(facts_of(data.train, Path(data.root)), size=sizes[number])
        keys = ("model.d_model", "model.heads", "model.encoder_layers", "model.decoder_layers", "model.feed_forward")
        return [f"{each.key}={each.value}" for each in decided if each.key in (*keys, "training.learning_rate")]

    return change


VARIANTS: dict[str, Change] = {
    "seed-2": lambda _, table: ["training.seed=2"],
    "dropout-0.1": dropout(0.1),
    "dropout-0.2": dropout(0.2),
    "dropout-0.3": dropout(0.3),
    "dropout-0.4": dropout(0.4),
    "larger": size(1),
    "smaller": size(-1),
    "pointer": pointer,
    "twice-the-rate": rate(2.0),
    "half-the-rate": rate(0.5),
    "twice-the-batch": batch(2.0),
    "half-the-batch": batch(0.5),
    "no-label-smoothing": lambda _, table: ["training.label_smoothing=0.0"],
}

if __name__ == "__main__":
    main()
