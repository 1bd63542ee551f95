"""Distillation from one recipe: train the teachers, translate with them, train the student on their translations.

RUN/teachers/SEED/   a teacher's run: the recipe with the changes in [teachers], and this seed
RUN/taught/          the teachers' translations of the training sources, made as an ensemble (Kim and Rush 2016)
RUN/                 the student's run, with its own ordinary recipe.toml
"""

from pathlib import Path

from transduce.core.errors import InputError
from transduce.data.shards import shards_of
from transduce.distillation.stages import Stages
from transduce.distillation.translations import taught_pairs, training_sources
from transduce.recipe.recipe import Recipe, lay_over, parse_recipe
from transduce.tasks.base import pairs_of
from transduce.training.finished import Report


class Teaching(Stages):
    """Of a recipe with teachers. Raises InputError if it is not for translation, or [teachers] has wrong values."""

    learns, translates, entries = "student", "a teacher", ("teachers", "translations")

    def __init__(self, recipe: Recipe, run: Path) -> None:
        asked, data = recipe.teachers, pairs_of(recipe)
        self.first = {run / "teachers" / str(plan.training.seed): plan for plan in teachers_of(recipe)}
        self.learner = student(recipe, run)
        assert asked and data  # which `student` has checked
        self.parallel, self.models, self.folder = asked.together, list(self.first), run / "taught"
        self.texts, self.root = training_sources(shards_of(data.train, Path(data.root))), Path(data.root)
        self.search, self.precision = next(iter(self.first.values())).search, asked.precision

    def is_of(self, report: Report, noted: Report | None) -> bool:
        names = [each["name"] for each in report.get("teachers", [])]
        return names == [plan.name for plan in self.first.values()]

    def report_entries(self, models: list[Report], translations: Report) -> Report:
        return dict(zip(self.entries, (models, translations), strict=True))


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
    teachers = recipe.teachers
    if not teachers or pairs_of(recipe) is None:
        raise InputError(f"{recipe.name}: [teachers] translate the training sources, so the task must be translation.")
    table = recipe.to_table()
    del table["teachers"]
    references = table["data"]["train"] if teachers.references else []
    table["data"]["train"] = [*references, taught_pairs(run / "taught")]
    if not teachers.model:
        first = run / "teachers" / str(teachers.seeds[0])
        table["training"] |= {"start": str(first.absolute()), "embeddings": "random"}
    return parse_recipe(table, recipe.name)
