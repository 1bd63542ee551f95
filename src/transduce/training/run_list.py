"""The runs in a folder as a list: what each trains, how good it is, whether it is finished, stopped or training now.

Run directories may come from anybody, so of each file a bounded part is read, and what is wrong with it is told in the
run's line. Nothing here imports torch.
"""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from transduce.core.bounded_file import read_bytes
from transduce.core.bounded_toml import toml_table
from transduce.core.errors import InputError
from transduce.core.model_file import NAME
from transduce.data.pairs.pair_files import FILES, SHORT
from transduce.runtime.event_log import NAME as LOG
from transduce.runtime.event_log import REPORT
from transduce.runtime.lock import is_held

RECIPE = "recipe.toml"
MADE = (LOG, REPORT, NAME, "data.json", "checkpoints", ".lock")  # what a training leaves beside its recipe
DEEP = 5  # levels of folders that are looked at: runs/compare/NAME/VARIANT is on the fourth
MANY = 200_000  # files and folders that are looked at
RECIPE_BYTES, REPORT_BYTES = 1 << 16, 1 << 22
TAIL_BYTES = 1 << 18  # of a log, where the newest events are
COUNTED = ("event", "update", "tokens", "seconds", "loss", "perplexity")  # of a validation, what is no metric of a task
LONGEST = 200  # characters of a text from a file

State = Literal["finished", "stopped", "training", "damaged"]
Table = Mapping[str, Any]


@dataclass(frozen=True)
class RunScore:
    """A figure of a run: of its first test set, or while there is none of its newest validation, where `test` is ""."""

    test: str
    metric: str
    value: float


@dataclass(frozen=True)
class RunFacts:
    """One run. date: when it was finished, or last wrote something, in UTC.

    minutes: spent on the training; minutes_planned: the limit that the recipe sets, if it does.
    problem: what of its files cannot be read.
    """

    folder: str
    state: State
    date: str
    task: str
    data: str
    score: RunScore | None
    update: int
    updates: int | None
    minutes: float
    minutes_planned: float | None
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def runs_in(folders: Iterable[Path]) -> list[RunFacts]:
    """All runs in some folders and the folders within them, the newest last; a folder may be a run itself.

    Raises:
        InputError: a folder is missing, cannot be read, or holds too much to be looked through.
    """
    found = {run: facts_of(run) for folder in folders for run in _found(folder)}
    return sorted(found.values(), key=lambda run: (run.date, run.folder))


def _found(folder: Path) -> Iterator[Path]:
    """Level by level. What lies in a run is part of it."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; expected a folder of runs, or a run.")
    level, looked_at = [folder], 0
    for _ in range(DEEP):
        yield from filter(_is_run, level)
        folders = list[Path]()
        for entry in (each for one in level if not _is_run(one) for each in _entries(one, folder)):
            looked_at += 1
            if looked_at > MANY:
                raise InputError(f"{folder}: more than {MANY:,} files; name the folders that hold runs.")
            if entry.is_dir():
                folders.append(Path(entry))
        level = sorted(folders)


def _entries(folder: Path, named: Path) -> Iterator["os.DirEntry[str]"]:
    """Of a folder; one that cannot be read has none, unless it was named."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError as error:
        if folder == named:
            raise InputError(f"{folder}: cannot be read: {error.strerror}.") from error


def _is_run(folder: Path) -> bool:
    return _exists(folder / RECIPE) and any(_exists(folder / name) for name in MADE)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def facts_of(run: Path) -> RunFacts:
    problems = list[str]()
    recipe, report = _recipe(run, problems), _report(run, problems)
    event = _newest(run, problems)
    training, last = _table(recipe, "training"), event.get("validation", {})
    trained = _table(report, "training") or event.get("train", {}) or last
    update = _whole(trained.get("updates", trained.get("update"))) or 0
    held = is_held(run)
    finished = bool(report) and _exists(run / NAME) and not held
    state: State = "training" if held else "finished" if finished else "damaged" if problems else "stopped"
    return RunFacts(
        folder=str(run),
        state=state,
        date=_text(report.get("finished")) if finished else _changed(run),
        task=_task(recipe),
        data=_data(recipe),
        score=_score(report) or _validation(last),
        update=update,
        updates=_whole(training.get("updates")),
        minutes=(_number(trained.get("seconds")) or 0.0) / 60,
        minutes_planned=_number(training.get("minutes")),
        problem="; ".join(problems),
    )


def _recipe(run: Path, problems: list[str]) -> Table:
    try:
        return toml_table(read_bytes(run / RECIPE, RECIPE_BYTES).decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{RECIPE}: {_why(error)}")
        return {}


def _report(run: Path, problems: list[str]) -> Table:
    """Empty where there is none yet."""
    try:
        found = json.loads(read_bytes(run / REPORT, REPORT_BYTES))
        if not isinstance(found, dict):
            raise ValueError("expected a table")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{REPORT}: {_why(error)}")
        return {}
    return found


def _newest(run: Path, problems: list[str]) -> dict[str, Table]:
    """The newest event of each kind near the log's end."""
    try:
        lines = read_bytes(run / LOG, TAIL_BYTES, tail=True).split(b"\n")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        problems.append(f"{LOG}: {_why(error)}")
        return {}
    return {_text(event["event"]): event for line in lines if (event := _event(line))}


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):  # the first line may be cut, and the last one
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


def _why(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0][:LONGEST]


def _changed(run: Path) -> str:
    """When its log or recipe was last written."""
    times = []
    for name in (LOG, RECIPE):
        try:
            times.append((run / name).stat().st_mtime)
        except OSError:
            continue
    try:
        return datetime.fromtimestamp(max(times, default=0.0), UTC).isoformat(timespec="seconds")
    except (OverflowError, ValueError, OSError):
        return ""


def _task(recipe: Table) -> str:
    """`translation en-fr`."""
    task = _table(recipe, "task")
    languages = "-".join(filter(None, (_text(task.get("source")), _text(task.get("target") or task.get("language")))))
    return " ".join(filter(None, (_text(task.get("kind")) or "translation", languages)))


def _data(recipe: Table) -> str:
    """The names of the first training file, or of both where its sides have one each, and how many more there are."""
    data = _table(recipe, "data")
    train = data.get("train")
    entries = [each for each in train if isinstance(each, dict)] if isinstance(train, list) else []
    if not entries:
        return _text(data.get("file")) or _name(_text(data.get("root")))
    keys = (*FILES, *SHORT, "text", "features")
    names = [_name(_text(entries[0][key])) for key in keys if isinstance(entries[0].get(key), str)]
    more = f", and {len(entries) - 1} more" if len(entries) > 1 else ""
    return ", ".join(filter(None, dict.fromkeys(names))) + more


def _name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _score(report: Table) -> RunScore | None:
    """The first metric of the first test set, or the perplexity of a language model."""
    for test, found in _table(report, "tests").items():
        for score in _table(found, "scores").values():
            if isinstance(score, dict) and (value := _number(score.get("value"))) is not None:
                return RunScore(_text(test), _text(score.get("name")), value)
        if (value := _number(_table(found, "likelihood").get("perplexity"))) is not None:
            return RunScore(_text(test), "perplexity", value)
    return None


def _validation(event: Table) -> RunScore | None:
    """The first metric that the task has, or the loss."""
    for name, value in event.items():
        if name not in COUNTED and (number := _number(value)) is not None:
            return RunScore("", _text(name), number)
    value = _number(event.get("loss"))
    return None if value is None else RunScore("", "loss", value)


def _table(table: Any, key: str) -> Table:
    found = table.get(key) if isinstance(table, dict) else None
    return found if isinstance(found, dict) else {}


def _text(value: Any) -> str:
    return value[:LONGEST] if isinstance(value, str) else ""


def _whole(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value < 1 << 62 else None


def _number(value: Any) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return float(value) if usable and math.isfinite(value) else None
