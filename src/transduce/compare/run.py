"""Run a comparison: measure what each variant costs, train one after the other, and write the results.

    DIR/VARIANT-seed1/    a run directory each, as `transduce train` makes them, with outputs/ and measured.json
    DIR/costs/            parameters, operations and growth with length of each variant
    DIR/compare.json, compare.md, compare.html

Where a key of the recipe is the axis, DIR/KEY-VALUE/ holds all this of each value, and DIR/compare.* are about all of
them.

Finished parts are kept: the same command continues where it was stopped.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from transduce.compare.axis import check_lengths
from transduce.compare.config import ComparisonConfig, folder_name
from transduce.compare.operations import updates_for_tokens
from transduce.compare.page import write_pages
from transduce.compare.results import Costs, FinishedRun, joined_results, make_results
from transduce.compare.worker import FAILED, MEASURED
from transduce.core.atomic import write_json
from transduce.core.errors import InputError, TransduceError
from transduce.core.folders import check_folder, check_inside
from transduce.data.columns import Columns
from transduce.recipe.recipe import Recipe, Table
from transduce.runtime import child_process
from transduce.tasks.base import Task
from transduce.tasks.protocols import TaskData
from transduce.training.display import Display
from transduce.training.run import open_task
from transduce.training.run_directory import changed_keys, differences, make_folder, resolved_table

PATIENCE = 60.0  # seconds that a stopped comparison's last training may take to save
LOCK = ".lock"
OURS = (LOCK, "compare.json", "costs")  # what only a comparison writes
FIGURES = ("memory", "model", "training", "ended", "tests", "environment")  # of a training that is finished
OF_NO_MATTER = ("data.root", "training.log_every", "training.tensorboard")  # to the figures of a training


class Training(NamedTuple):
    """One of a comparison's trainings."""

    variant: str
    seed: int
    recipe: Recipe
    run: Path

    @property
    def name(self) -> str:
        return f"{self.variant}, seed {self.seed}"


def run_comparison(comparison: ComparisonConfig, folder: Path, display: Display) -> dict[str, Any]:
    """Train whatever is not trained yet, measure, write the pages; returns what compare.json holds.

    A training that fails (its loss is no number any more) is reported as failed, and the others go on.

    Raises:
        InputError: a recipe changed since its training began, or the budget is smaller than what was spent.
        Interrupted: stopped by a signal; saved.
    """
    _claim(folder)
    if comparison.points:
        return _run_points(comparison, folder, display)
    with _alone_in(folder, display) as lock:
        task, data = open_task(comparison.any_recipe, display)
        check_lengths(comparison.config.axis, data.tests)
        task.tallies([task.any_output], [[task.any_output]], comparison.metrics)  # a wrong metric is told now
        costs = _costs(comparison, folder, lock, display)
        trainings = _plan(comparison, folder, data, task.columns, costs)
        _refuse_changed(comparison, trainings)
        results: dict[str, Any] = {}
        for number, training in enumerate(trainings, 1):
            display.tell(f"Training {number} of {len(trainings)}: {training.name}")
            _train(comparison, training, lock, display)
            if number % len(comparison.variants) == 0:
                results = _write(comparison, folder, task, data, trainings, costs, display)
        return results


def _claim(folder: Path) -> None:
    """The folder of a comparison. Raises InputError where there can be none, or it holds what is not ours."""
    if not any((folder / each).exists() for each in OURS):
        check_folder(folder, why=" and no comparison")
    check_inside(folder)
    make_folder(folder)
    (folder / LOCK).touch()


def _run_points(comparison: ComparisonConfig, folder: Path, display: Display) -> dict[str, Any]:
    """Value by value; what there is of all of them is written after each."""
    axis = comparison.config.axis
    assert axis is not None
    found: dict[str, dict[str, Any]] = {}
    results: dict[str, Any] = {}
    for value, point in comparison.points.items():
        name = f"{folder_name(axis.key.rpartition('.')[2])}-{value}"
        display.tell(f"{axis.key} = {value:,}, {len(found) + 1} of {len(comparison.points)} values")
        found[name] = run_comparison(point, folder / name, display)
        results = joined_results(comparison, found)
        write_json(folder / "compare.json", results)
        write_pages(results, folder, display.tell)
    return results


def _plan(
    comparison: ComparisonConfig, folder: Path, data: TaskData, columns: Columns, costs: dict[str, Costs]
) -> list[Training]:
    """Seed by seed, so that every variant has been trained once before any is trained again."""
    plan = []
    for seed in comparison.config.seeds:
        for variant in comparison.variants:
            updates = _updates(comparison, variant, seed, data, columns, costs[variant])
            run = folder / f"{folder_name(variant)}-seed{seed}"
            plan.append(Training(variant, seed, comparison.training(variant, seed, updates), run))
    return plan


def _updates(
    comparison: ComparisonConfig, variant: str, seed: int, data: TaskData, columns: Columns, costs: Costs
) -> int | None:
    """How many the budget buys; None where it is time."""
    budget, recipe = comparison.budget, comparison.variants[variant]
    if budget.unit == "minutes":
        return None
    tokens = budget.amount if budget.unit == "tokens" else budget.amount / costs.operations_a_token
    return updates_for_tokens(data.batches(recipe.batch, seed), columns, recipe.training.accumulate, tokens)


def _refuse_changed(comparison: ComparisonConfig, trainings: list[Training]) -> None:
    problems = []
    for training in trainings:
        keys = changed_keys(training.run, training.recipe)
        if keys:
            problems.append(
                f"{training.run}: {training.name} was trained with another recipe; these keys differ: "
                f"{', '.join(keys)}. Choose another directory with --run, or delete this one."
            )
        elif _spent_minutes(training.run) > comparison.budget.amount and comparison.budget.unit == "minutes":
            problems.append(
                f"{training.run}: {training.name} was trained for longer than {comparison.budget.text}. Give at least "
                "the budget it had, choose another directory with --run, or delete this one."
            )
    if problems:
        raise InputError(problems)


def _spent_minutes(run: Path) -> float:
    """The budget, in minutes, that a training was begun with; 0 where there is none."""
    before = resolved_table(run) or {}
    return float(before.get("training", {}).get("minutes", 0.0))


def _train(comparison: ComparisonConfig, training: Training, lock: int | None, display: Display) -> None:
    settings = {"searches": comparison.search_tables(training.variant), "decode_batch": comparison.config.decode_batch}
    table = training.recipe.to_table()
    if _is_done(training.run / MEASURED, {"recipe": table, **settings}, FIGURES):
        display.tell("  finished already")
        return
    tests = comparison.variants[training.variant].to_table()
    training.run.mkdir(parents=True, exist_ok=True)
    job = {"kind": "train", "where": training.name, "recipe": table, "tests": tests, "run": str(training.run)}
    code = _run_worker({**job, **settings}, training.run / "job.json", lock)
    if code and not (training.run / FAILED).exists():
        raise TransduceError(f"{training.name}: its process ended with code {code}; the same command tries again.")
    if code:
        display.warn(f"{training.name} failed; the others go on.")


def _costs(comparison: ComparisonConfig, folder: Path, lock: int | None, display: Display) -> dict[str, Costs]:
    """Measured once for a recipe, all in one process."""
    (folder / "costs").mkdir(exist_ok=True)
    paths = {name: folder / "costs" / f"{folder_name(name)}.json" for name in comparison.variants}
    lengths = list(comparison.config.lengths)
    missing: list[dict[str, Any]] = []
    for name, path in paths.items():
        recipe = comparison.training(name, comparison.config.seeds[0], 1).to_table()
        if not _is_done(path, {"recipe": recipe, "lengths": lengths}, Costs._fields):
            missing.append({"where": name, "into": str(path), "recipe": recipe, "lengths": lengths})
    if missing:
        display.tell(f"Measuring what a token costs: {', '.join(each['where'] for each in missing)}")
        code = _run_worker({"kind": "costs", "where": "costs", "models": missing}, folder / "costs" / ".job.json", lock)
        if code:
            raise TransduceError(f"Measuring costs ended with code {code}.")
    return {name: Costs.read(path) for name, path in paths.items()}


def _is_done(path: Path, key: Table, figures: Sequence[str]) -> bool:
    """Whether `path` holds these figures of exactly this; a file that is damaged does not."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(told, dict) or not told.keys() >= {"recipe", *figures}:
        return False
    same = [name for name in key if name in told]
    different = differences({name: told[name] for name in same}, json.loads(json.dumps(key)))
    return not [name for name in different if not name.removeprefix("recipe.").startswith(OF_NO_MATTER)]


def _run_worker(arguments: dict[str, Any], path: Path, lock: int | None) -> int:
    """Run the worker in a process of its own, which shares our output and our lock; its exit code.

    Raises:
        InputError, Interrupted: as the process ended.
    """
    process = child_process.start("transduce.compare.worker", arguments, path, keep=[] if lock is None else [lock])
    return child_process.exit_code(process, lambda: f"{arguments['where']}: see above.")


def _write(
    comparison: ComparisonConfig,
    folder: Path,
    task: Task,
    data: TaskData,
    trainings: list[Training],
    costs: dict[str, Costs],
    display: Display,
) -> dict[str, Any]:
    finished: dict[str, list[FinishedRun]] = {name: [] for name in comparison.variants}
    for training in trainings:
        finished[training.variant].append(FinishedRun.read(training.seed, training.run))
    results = make_results(comparison, task, data, finished, costs)
    write_json(folder / "compare.json", results)
    write_pages(results, folder, display.tell)
    return results


@contextmanager
def _alone_in(folder: Path, display: Display) -> Iterator[int | None]:
    """Nobody else compares in `folder` meanwhile; the descriptor of the lock, which our processes hold with us.

    Raises:
        InputError: somebody does, and goes on doing so.
    """
    if sys.platform == "win32":
        yield None
        return
    import fcntl

    with (folder / LOCK).open("ab") as file:
        waited_until = None
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                now = time.monotonic()
                if waited_until is None:
                    waited_until = now + PATIENCE
                    display.tell(
                        f"{folder}: another comparison is running there, or is saving after it was stopped; waiting."
                    )
                if now > waited_until:
                    raise InputError(f"{folder}: another comparison is running there.") from None
                time.sleep(0.2)
        yield file.fileno()
