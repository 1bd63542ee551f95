"""A run that is finished is left as it is; one that may go on is told by what it was planned for."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.core.bounded_file import read_text
from transduce.core.errors import InputError
from transduce.core.model_file import NAME
from transduce.core.tensor_file import read_metadata
from transduce.data.files import fingerprint
from transduce.recipe.recipe import Recipe
from transduce.recipe.training import TrainingConfig
from transduce.runtime.event_log import REPORT
from transduce.tasks.base import task_class
from transduce.training.batch_size import with_earlier_batch
from transduce.training.checkpoint import FOLDER, PATTERN
from transduce.training.display import Display
from transduce.training.loop import why_ended
from transduce.training.progress import Progress
from transduce.training.run_directory import changed_search, check_data, check_recipe, is_begun
from transduce.training.summary import rows
from transduce.training.timed_schedule import TimedSchedule

Report = dict[str, Any]


def finished_report(run: Path, recipe: Recipe) -> Report | None:
    """The report of a run that is finished, and would be no further by `recipe`; nothing is written.

    Raises:
        InputError: the run is of another recipe, or its files have changed; `recipe` goes on from a run whose
            checkpoints are gone.
    """
    report = read_report(run)
    if report is None or not (run / NAME).is_file() or not _holds_a_model(run / NAME):
        return None
    recipe = with_earlier_batch(recipe, run)
    check_recipe(run, recipe)
    if why_ended(recipe.training, _progress(run, report)) is None:
        if not is_begun(run):
            raise InputError(
                f"{run}: this run finished after update {report['training']['updates']} and cannot go on: its "
                f"checkpoints are gone. Choose another directory with --run; training.start={run} "
                "starts from this model."
            )
        return None
    files = _fingerprints(recipe)
    if files is not None:
        check_data(run, files)
    return report


def read_report(run: Path) -> Report | None:
    """What a training wrote at its end, or `--finish` before; None where there is none that is whole."""
    try:
        report = json.loads(read_text(run / REPORT))
    except (OSError, ValueError, RecursionError):
        return None
    return report if isinstance(report, dict) and _is_whole(report) else None


def _is_whole(report: Report) -> bool:
    """Whether all that is read of it later is there, and of its kind."""
    try:
        list(rows(report))
        Progress.from_dict(report.get("progress", {}))
        kept = {"update": report["training"]["updates"], "seconds": report["training"]["seconds"]}
        Progress.from_dict(kept)
        return isinstance(report["model"]["sha256"], str) and isinstance(report["ended"], str)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return False


def _holds_a_model(path: Path) -> bool:
    """Whether a file is there, as long as it says: one that is cut short is written again, as a missing one is."""
    try:
        read_metadata(path)
    except InputError:
        return False
    return True


def tell_finished(run: Path, recipe: Recipe, report: Report, display: Display) -> None:
    """That nothing is left to do, and what could be."""
    display.tell(f"{run}: finished, and left as it is. Training ended: {report['ended']}.")
    if fingerprint(run / NAME) != report["model"]["sha256"]:
        display.tell(f"{NAME} has changed since training ended (`transduce shortlist`, for example, adds to it).")
    if search := changed_search(run, recipe):
        display.tell(
            f"{', '.join(search)}: a finished run is not tested again; use `transduce evaluate` or `predict` for that."
        )
    display.tell(
        f"To train it further: {' '.join(_higher(recipe, report))}. To train another: name another directory with "
        "--run."
    )


def set_aside(run: Path, display: Display) -> None:
    """The report of a run that goes on, under a name of its own: until the end there is none that is true."""
    report = read_report(run)
    if report is not None:
        kept = run / f"report-{int(report['training']['updates']):08d}.json"
        (run / REPORT).rename(kept)
        display.tell(f"The report so far is {kept.name}.")


def note_plan(recipe: Recipe, progress: Progress, display: Display, events: Sequence[Mapping[str, Any]] = ()) -> None:
    """What the learning rate follows from here; where the limits are others than before, that is told.

    events: of the run's log.
    """
    config, before = recipe.training, progress.planned or recipe.training.updates
    earlier = TimedSchedule(config.model_copy(update={"updates": before}), events, progress)
    if progress.update and before != config.updates:
        progress.raised.append([progress.update, before])
    if progress.update and (changed := _changed(config, before, earlier.minutes_before)):
        now = TimedSchedule(config, events, progress)
        now.planned(progress)
        display.tell(
            f"{' '.join(changed)} The {config.schedule} schedule is that of the new limits from here: the "
            f"learning rate was {earlier.rate(progress.update):.3g} and goes on at {now.rate(progress.update + 1):.3g}."
        )
    progress.planned = config.updates


def _changed(config: TrainingConfig, updates: int, minutes: float | None) -> list[str]:
    """Limits that were others before, each in a sentence."""
    found = []
    if updates != config.updates:
        found.append(f"training.updates is {config.updates:,} now, and was {updates:,}.")
    if config.minutes and minutes and minutes != config.minutes:
        found.append(f"training.minutes is {config.minutes:g} now, and was {minutes:g}.")
    return found


def _fingerprints(recipe: Recipe) -> dict[str, Any] | None:
    """Of the data; None where files are gone, which nobody needs any more, or the task does not say."""
    try:
        return task_class(recipe).fingerprints(recipe.data)
    except InputError:
        return None


def _progress(run: Path, report: Report) -> Progress:
    """Where it stands: the report says it, those of earlier versions with the help of the newest checkpoint."""
    if "progress" in report:
        return Progress.from_dict(report["progress"])
    for path in filter(Path.is_file, sorted((run / FOLDER).glob(PATTERN), reverse=True)):
        try:
            return Progress.from_dict(json.loads(read_metadata(path)["progress"]))
        except (InputError, KeyError, ValueError, TypeError, RecursionError):
            continue
    training = report["training"]
    return Progress(update=int(training["updates"]), seconds=float(training["seconds"]))


def _higher(recipe: Recipe, report: Report) -> list[str]:
    """Twice the limits that have ended it, or end it soon, as they are typed."""
    config, made, spent = recipe.training, int(report["training"]["updates"]), report["training"]["seconds"] / 60
    twice = []
    if config.minutes is None or 2 * made > config.updates:
        twice.append(f"training.updates={2 * max(made, config.updates)}")
    if config.minutes is not None and 2 * spent > config.minutes:
        twice.append(f"training.minutes={2 * config.minutes:g}")
    if config.patience is not None:
        twice.append(f"training.patience={2 * config.patience}")
    return twice
