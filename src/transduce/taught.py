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

from transduce.atomic import write_json
from transduce.data.files import count_lines, fingerprint
from transduce.distillation import distil, taught_pairs, training_sources
from transduce.errors import InputError
from transduce.model_file import find_model_file
from transduce.pipeline import load
from transduce.recipe import Recipe, lay_over, parse_recipe
from transduce.side_by_side import train_all
from transduce.tasks.translation import TranslationData
from transduce.training.batch_size import with_earlier_batch
from transduce.training.display import Display
from transduce.training.log import REPORT
from transduce.training.run import run_training
from transduce.training.run_directory import claim

Report = dict[str, Any]


def train_taught(recipe: Recipe, run: Path, display: Display) -> Report:
    """Train what `recipe` says into `run`, after its teachers if it has any; returns the student's report.

    That names the teachers and what each took, so that the whole price of the student is known.

    Raises:
        InputError: as `run_training`; the recipe is not one of translation.
    """
    if not recipe.teachers:
        return run_training(recipe, run, display)
    plans = {run / "teachers" / str(plan.training.seed): plan for plan in teachers_of(recipe)}
    learner = student(recipe, run)
    claim(run, with_earlier_batch(learner, run))  # before hours are spent on teachers
    train_all(_untrained(plans), recipe.teachers.together, display)
    trained = [_trained(plan, folder) for folder, plan in plans.items()]
    translated = _translated(recipe, list(plans), run / "taught", display)
    display.tell(f"The student of {len(plans)}, in {run}.")
    report = run_training(learner, run, Display(display.console))
    report |= {"teachers": trained, "translations": translated}
    write_json(run / REPORT, report)
    return report


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
    table["data"]["train"] = [*references, taught_pairs(run / "taught", data.root)]
    if not teachers.model:
        table["training"] |= {"start": str(run / "teachers" / str(teachers.seeds[0])), "embeddings": "random"}
    return parse_recipe(table, recipe.name)


def _untrained(plans: Mapping[Path, Recipe]) -> dict[Path, Recipe]:
    """Those of the teachers that are not trained to their end; one of another recipe is refused."""
    for folder, plan in plans.items():
        if (folder / REPORT).exists():
            claim(folder, with_earlier_batch(plan, folder))
    return {folder: plan for folder, plan in plans.items() if not (folder / REPORT).exists()}


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
            together.recipe.search,
            advance=advance,
            workers=torch.get_num_threads() if together.device.type == "cpu" else 1,
        )
    return {each: found[each] for each in ("lines", "counts")}
