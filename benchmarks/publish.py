"""Puts the scores of a finished training on record, for docs/results.md.

    python benchmarks/publish.py RUN [--name NAME] [--search method=greedy] [--search beam=5,alpha=1.0] ...

Scores the run's test sets with the recipe's own search, and with each `--search` besides; compares it with another run
(`--against RUN CHANGE`, where CHANGE says what was set on its command line) by a paired bootstrap; and writes
benchmarks/results/recipes/NAME.json (by default the recipe's name and its seed), with the run's whole recipe beside it,
NAME.toml, by which `benchmarks/figures.py` trains it again. Then `python docs/make_results.py`.
"""

import argparse
import hashlib
import json
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from records import save_record
from torch import nn

import transduce
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.search.settings import Search, search_settings
from transduce.tasks.base import Task
from transduce.tasks.protocols import Dataset
from transduce.training.run import cache_folder

RECORDS = Path(__file__).with_name("results") / "recipes"


def main() -> None:
    """One record, a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--name", help="of the record; by default the recipe's, and its seed")
    parser.add_argument(
        "--search", action="append", default=[], help="search keys, as method=greedy or beam=5,alpha=1.0"
    )
    parser.add_argument("--change", default="", help="what was set on the command line, as training.updates=2000")
    parser.add_argument("--commit", help="the code it was trained by, where the report does not say")
    parser.add_argument(
        "--perplexity",
        action="store_true",
        help="the references' perplexity too, where many answers are right",
    )
    parser.add_argument("--against", nargs=2, metavar=("RUN", "CHANGE"), help="another training of the recipe")
    asked = parser.parse_args()
    report = json.loads((asked.run / "report.json").read_text(encoding="utf-8"))
    commit = asked.commit or report["environment"].get("commit")
    if not commit:
        sys.exit(f"{asked.run}/report.json does not say by which commit it was trained; say it: --commit")
    if commit.endswith("-dirty"):
        sys.exit(f"{asked.run} was trained by {commit}, which nobody can get: commit the changes, and train again.")
    record = recorded(report, commit, asked.change)
    record["scores"] += searched(asked.run, [dict(read_search(each)) for each in asked.search])
    if asked.perplexity:
        record["scores"] += perplexities(asked.run, report["tests"])
    if asked.against:
        other, change = asked.against
        record["against"] = {"change": change, "scores": differences(asked.run, Path(other))}
    name = asked.name or f"{report['name']}-{report['training']['seed']}"
    kept = RECORDS / f"{name}.toml"
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(asked.run / "recipe.toml", kept)
    print(write_record({**record, "recipe_hash": recipe_hash(kept)}, name))


def recipe_hash(path: Path) -> str:
    """Of what a recipe says, however it is laid out."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    return hashlib.sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()[:16]


def write_record(record: dict[str, Any], name: str) -> Path:
    """The file that holds it now."""
    return save_record(RECORDS / f"{name}.json", record)


def recorded(report: dict[str, Any], commit: str, change: str) -> dict[str, Any]:
    """What `report` says that a reader of the table wants to know."""
    machine, versions = report["environment"]["machine"], report["environment"]["versions"]
    return {
        "recipe": report["name"],
        "change": change,
        "commit": commit,
        "finished": report["finished"][:10],
        "parameters": report["model"]["parameters"],
        **{key: report["training"][key] for key in ("seed", "updates", "target_tokens", "seconds", "precision")},
        **of_teachers(report.get("teachers", [])),
        "machine": {key: machine[key] for key in ("processor", "kernels", "threads")},
        "versions": {key: versions[key] for key in ("python", "torch")},
        "scores": [each for name, test in report["tests"].items() for each in of_test(name, test)],
        **of_baseline(report.get("baseline")),
        **({"groups": groups} if (groups := of_groups(report["tests"])) else {}),
    }


def of_teachers(teachers: list[dict[str, Any]]) -> dict[str, Any]:
    """How many models taught this one, and the time of their trainings; nothing without any."""
    if not teachers:
        return {}
    return {"teachers": len(teachers), "teachers_seconds": sum(each["seconds"] for each in teachers)}


def of_groups(tests: dict[str, Any]) -> dict[str, Any]:
    """Of each test set in groups, such as tasks, the scores of each group."""
    return {name: test["groups"] for name, test in tests.items() if len(test.get("groups", {})) > 1}


def of_baseline(baseline: dict[str, Any] | None) -> dict[str, Any]:
    """The name of the baseline and its rows, apart from those of the model; nothing where there is none."""
    if baseline is None:
        return {}
    rows = [row for name, test in baseline["tests"].items() for row in of_test(name, test)]
    return {"baseline": {"name": baseline["name"], "scores": rows}}


def of_test(name: str, test: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of a test set: of its metrics, or of a language model its likelihood."""
    return of_search(name, test["scores"], test.get("search")) if "scores" in test else [of_text(name, test)]


def of_search(test: str, scores: dict[str, Any], search: dict[str, Any] | None) -> list[dict[str, Any]]:
    """A row of the table for each metric; search: None for a task that does not search."""
    return [{"test": test, "search": in_words(search) if search else "", **score} for score in scores.values()]


def of_text(test: str, found: dict[str, Any]) -> dict[str, Any]:
    """The row of a language model."""
    likelihood = found["likelihood"]
    signature = f"{likelihood['signature']}|context:{likelihood['context']}"
    value = {"name": "perplexity", "value": likelihood["perplexity"], "interval": None, "signature": signature}
    return {"test": test, "search": "", **value}


def perplexities(run: Path, tests: dict[str, Any]) -> list[dict[str, Any]]:
    """The row of each test set of pairs: its references' perplexity, a character where those are the tokens."""
    spelled = load_recipe(run / "recipe.toml").tokenizer.of_side("target").kind == "character"
    found = [of_text(name, test) for name, test in tests.items() if "scores" in test]
    if not spelled:
        return found
    return [each | {"signature": each["signature"].replace("unit:token", "unit:character")} for each in found]


def in_words(search: dict[str, Any]) -> str:
    """`greedy`, or `beam 5, alpha 0.75`."""
    if search["method"] == "mask_predict":
        return f"{search['iterations']} iterations, {search['lengths']} lengths"
    if search["method"] == "ctc":
        return f"beam {search['beam']}" if search["beam"] > 1 else "best path"
    weights = {"CTC": search.get("ctc_weight"), "n-grams": search.get("lm_weight")}
    beside = "".join(f", {name} {weight:g}" for name, weight in weights.items() if weight)
    beam = f"beam {search['beam']}, alpha {search['alpha']:g}"
    return (beam if search["method"] == "beam" else str(search["method"])) + beside


def read_search(text: str) -> list[tuple[str, Any]]:
    """The keys and values of `method=greedy` or `beam=5,alpha=1.0`."""
    pairs = [each.split("=", 1) for each in text.split(",")]
    return [(key, value if key == "method" else json.loads(value)) for key, value in pairs]


def searched(run: Path, settings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of further ways to search."""
    if not settings:
        return []
    pipeline = transduce.load(run)
    recipe, task, tests = opened(run, pipeline)
    asked = [search_settings(recipe.search, each) for each in settings]
    return [
        row for each in asked for name, data in tests.items() for row in rows(pipeline.model, task, name, data, each)
    ]


def opened(run: Path, pipeline: Pipeline) -> tuple[Recipe, Task, Mapping[str, Dataset]]:
    """Its recipe, its task and the test sets."""
    recipe = load_recipe(run / "recipe.toml")
    task = type(pipeline.task)(recipe.task, recipe.data, pipeline.task.columns)  # which knows where its recordings lie
    return recipe, task, task.open(cache_folder(), print).tests


def differences(run: Path, other: Path) -> list[dict[str, Any]]:
    """The metrics of both on each test set: the run's less the other's, with its interval and p."""
    pipeline = transduce.load(run)
    models = {str(other): transduce.load(other), str(run): pipeline}
    kept = ("metric", "name", "signature", "value", "interval", "p_value")
    return [
        {"test": name, **{key: each[key] for key in kept}}
        for name, dataset in opened(run, pipeline)[2].items()
        for each in transduce.evaluate(models, dataset.texts).to_dict()["comparisons"]
        if each["metric"] in pipeline.recipe.task.metrics
    ]


def rows(model: nn.Module, task: Task, name: str, data: Dataset, search: Search) -> list[dict[str, Any]]:
    """One test set searched in one way."""
    outputs = task.predictor.predict(model, [source for source, _ in data.texts], search)
    scores = task.evaluate([each.text for each in outputs], data.references)
    return of_search(name, {key: score.to_dict() for key, score in scores.items()}, search.model_dump(mode="json"))


if __name__ == "__main__":
    main()
