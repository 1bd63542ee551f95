"""A training without a recipe in its run directory: decided once, noted there, and compared with what it took."""

import json
import re
import textwrap
from itertools import groupby
from pathlib import Path
from typing import Any

from rich import table as rich_table
from rich.console import Console
from rich.text import Text

from transduce.core.atomic import write_json
from transduce.core.bounded_file import read_text
from transduce.core.errors import InputError
from transduce.core.run_paths import from_run, in_run
from transduce.core.trust import check_code
from transduce.data.pairs.inputs import HELD_OUT_FILES, Named
from transduce.planning.decisions import Decision
from transduce.planning.plan import TrainingPlan, make_plan
from transduce.planning.promise import Promise, elapsed, in_words
from transduce.runtime.event_log import REPORT
from transduce.training.display import Display
from transduce.training.run_directory import PLAN, check_directory, check_recipe, movable, within

BARE = re.compile(r"[A-Za-z0-9_-]+")
HEAD = "Written by `transduce new`. Each key has its reason above it; change what you know better."

NAME = PLAN
OPTIONS = {"minutes": "--time", "columns": "--source-column", "data": "data"}  # others as --key
PATHS = ("source", "target", *HELD_OUT_FILES)  # of what was asked for


def planned_run(
    run: Path,
    named: Named,
    given: dict[str, Any],
    asked: dict[str, Any],
    minutes: float | None,
    display: Display,
    force: bool = False,
    dry_run: bool = False,
    since: float | None = None,
) -> tuple[TrainingPlan, bool]:
    """What was decided when the run began, or is decided now and noted there; and whether it had begun.

    The decisions and the time promised are told.

    Args:
        given: keys that are chosen already, as `make_plan` takes them.
        asked: all that the decisions follow from, for JSON: what a run began with cannot change.
        dry_run: note nothing, whatever the run holds, and tell data that is certainly wrong instead of refusing it.
        since: when somebody asked for it, by `time.monotonic`; None: now.

    Raises:
        InputError: as `make_plan` and `earlier_plan`; the run holds a training of another recipe.
    """
    asked = json.loads(json.dumps({**named.to_dict(), "minutes": minutes, **asked}))
    earlier = earlier_plan(run, asked, dry_run)
    if not dry_run:
        check_directory(run, data=within(run, named.source.parent))  # before hours of measuring
    plan = earlier or make_plan(named, given, minutes, display, run.name, force or dry_run, since)
    display.console.print(decisions_table(plan))
    display.console.print(plan.promised.sentence(), highlight=False)
    if earlier is None and not dry_run:
        check_recipe(run, plan.recipe)
        keep_plan(run, plan, asked)
    return plan, earlier is not None


def tell_taken(run: Path, report: dict[str, Any], plan: TrainingPlan, console: Console) -> dict[str, Any]:
    """The report of a finished run with what was promised and what it took from start to end, which is told."""
    took = report.get("plan") or elapsed(report, plan.promised, plan.since)
    report = {**report, "plan": took}
    write_json(run / REPORT, report)
    told = in_words(took["took_seconds"]), in_words(took["promised_seconds"])
    console.print(f"It took {told[0]} from start to end; {told[1]} were promised.", highlight=False)
    return report


def keep_plan(run: Path, plan: TrainingPlan, asked: dict[str, Any]) -> None:
    """Note in a run what was asked for and decided, so that the same command goes on with it."""
    decisions = [_moved(each, run)._asdict() for each in plan.decisions]
    asked = {key: from_run(each, run) if key in PATHS and each else each for key, each in asked.items()}
    noted = {"name": plan.name, "asked": asked, "table": movable(plan.table, run), "decisions": decisions}
    run.mkdir(parents=True, exist_ok=True)
    write_json(run / NAME, {**noted, "promised": plan.promised._asdict()})


def _moved(decision: Decision, run: Path) -> Decision:
    return decision._replace(value=from_run(decision.value, run)) if decision.key == "data.root" else decision


def earlier_plan(run: Path, asked: dict[str, Any], dry_run: bool = False) -> TrainingPlan | None:
    """What was decided when the run began; None where none was, or for a dry run, where something else was asked for.

    Raises:
        InputError: something else was asked for then; the note is damaged.
    """
    path = run / NAME
    try:
        noted = in_run(json.loads(read_text(path)), run)
        before = noted["asked"]
        check_code(noted["table"], str(path), trust_code=None)
        decisions = [Decision(**each) for each in noted["decisions"]]
        plan = TrainingPlan(noted["name"], noted["table"], decisions, Promise(**noted["promised"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, LookupError, TypeError, RecursionError, AttributeError) as error:
        raise InputError(f"{path}: cannot be read: {error}. Choose another run directory (--run).") from error
    different = sorted(each for key in {*before, *asked} for each in _options(key, before.get(key), asked.get(key)))
    if different and dry_run:
        return None
    if different:
        raise InputError(
            f"{run}: holds a training that was asked for with other options: {', '.join(different)}. Choose another "
            f"run directory (--run), or train {run}/recipe.toml on with other keys."
        )
    return plan


def _options(key: str, before: Any, asked: Any) -> list[str]:
    """How people ask for what a plan notes under this key, where it differs; of keys of a recipe which ones."""
    if before == asked:
        return []
    if key == "overrides":
        names = {each.partition("=")[0] for each in _assignments(before) ^ _assignments(asked)}
        return ["--start" if each == "training.start" else each for each in names] or ["the order of keys"]
    return [OPTIONS.get(key, f"--{key.replace('_', '-')}")]


def _assignments(overrides: Any) -> set[str]:
    """Keys with their values, as the command line has them, or as Python has."""
    pairs = overrides.items() if isinstance(overrides, dict) else ()
    return {f"{key}={value!r}" for key, value in pairs} or {str(each) for each in overrides or ()}


def decisions_table(plan: TrainingPlan) -> rich_table.Table:
    """Key, value, why."""
    table = rich_table.Table(box=None, header_style="bold", pad_edge=False)
    for column in ("key", "value", "why"):
        table.add_column(column)
    for key, value, reason in plan.decisions:
        table.add_row(Text(key), Text(value_in_toml(value)), Text(reason))
    return table


def recipe_text(plan: TrainingPlan) -> str:
    lines = [f"# {HEAD}"]
    ordered = sorted(plan.decisions, key=lambda each: list(plan.table).index(each.key.partition(".")[0]))
    for section, decisions in groupby(ordered, key=lambda each: each.key.partition(".")[0]):
        lines += ["", f"[{section}]"]
        for reason, alike in groupby(decisions, key=lambda each: each.reason):
            lines += textwrap.wrap(
                reason[:1].upper() + reason[1:] + ".", 110, initial_indent="# ", subsequent_indent="# "
            )
            lines += [f"{_key(each.key.partition('.')[2])} = {value_in_toml(each.value)}" for each in alike]
    return "\n".join(lines) + "\n"


def value_in_toml(value: Any) -> str:
    """On one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {value_in_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_in_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


def _key(key: str) -> str:
    return ".".join(part if BARE.fullmatch(part) else value_in_toml(part) for part in key.split("."))
