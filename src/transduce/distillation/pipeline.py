"""Distillation from one recipe: train the teachers, translate with them, train the student on their translations.

    RUN/teachers/SEED/   a teacher's run: the recipe with the changes in [teachers], and this seed
    RUN/taught/          the teachers' translations of the training sources, made as an ensemble (Kim and Rush 2016)
    RUN/                 the student's run, with its own ordinary recipe.toml

Each stage continues where it was stopped, and a finished stage is not repeated.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from transduce.core.atomic import write_json
from transduce.core.errors import InputError
from transduce.core.model_file import find_model_file
from transduce.data.files import count_lines, fingerprint
from transduce.distillation.translations import (
    distil,
    is_searched_so,
    read_distillation,
    taught_pairs,
    training_sources,
)
from transduce.pipeline.pipeline import load
from transduce.recipe.recipe import Recipe, lay_over, parse_recipe
from transduce.runtime.event_log import REPORT
from transduce.runtime.settings import repeatable
from transduce.search.settings import Search
from transduce.tasks.translation import TranslationData
from transduce.training.batch_size import with_earlier_batch
from transduce.training.display import Display
from transduce.training.finished import finished_report, tell_finished
from transduce.training.lock import alone_in
from transduce.training.parallel_runs import PATIENCE, train_all
from transduce.training.run import finish_training, run_training, train_in
from transduce.training.run_directory import claim, is_begun, make_directory

Report = dict[str, Any]


def train_taught(recipe: Recipe, run: Path, display: Display) -> Report:
    """Train the recipe's teachers, if it has any, then the model, in the directory `run`. Returns the model's report.

    The report lists the teachers with the cost of each.

    Raises:
        InputError: see `run_training`; or a recipe with teachers is not for translation.
    """
    if not recipe.teachers:
        return run_training(recipe, run, display)
    plans = _plans(recipe, run)
    learner = with_earlier_batch(student(recipe, run), run)
    report = _finished(recipe, run, plans, learner)
    if report is not None:
        tell_finished(run, learner, report, display)
        return report
    make_directory(run)
    with alone_in(run, PATIENCE), repeatable(recipe.training.threads):
        claim(run, learner)  # before hours are spent on teachers
        train_all(_untrained(plans), recipe.teachers.together, display)
        trained = [_trained(plan, folder) for folder, plan in plans.items()]
        translated = _translated(recipe, list(plans), run / "taught", display)
        report = finished_report(run, learner)
        if report is None:
            display.tell(f"The student of {len(plans)}, in {run}.")
            report = train_in(run, learner, Display(display.console))
        report |= {"teachers": trained, "translations": translated}
        write_json(run / REPORT, report)
        return report


def finish_taught(recipe: Recipe, run: Path, display: Display) -> Report:
    """`transduce.training.run.finish_training`; for a recipe with teachers, it finishes the student.

    Raises:
        InputError: see `finish_training`; or the student's training has not begun.
    """
    if not recipe.teachers:
        return finish_training(recipe, run, display)
    begun = [str(folder) for folder in _plans(recipe, run) if is_begun(folder)]
    if not is_begun(run) and begun:
        raise InputError(
            f"{run}: the student has no checkpoint yet. To finish a teacher: transduce train --finish {begun[0]}."
        )
    return finish_training(student(recipe, run), run, display)


def _plans(recipe: Recipe, run: Path) -> dict[Path, Recipe]:
    """The run directory and the recipe of each teacher."""
    return {run / "teachers" / str(plan.training.seed): plan for plan in teachers_of(recipe)}


def _finished(recipe: Recipe, run: Path, plans: Mapping[Path, Recipe], learner: Recipe) -> Report | None:
    """The report of a run that is finished, including all of its teachers; None if it is not. Writes nothing.

    Raises:
        InputError: see `finished_report`, for the student and for each teacher.
    """
    report, asked = finished_report(run, learner), recipe.teachers
    names = [each["name"] for each in (report or {}).get("teachers", [])]
    if report is None or asked is None or names != [plan.name for plan in plans.values()]:
        return None
    if any(folder.exists() for folder in _untrained(plans)):  # whoever needs the room may delete them
        return None
    noted = read_distillation(run / "taught")
    return report if noted is None or is_searched_so(noted, _search(plans), asked.precision) else None


def _search(plans: Mapping[Path, Recipe]) -> Search:
    """The search settings of the teachers."""
    return next(iter(plans.values())).search


def teachers_of(recipe: Recipe) -> list[Recipe]:
    """The recipes of the teachers, if there are any. Raises InputError if [teachers] has wrong values."""
    changes = recipe.teachers
    if not changes:
        return []
    table = recipe.to_table()
    del table["teachers"]
    table["search"] = changes.search
    found = []
    for seed in changes.seeds:
        changed = {"model": changes.model, "training": {**changes.training, "seed": seed}}
        table["name"] = f"{recipe.name}-teacher-{seed}"
        found.append(parse_recipe(lay_over(table, changed), f"{recipe.name}: [teachers]"))
    return found


def student(recipe: Recipe, run: Path) -> Recipe:
    """The student's recipe: its data are the teachers' translations, and it may start from the first teacher.

    Raises:
        InputError: the recipe is not for translation.
    """
    teachers, data = recipe.teachers, recipe.data
    if not teachers or not isinstance(data, TranslationData):
        raise InputError(f"{recipe.name}: [teachers] translate the training sources, so the task must be translation.")
    table = recipe.to_table()
    del table["teachers"]
    references = table["data"]["train"] if teachers.references else []
    table["data"]["train"] = [*references, taught_pairs(run / "taught")]
    if not teachers.model:
        first = run / "teachers" / str(teachers.seeds[0])
        table["training"] |= {"start": str(first.absolute()), "embeddings": "random"}
    return parse_recipe(table, recipe.name)


def _untrained(plans: Mapping[Path, Recipe]) -> dict[Path, Recipe]:
    """The teachers whose training is not finished. Raises InputError if one has another recipe."""
    return {folder: plan for folder, plan in plans.items() if finished_report(folder, plan) is None}


def _trained(recipe: Recipe, folder: Path) -> Report:
    """A teacher's entry in the report, with its cost."""
    found = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    return {"name": recipe.name, "sha256": found["model"]["sha256"], "seconds": found["training"]["seconds"]}


def _translated(recipe: Recipe, teachers: Sequence[Path], folder: Path, display: Display) -> Report:
    """Translate the training sources with the teachers, unless that is done; returns the counts."""
    asked, data = recipe.teachers, recipe.data
    assert asked and isinstance(data, TranslationData)  # which `student` has checked
    sources, root = training_sources(data.train), Path(data.root)
    files = [find_model_file(each) for each in teachers]
    checksum = "+".join(fingerprint(file) for file in files)
    together = load(files, trust_code=True, precision=asked.precision)  # code it has just run
    with display.count("translating", sum(count_lines(root / file.text) for file in sources)) as advance:
        found = distil(
            together,
            checksum,
            sources,
            root,
            folder,
            _search(_plans(recipe, folder.parent)),
            advance=advance,
            workers=torch.get_num_threads() if together.device.type == "cpu" else 1,
        )
    return {each: found[each] for each in ("lines", "counts")}
