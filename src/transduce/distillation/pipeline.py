"""Trains what a recipe describes, with what [teachers], [backtranslation] or [replay] want made first."""

from pathlib import Path

from transduce.core.errors import InputError
from transduce.distillation.backtranslation import Backtranslating, reverse_of
from transduce.distillation.replay import Replaying
from transduce.distillation.stages import Stages
from transduce.distillation.teachers import Teaching, teachers_of
from transduce.recipe.recipe import Recipe
from transduce.runtime.process_group import ALONE, ProcessGroup
from transduce.training.display import Display
from transduce.training.finished import Report
from transduce.training.run import finish_training, run_training
from transduce.training.run_directory import with_earlier_draw


def train_recipe(recipe: Recipe, run: Path, display: Display, group: ProcessGroup = ALONE) -> Report:
    """Train the models that come first, if there are any, then the model, in the directory `run`.

    Returns the model's report, which names those models with the cost of each.

    Raises:
        InputError: see `run_training`; or what the recipe asks for first does not go with the rest of it, or with
            several processes.
    """
    stages = _stages(recipe, run)
    if stages is None and recipe.replay is None:
        return run_training(recipe, run, display, group=group)
    if group.world > 1:
        raise InputError(
            f"{recipe.name}: a recipe with [teachers], [backtranslation] or [replay] is trained by one process; got "
            f"{group.world}. Start it without torchrun."
        )
    return stages.train(run, display) if stages else Replaying(recipe, run).train(display)


def finish_recipe(recipe: Recipe, run: Path, display: Display) -> Report:
    """`transduce.training.run.finish_training` of the model, as which `train_recipe` trains last."""
    stages = _stages(recipe, run)
    if stages is None and recipe.replay:
        return Replaying(recipe, run).finish(display)
    return stages.finish(run, display) if stages else finish_training(recipe, run, display)


def first_recipes(recipe: Recipe) -> list[Recipe]:
    """The recipes of the models that are trained first. Raises InputError if the recipe has wrong values for them."""
    return [reverse_of(recipe)] if recipe.backtranslation else teachers_of(recipe)


def _stages(recipe: Recipe, run: Path) -> Stages | None:
    recipe = with_earlier_draw(recipe, run)
    if recipe.replay and (recipe.teachers or recipe.backtranslation):
        raise InputError(f"{recipe.name}: [replay] goes with neither [teachers] nor [backtranslation]: keep one.")
    if recipe.backtranslation:
        return Backtranslating(recipe, run)
    return Teaching(recipe, run) if recipe.teachers else None
