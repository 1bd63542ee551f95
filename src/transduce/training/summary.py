"""What is told at the end of a training: test scores with intervals, where everything lies, what to type next."""

import math
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from transduce.core.model_file import NAME
from transduce.core.model_summary import describe
from transduce.inference.prediction import unfinished_line
from transduce.interpret.confusion import confusion_table
from transduce.interpret.score_tables import groups_table, value_and_interval
from transduce.metrics.confusion import Confusion
from transduce.recipe.recipe import Recipe
from transduce.runtime.event_log import REPORT
from transduce.tasks.base import task_class
from transduce.training.display import Display
from transduce.training.held_out_files import evaluate_options
from transduce.training.loop import KEPT


def tell_summary(recipe: Recipe, run: Path, report: dict[str, Any], display: Display) -> None:
    """Of a finished training in `run`, whose report this is."""
    scores = list(rows(report))
    if scores:
        table = Table("test set", "metric", "score", "95 % interval", box=None, header_style="bold", pad_edge=False)
        for column in table.columns[2:]:
            column.justify = "right"
        for row in scores:
            table.add_row(*(Text(cell) for cell in row))
        display.console.print(table)
    for name, test in report.get("tests", {}).items():
        if count := test.get("unfinished"):
            display.warn(f"{name}: {unfinished_line(count)}")
        if len(test.get("groups", {})) > 1:
            display.console.print(groups_table(test["groups"], f"{name}, by task:"))
        if "confusion" in test:
            display.console.print(confusion_table(Confusion.from_dict(test["confusion"]), f"{name}, counts of labels:"))
    if report.get("start"):
        tell_kept(recipe, report, display)
    files = [NAME, REPORT, *(f"figures/{path.name}" for path in sorted((run / "figures").glob("*.png")))]
    display.tell(f"In {run}: {', '.join(files)}" + (" (scores with their signatures)" if scores else ""))
    display.tell("Next:")
    for command in _commands(recipe, run):
        display.tell(f"  {command}")


def tell_kept(recipe: Recipe, report: dict[str, Any], display: Display) -> None:
    """What the model to start from could do, and what it can now, by the metrics of validation."""
    before, after = report["start"], report["validation"]
    table = Table("", "metric", "before", "after", box=None, header_style="bold", pad_edge=False)
    for column in table.columns[2:]:
        column.justify = "right"
    for name, mark in (("your validation pairs", ""), ("what it could do before", KEPT)):
        names = [each for each in before if each.startswith(KEPT) == bool(mark) and each != f"{mark}perplexity"]
        for place, each in enumerate(names):
            digits = 3 if each.endswith("loss") else 2
            figures = (f"{found.get(each, math.nan):.{digits}f}" for found in (before, after))
            table.add_row(name if place == 0 else "", each.removeprefix(mark), *figures)
    display.console.print(table)
    if after.get("update") == 0:
        display.warn(
            f"No update was better by both, so this is still the model {recipe.training.start}. A higher "
            "training.learning_rate or more training.updates learn more, and keep less."
        )


def rows(report: dict[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Test set, metric, value and interval; the name of a test set once. Below each, those of the baseline."""
    baseline = report.get("baseline", {"tests": {}})
    for name, test in report.get("tests", {}).items():
        yield from _named(name, _scores(test))
        if name in baseline["tests"]:
            yield from _named(f"{baseline['name']} (baseline)", _scores(baseline["tests"][name]))


def _named(name: str, scores: list[tuple[str, str, str]]) -> Iterator[tuple[str, str, str, str]]:
    for place, score in enumerate(scores):
        yield (name if place == 0 else "", *score)


def _scores(test: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Those of its outputs, and its perplexity."""
    scores = test.get("scores", {})
    names = Counter(each["name"] for each in scores.values())
    found = [_score(each, key if names[each["name"]] > 1 else "") for key, each in scores.items()]
    if likelihood := test.get("likelihood"):
        found.append((f"perplexity a {likelihood.get('unit', 'token')}", f"{likelihood['perplexity']:.2f}", ""))
    return found


def _score(score: dict[str, Any], metric: str) -> tuple[str, str, str]:
    """metric: its name in task.metrics, where two are called the same by people."""
    return score["name"] + (f" ({metric})" if metric else ""), *value_and_interval(score)


def _commands(recipe: Recipe, run: Path) -> Iterator[str]:
    """What to do with the model, ready to be typed; it says so where the model needs code of one's own."""
    own = describe(run)["foreign_code"] if (run / NAME).exists() else []
    trusted = " --trust-code" if own else ""
    for command in _plain_commands(recipe, run):
        yield command + trusted


def _plain_commands(recipe: Recipe, run: Path) -> Iterator[str]:
    model = shlex.quote(str(run))
    task = task_class(recipe)
    verb = "predict" if "source" in task.kinds else "generate"
    yield f"transduce {verb} {model}"
    if task.explorable:
        yield f"transduce explore {model}"
    root, tests = Path(getattr(recipe.data, "root", ".")), getattr(recipe.data, "test", {})
    tell = getattr(next(iter(tests.values()), None), "evaluate_options", None)  # generated examples have none
    if options := (tell(root) if tell else None) or evaluate_options(recipe, run):
        yield " ".join(["transduce evaluate", model, *map(shlex.quote, options)])
