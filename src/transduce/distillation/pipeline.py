"""A student and its teachers from one recipe: train the teachers, let them translate, train the student on it.

    RUN/teachers/SEED/   a teacher's run: the recipe as [teachers] changes it, with that seed
    RUN/taught/          what they make of the training sources, searching as one ensemble (Kim and Rush 2016)
    RUN/                 the student's run, with an ordinary recipe.toml of its own

Each stage goes on where it was stopped, and a finished one is not done again.
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
    """Train what `recipe` says into `run`, after its teachers if it has any; returns the student's report.

    That names the teachers and what each took, so that the whole price of the student is known.

    Raises:
        InputError: as `run_training`; the recipe is not one of translation.
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
    """As `transduce.training.run.finish_training`; of a recipe with teachers it is the student that is finished.

    Raises:
        InputError: as that; the student's training has not begun.
    """
    if not recipe.teachers:
        return finish_training(recipe, run, display)
    begun = [str(folder) for folder in _plans(recipe, run) if is_begun(folder)]
    if not is_begun(run) and begun:
        raise InputError(
            f"{run}: its student has no checkpoint yet. A teacher alone: transduce train --finish {begun[0]}."
        )
    return finish_training(student(recipe, run), run, display)


def _plans(recipe: Recipe, run: Path) -> dict[Path, Recipe]:
    """Where each teacher is trained, and by which recipe."""
    return {run / "teachers" / str(plan.training.seed): plan for plan in teachers_of(recipe)}


def _finished(recipe: Recipe, run: Path, plans: Mapping[Path, Recipe], learner: Recipe) -> Report | None:
    """The report of a run that is finished with all that `recipe` says of teachers; nothing is written.

    Raises:
        InputError: as `finished_report`, of the student and of each teacher.
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
    """How the teachers translate."""
    return next(iter(plans.values())).search


def teachers_of(recipe: Recipe) -> list[Recipe]:
    """The recipes of its teachers, if it has any. Raises InputError where [teachers] gives keys wrong values."""
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
    """The recipe that the student is trained by: it reads what the teachers wrote and begins as the first of them.

    Raises:
        InputError: it is no recipe of translation.
    """
    teachers, data = recipe.teachers, recipe.data
    if not teachers or not isinstance(data, TranslationData):
        raise InputError(f"{recipe.name}: [teachers] translate the training sources, which takes a task with pairs.")
    table = recipe.to_table()
    del table["teachers"]
    references = table["data"]["train"] if teachers.references else []
    table["data"]["train"] = [*references, taught_pairs(run / "taught")]
    if not teachers.model:
        first = run / "teachers" / str(teachers.seeds[0])
        table["training"] |= {"start": str(first.absolute()), "embeddings": "random"}
    return parse_recipe(table, recipe.name)


def _untrained(plans: Mapping[Path, Recipe]) -> dict[Path, Recipe]:
    """Those of the teachers that are not trained to their end; one of another recipe is refused."""
    return {folder: plan for folder, plan in plans.items() if finished_report(folder, plan) is None}


def _trained(recipe: Recipe, folder: Path) -> Report:
    """What a teacher is and what it took."""
    found = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    return {"name": recipe.name, "sha256": found["model"]["sha256"], "seconds": found["training"]["seconds"]}


def _translated(recipe: Recipe, teachers: Sequence[Path], folder: Path, display: Display) -> Report:
    """Let the teachers translate the training sources, unless they have; how much it was."""
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
