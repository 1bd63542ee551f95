"""`transduce.train`: what `transduce train` does, for a program that may hold recipe and data itself."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from time import monotonic
from typing import Any

from rich.console import Console

from transduce.api.data import FOLDER, adopt, entry_of, named_columns, pair_columns, parts_of, staged, with_data
from transduce.api.examples import Columns, written_keys
from transduce.core.cache import cache_folder
from transduce.core.errors import InputError
from transduce.core.overrides import set_key
from transduce.core.tables import columns_of
from transduce.core.trust import allow_code
from transduce.data.files import fingerprint
from transduce.data.pairs.inputs import HELD_OUT, Named
from transduce.data.pairs.languages import parse_languages
from transduce.distillation.pipeline import train_recipe
from transduce.pipeline.pipeline import Pipeline, load
from transduce.planning.plan import TrainingPlan
from transduce.planning.planned_run import planned_run, tell_taken
from transduce.planning.promise import parse_minutes
from transduce.planning.recognition import check_kind, names_examples, planner_of
from transduce.recipe.recipe import Recipe, Table, is_users_own, parse_recipe, read_table, with_model_to_start_from
from transduce.runtime.allocator import keep_freed_memory
from transduce.runtime.console import make_console
from transduce.runtime.devices import VARIABLE, use_device
from transduce.runtime.process_group import refuse_several
from transduce.training.display import Display, Watch
from transduce.training.examination import examine_data
from transduce.training.finished import Report
from transduce.training.progress import Progress
from transduce.training.run_directory import check_directory, check_recipe, default_run, resolved_table
from transduce.training.summary import tell_summary

RUN = Path("runs/model")  # of examples, which have no name
PATHS = (str, PathLike)


@dataclass(frozen=True)
class TrainingUpdate:
    """Where a training is, as a callback is told after each update.

    update: updates done, from 1, of `updates`.
    loss: mean of the recent ones, in nats a unit of the objective (a token of the target, for text).
    learning_rate: of this update.
    speed: units of the objective a second.
    seconds: spent on the training so far, over all of its runs.
    best: metrics of the best validation so far, with its "update"; empty before the first.
    """

    update: int
    updates: int
    loss: float
    learning_rate: float
    speed: float
    seconds: float
    best: Mapping[str, float]


Callback = Callable[[TrainingUpdate], None]


class TrainedRun:
    """A finished training.

    run: its directory.
    report: what its report.json holds: test scores with intervals and signatures, versions, machine, times.
    model: loaded when it is first asked for.
    """

    def __init__(self, run: Path, report: Report, device: str = "auto") -> None:
        self.run = run
        self.report = report
        self._device = device

    @cached_property
    def model(self) -> Pipeline:
        """As `transduce.load(run)` gives it. The code that its recipe names may run, as it has for this training.

        Raises:
            InputError: the run's directory is no longer there.
        """
        return load(self.run, trust_code=None, device=self._device)

    def __repr__(self) -> str:
        return f"<transduce.TrainedRun {self.run}: {self.report['ended']}>"


def train(
    recipe: "Recipe | Mapping[str, Any] | str | PathLike[str] | None" = None,
    run: "str | PathLike[str] | None" = None,
    data: Any = None,
    *,
    source: Any = None,
    target: Any = None,
    columns: Columns = None,
    languages: "str | tuple[str, str] | None" = None,
    validation: Any = None,
    test: Any = None,
    task: str | None = None,
    time: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    callbacks: Iterable[Callback] = (),
    device: str = "auto",
    quiet: bool = False,
    console: Console | None = None,
    force: bool = False,
    trust_code: bool = False,
) -> TrainedRun:
    """Train a recipe, or the best model for some data; the same call goes on with a training that was stopped.

    As with the command `transduce train`, no recipe is needed: `train(data=pairs)`, `train("pairs.tsv")` or
    `train(source="train.en", target="train.sw")` decides all that a recipe would say, and tells it first.

    Text pairs are examined first, as by `transduce doctor`. A finished run is left as it is, and returned. Memory that
    is freed stays with the process from then on, as that is faster (`transduce.runtime.allocator`).

    Args:
        recipe: the path of a TOML file, a mapping of sections as such a file has, or a `transduce.Recipe`. None, or the
            path of a file of pairs, or examples as `data` takes them: everything is decided from the data.
        run: the directory of the run; None = runs/NAME, by the name of the recipe or of the files; runs/model for
            examples without a recipe.
        data: examples, in the place of all files that the recipe names: (source, target) pairs of texts, mappings with
            these keys (or text and label), in a list or a generator; a table of pandas, polars or pyarrow; a data set
            of Hugging Face. Or a mapping with train, and perhaps validation and test, of these. For tasks of text pairs
            and of labelled texts. They are written into the run's folder data/. Without a recipe: text pairs, or
            labelled texts with task="classification", or words and their labels (texts with spaces between) with
            task="tagging", or a path as `source` takes it.
        source, target: without a recipe: both sides, as lists of texts or as files with one text a line. Or `source`
            alone, a file or a folder with both sides, as the command's option --source takes it.
        columns: keys of source and target in mappings and tables, if they have other names; `translation.en` is the
            key en in the mapping translation. A table of two columns needs none. The recipe of the run keeps them, so
            its model finds them in other files. Of a file of pairs, the columns by name or number.
        languages: without a recipe: those of source and target, such as "en-sw", where file names do not say them.
        validation, test: without a recipe: held-out pairs, as `source` or `data` names those to train on; of two files,
            both paths in a tuple. None = some of the training pairs, which are not trained on.
        task: without a recipe: "classification" (texts with labels), "tagging" (words with labels), "extractive_qa"
            (questions on texts), "speech_recognition", "language_modelling" or "masked_language_modelling" (text
            alone), or "translation" (pairs of texts). None = as the files look; examples that a program holds are
            pairs.
        time: without a recipe: what training and tests may take, such as "2h" or "90m". None = as long as the data
            deserves, an hour at most.
        overrides: keys of the recipe, such as {"training.updates": 2000}.
        callbacks: each is called with a `TrainingUpdate` after each update. An exception ends the training; the same
            call then goes on after the newest checkpoint.
        device: "cpu", "cuda", "mps", or "auto", which is a GPU of CUDA if there is one.
        quiet: show nothing.
        console: of rich, to show progress, warnings and scores on; None = standard output, or the notebook's cell.
        force: train even if the examination of the data found errors.
        trust_code: let a recipe that lies in a run directory name code outside Transduce. Any other recipe may.

    Raises:
        InputError: the recipe, the data or an argument is wrong, with all problems found; `run` holds a training of
            another recipe or of other data.
        Interrupted: Ctrl-C; everything is saved.
    """
    refuse_several("transduce.train, which trains in one; several need the command: torchrun -m transduce train RECIPE")
    shown = console or make_console(quiet=quiet)
    display, since, plan = Display(shown), monotonic(), None
    with _on(device):
        keep_freed_memory()
        if _holds_examples(recipe):
            recipe, data = None, _data_in_its_place(recipe, data)
        if recipe is None or is_data(recipe):
            source = _in_its_place(recipe, source)
            given = _overridden({}, overrides or {})
            held_out = {"validation": validation, "test": test}
            asked = Asked(data, source, target, columns, languages, held_out, time, overrides or {}, given, since, task)
            plan, folder = planned(asked, None if run is None else Path(run), display, force)
            resolved = plan.recipe
        else:
            held_out = {"validation": validation, "test": test}
            _refuse_planning(source=source, target=target, languages=languages, **held_out, task=task, time=time)
            resolved, folder = _prepared(*_table(recipe, overrides or {}, trust_code), run, data, columns, shown, force)
        display.watch = _watching(resolved, [*callbacks])
        report = train_recipe(resolved, folder, display)
        if not quiet:
            tell_summary(resolved, folder, report, display)
        if plan is not None:
            report = tell_taken(folder, report, plan, shown)
    return TrainedRun(folder, report, device)


def _holds_examples(recipe: Any) -> bool:
    """Whether what stands in a recipe's place is a table, a list or a generator of examples."""
    other = recipe is None or isinstance(recipe, Recipe | Mapping | str | bytes | PathLike)
    return not other and (columns_of(recipe) is not None or isinstance(recipe, Iterable))


def _data_in_its_place(recipe: Any, data: Any) -> Any:
    """The data, which may be named where a recipe is. Raises InputError where both are named."""
    if data is not None:
        raise InputError(f"recipe: {type(recipe).__name__} beside other data; expected a recipe, or data alone.")
    return recipe


def _in_its_place(recipe: Any, source: Any) -> Any:
    """The source, which may be named where a recipe is. Raises InputError where both are named."""
    if recipe is not None and source is not None:
        raise InputError(f"{recipe}: a file of pairs, beside another as source; expected either it or source.")
    return source if recipe is None else recipe


def _refuse_planning(**arguments: Any) -> None:
    """Raises InputError for arguments that say what a recipe says."""
    if given := [name for name, value in arguments.items() if value is not None]:
        raise InputError(
            f"{', '.join(given)}: only without a recipe; a recipe says these by data.train, data.validation, data.test "
            "and training.minutes."
        )


def _watching(recipe: Recipe, callbacks: list[Callback]) -> Watch | None:
    """What the display tells all callbacks by; None where there are none."""

    def watch(progress: Progress, loss: float, rate: float, speed: float) -> None:
        updates, best = recipe.training.updates, dict(progress.best)
        event = TrainingUpdate(progress.update, updates, loss, rate, speed, progress.seconds, best)
        for each in callbacks:
            each(event)

    return watch if callbacks else None


def _prepared(
    table: Table, where: str, run: Any, data: Any, columns: Columns, console: Console, force: bool
) -> tuple[Recipe, Path]:
    """The recipe and the directory of its run, after the data was looked at, and written where it was given."""
    if run is None and not table.get("name"):
        raise InputError('run: expected a directory, as the recipe has no name: train(recipe, run="runs/my").')
    folder = default_run(str(table["name"])) if run is None else Path(run)
    table.setdefault("name", (resolved_table(folder) or {}).get("name", folder.name))  # a run may have been renamed
    warn = Display(console).warn
    if data is None:
        resolved = parse_recipe(table, where)
        examine_data(resolved, cache_folder(), warn, force)
        return resolved, folder
    parts, problems = parts_of(data), list[str]()
    columns = named_columns(parts, columns, Display(console).tell)
    table = with_data(table, folder, parts, columns)
    check_directory(folder, [FOLDER])
    with staged(folder, parts, columns, problems) as files:
        try:
            resolved = parse_recipe(table, where)
        except InputError as error:
            raise InputError([*error.problems, *problems]) from None
        if problems:
            raise InputError(problems)
        check_recipe(folder, resolved)
        there = parse_recipe({**table, "data": {**table["data"], "root": str(files)}}, where)
        _examine(there, (str(files), str(folder / FOLDER)), warn, force)
        adopt(folder, files)
        return resolved, folder


def _examine(recipe: Recipe, renamed: tuple[str, str], warn: Callable[[str], None], force: bool) -> None:
    """As `examine_data`, of files that messages call as they will be called."""
    try:
        examine_data(recipe, cache_folder(), lambda line: warn(line.replace(*renamed)), force)
    except InputError as error:
        raise InputError(problem.replace(*renamed) for problem in error.problems) from None


def _table(recipe: Any, overrides: Mapping[str, Any], trust_code: bool) -> tuple[Table, str]:
    """A copy of the recipe's table with `overrides`, and what errors call it."""
    if isinstance(recipe, Recipe):
        table, where = recipe.to_table(), "recipe"
    elif isinstance(recipe, Mapping):
        table, where = _copied(recipe), "recipe"
        allow_code(table)
    elif isinstance(recipe, str | PathLike):
        path = Path(recipe)
        table, where = read_table(path, is_trusted=(lambda _: True) if trust_code else is_users_own), str(path)
        table.setdefault("name", path.stem)
    else:
        raise InputError(
            f"recipe: expected the path of a TOML file, a mapping or a transduce.Recipe; got {type(recipe).__name__}."
        )
    return with_model_to_start_from(_overridden(table, overrides)), where


def _overridden(table: Table, overrides: Mapping[str, Any]) -> Table:
    if not isinstance(overrides, Mapping):
        raise InputError(
            f'overrides: expected a mapping, such as {{"training.updates": 2000}}; got {type(overrides).__name__}.'
        )
    allow_code(overrides)
    problems = []
    for key, value in overrides.items():
        try:
            set_key(table, key, value)
        except InputError as error:
            problems += [f'overrides["{key}"]: {problem}' for problem in error.problems]
    if problems:
        raise InputError(problems)
    return table


def _copied(value: Any) -> Any:
    """Tables and lists copied, so that no caller's is changed."""
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list | tuple) else value


@contextmanager
def _on(device: str) -> Iterator[None]:
    """Inside, "auto" means this device; afterwards what it meant before."""
    before = os.environ.get(VARIABLE)
    use_device(device)
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


@dataclass(frozen=True)
class Asked:
    """What `transduce.train` is called with where there is no recipe, as its arguments say.

    held_out: `validation` and `test`, None where they are not given. given: `overrides` as a table.
    since: when it was called, by `time.monotonic`.
    """

    data: Any
    source: Any
    target: Any
    columns: Columns
    languages: "str | tuple[str, str] | None"
    held_out: Mapping[str, Any]
    time: str | None
    overrides: Mapping[str, Any]
    given: Table
    since: float
    task: str | None = None


def is_data(recipe: Any) -> bool:
    """Whether what stands in a recipe's place is the path of pairs."""
    return isinstance(recipe, PATHS) and names_examples(Path(recipe))


def planned(asked: Asked, run: Path | None, display: Display, force: bool) -> tuple[TrainingPlan, Path]:
    """What is decided, told, and noted in the directory of the run; the data is examined.

    Raises:
        InputError: as `transduce.train`.
    """
    asked = _one_kind(asked)
    if isinstance(asked.source, PATHS):
        return _of_files(asked, run, display, force)
    return _of_examples(asked, run or RUN, display, force)


def _one_kind(asked: Asked) -> Asked:
    """The same with either files, by `source` and `target`, or examples, by `data`."""
    data, source, target = asked.data, asked.source, asked.target
    if data is not None and (source is not None or target is not None):
        raise InputError("data: expected either data, or source and target.")
    if data is None and source is None:
        raise InputError(
            'expected a recipe or data: train("my.toml"), train("pairs.tsv"), train(data=pairs) or '
            'train(source="train.en", target="train.sw").'
        )
    if isinstance(data, PATHS):
        return replace(asked, data=None, source=data)
    if data is not None or isinstance(source, PATHS):
        return asked
    if target is None or isinstance(target, PATHS):
        raise InputError("target: expected a list of texts, as source is one.")
    sides = list(source), list(target)
    if len(sides[0]) != len(sides[1]):
        raise InputError(
            f"target: expected a text for each of the {len(sides[0]):,} in source; got {len(sides[1]):,} texts."
        )
    return replace(asked, data=list(zip(*sides, strict=True)), source=None, target=None)


def _of_files(asked: Asked, run: Path | None, display: Display, force: bool) -> tuple[TrainingPlan, Path]:
    one, other = asked.columns or (None, None)
    target = None if asked.target is None else Path(asked.target)
    columns = () if one is None else (one,)
    validation, test = (_two_sides(part, asked.held_out.get(part)) for part in HELD_OUT)
    named = Named(
        Path(asked.source), target, columns, other, None, None, _languages(asked), *validation, *test, task=asked.task
    )
    folder = run or default_run(planner_of(named).inputs.name)
    return _planned(folder, named, asked, {}, display, force), folder


def _two_sides(part: str, given: Any) -> tuple[Path | None, Path | None]:
    """The files of a held-out part, source and target. Raises InputError for what is neither one path nor two."""
    source, target = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if not all(path is None or isinstance(path, PATHS) for path in (source, target)):
        raise InputError(f"{part}: expected a path, or the paths of both sides in a tuple, as source is a path.")
    return Path(source) if source else None, Path(target) if target else None


def _of_examples(asked: Asked, run: Path, display: Display, force: bool) -> tuple[TrainingPlan, Path]:
    """The examples become files of the run first, as with a recipe."""
    parts, problems = _with_held_out(parts_of(asked.data), asked.held_out), list[str]()
    columns = named_columns(parts, asked.columns, display.tell)
    check_kind(asked.task or "translation")
    kind: Table = {"task": {"kind": asked.task or "translation"}}
    entry_of(kind, FOLDER, columns)  # refuses tasks whose examples are no texts
    check_directory(run, [FOLDER])
    with _gone_if_refused(run):
        with staged(run, parts, columns, problems) as files:
            if problems:
                raise InputError(problems)
            adopt(run, files)
        paths = {name: run / FOLDER / f"{name}.jsonl" for name in parts}
        others = {name: entry_of(kind, path.name, columns) for name, path in paths.items() if name != "train"}
        given = {**asked.given, "data": {**others, **asked.given.get("data", {})}} if others else asked.given
        text, label = written_keys(columns)
        named_too = pair_columns(columns) or asked.task in ("classification", "tagging")
        own, target = ((text,), label) if named_too else ((), None)
        named = Named(
            paths["train"], None, own, target, languages=_languages(asked), root=run / FOLDER, task=asked.task
        )
        prints = {name: fingerprint(path) for name, path in paths.items()}
        return _planned(run, named, replace(asked, given=given), prints, display, force), run


def _with_held_out(parts: dict[str, Any], held_out: Mapping[str, Any]) -> dict[str, Any]:
    """The examples by part. Raises InputError for a part that is given twice, or as a file."""
    given = {part: examples for part, examples in held_out.items() if examples is not None}
    problems = [f"{part}: is in data as well; give it once." for part in given if part in parts]
    problems += [f"{part}: expected examples, as data has." for part, each in given.items() if isinstance(each, PATHS)]
    if problems:
        raise InputError(problems)
    return {**parts, **given}


def _planned(
    run: Path, named: Named, asked: Asked, prints: dict[str, str], display: Display, force: bool
) -> TrainingPlan:
    noted = {"overrides": {key: str(value) for key, value in asked.overrides.items()}, "data": prints}
    minutes = parse_minutes(str(asked.time)) if asked.time is not None else None
    plan, begun = planned_run(run, named, asked.given, noted, minutes, display, force, since=asked.since)
    if begun:
        examine_data(plan.recipe, cache_folder(), display.warn, force)
    return plan


def _languages(asked: Asked) -> tuple[str, str] | None:
    if asked.languages is None:
        return None
    return parse_languages(asked.languages if isinstance(asked.languages, str) else "-".join(asked.languages))


@contextmanager
def _gone_if_refused(run: Path) -> Iterator[None]:
    """A run that is made inside goes again with what is refused there."""
    new = not run.exists()
    try:
        yield
    except InputError:
        if new:
            shutil.rmtree(run, ignore_errors=True)
        raise
