"""`transduce.train` without a recipe: from files, or from examples that a program holds, all else is decided."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from transduce.api.data import FOLDER, adopt, named_columns, pair_columns, parts_of, staged
from transduce.api.examples import Columns
from transduce.core.cache import cache_folder
from transduce.core.errors import InputError
from transduce.data.files import fingerprint
from transduce.planning.inputs import HELD_OUT, Named, names_data, resolve_inputs
from transduce.planning.languages import parse_languages
from transduce.planning.plan import TrainingPlan
from transduce.planning.planned_run import planned_run
from transduce.planning.promise import parse_minutes
from transduce.recipe.recipe import Table
from transduce.training.display import Display
from transduce.training.examination import examine_data
from transduce.training.run_directory import check_directory, default_run

RUN = Path("runs/model")  # of examples, which have no name
PATHS = (str, PathLike)


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


def is_data(recipe: Any) -> bool:
    """Whether what stands in a recipe's place is the path of pairs."""
    return isinstance(recipe, PATHS) and names_data(Path(recipe))


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
    named = Named(Path(asked.source), target, columns, other, None, None, _languages(asked), *validation, *test)
    folder = run or default_run(resolve_inputs(named).name)
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
    check_directory(run, [FOLDER])
    with _gone_if_refused(run):
        with staged(run, parts, columns, problems) as files:
            if problems:
                raise InputError(problems)
            adopt(run, files)
        paths = {name: run / FOLDER / f"{name}.jsonl" for name in parts}
        keys = pair_columns(columns)
        others = {name: {"file": path.name, **keys} for name, path in paths.items() if name != "train"}
        given = {**asked.given, "data": {**others, **asked.given.get("data", {})}} if others else asked.given
        own, target = ((keys["source_column"],), keys["target_column"]) if keys else ((), None)
        named = Named(paths["train"], None, own, target, languages=_languages(asked), root=run / FOLDER)
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
