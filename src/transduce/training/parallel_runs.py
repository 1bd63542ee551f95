"""Several trainings, one after the other or so many at once, each in a process of its own.

A training of a small model leaves a processor with several cores half idle: two of one thread each do more in an hour
than one of two threads after another.

`python -m transduce.training.parallel_runs JOB.json`, started by `train_all`, see `transduce.runtime.child_process`.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transduce.core.errors import TransduceError
from transduce.recipe.recipe import Recipe, parse_recipe
from transduce.runtime import child_process
from transduce.runtime.allocator import keep_freed_memory
from transduce.runtime.console import make_console
from transduce.runtime.event_log import NAME, read_log
from transduce.runtime.processors import processors
from transduce.training.display import Display
from transduce.training.run import run_training

LOOK = 0.5  # seconds between two looks at those that train
PATIENCE = 60.0  # seconds that a training may take to save once whoever started it is gone
SHOWN = {"loss", "tokens_per_second"}


def train_all(plans: Mapping[Path, Recipe], at_once: int, display: Display) -> None:
    """Train each recipe into its run directory, or go on; with several at once, in processes, told in FOLDER.txt.

    Raises:
        TransduceError: as `run_training`. The others have stopped by then, saved.
    """
    if at_once == 1 or len(plans) < 2:
        for folder, plan in plans.items():
            display.tell(f"{plan.name}, in {folder}.")
            run_training(plan, folder, Display(display.console))
        return
    display.tell(f"{len(plans)} trainings, {at_once} at once: {', '.join(map(str, plans))}.")
    threads = max(1, processors() // min(at_once, len(plans)))
    waiting, going = list(plans), dict[Path, child_process.Process]()
    with display.several({plan.name: plan.training.updates for plan in plans.values()}) as show:
        try:
            while waiting or going:
                while waiting and len(going) < at_once:
                    folder = waiting.pop(0)
                    going[folder] = _begin(plans[folder], folder, threads)
                time.sleep(LOOK)
                for folder in list(going):
                    ended = going[folder].poll() is not None
                    if event := _last(folder):
                        show(plans[folder].name, event["update"], event["loss"], event["tokens_per_second"])
                    if ended:
                        _check(going.pop(folder), plans[folder], folder)
        finally:
            for process in going.values():
                process.stdin.close()  # type: ignore[union-attr]  # all are told before one is waited for
            for process in going.values():
                child_process.stop(process)


def _begin(plan: Recipe, folder: Path, threads: int) -> child_process.Process:
    folder.parent.mkdir(parents=True, exist_ok=True)
    job = {"kind": "train", "where": plan.name, "recipe": plan.to_table(), "run": str(folder)}
    told = _beside(folder, "txt")
    told.unlink(missing_ok=True)
    return child_process.start("transduce.training.parallel_runs", job, _beside(folder, "json"), told, threads)


def _last(folder: Path) -> dict[str, Any] | None:
    """The last that a training told of itself."""
    events = reversed(read_log(folder / NAME))
    return next((event for event in events if event["event"] == "train" and event.keys() >= SHOWN), None)


def _check(process: child_process.Process, plan: Recipe, folder: Path) -> None:
    """Raises what a training ended with, if it did not end well; TransduceError for all that is not known."""
    told = _beside(folder, "txt")

    def problem() -> str:
        return told.read_text(encoding="utf-8").rpartition("transduce: ")[2].strip()

    code = child_process.exit_code(process, problem)
    if code == TransduceError.exit_code:
        raise TransduceError(f"{plan.name}: {problem()}")
    if code:
        raise TransduceError(f"{plan.name}: its process ended with code {code}; its output is in {told}.")


def _beside(folder: Path, suffix: str) -> Path:
    return folder.parent / f"{folder.name}.{suffix}"


def _train(job: child_process.Job) -> None:
    keep_freed_memory()
    run_training(parse_recipe(job["recipe"], job["where"]), Path(job["run"]), Display(make_console()), PATIENCE)


if __name__ == "__main__":
    child_process.answer({"train": _train})
