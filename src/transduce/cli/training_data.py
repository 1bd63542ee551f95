"""The training pairs of a trained model, as named by the recipe beside its file."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transduce.data.pairs.pair_data import PairData


def training_data(file: Path, recipe: Path | None, or_else: str, trust_code: bool = False) -> "PairData":
    """The data of `recipe`, or of the recipe beside the model's file.

    or_else: what may be named where there is none, for the message.
    trust_code: let a recipe that lies in a run name code outside Transduce.

    Raises:
        InputError: no recipe, or none for translation.
    """
    from transduce.core.errors import InputError
    from transduce.core.folders import RESOLVED
    from transduce.recipe.recipe import load_recipe, load_run_recipe
    from transduce.tasks.base import pairs_of

    path = recipe or file.with_name(RESOLVED)
    if not path.exists() and not recipe:
        raise InputError(f"{file}: there is no {RESOLVED} beside it to say what it was trained on; name {or_else}.")
    load = load_recipe if recipe else load_run_recipe
    data = pairs_of(load(path, trust_code=trust_code))
    if data is None:
        raise InputError(f"{path}: this is not a recipe for translation, so it has no sources to translate.")
    return data
