"""What every import of a model of others ends with: a model file of ours, checked as any that is loaded."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from transduce.core.finite import check_finite
from transduce.core.model_file import ModelFile
from transduce.data.columns import Column
from transduce.data.columns.packed import pack
from transduce.pipeline.outline import Outline
from transduce.recipe.recipe import parse_recipe


def imported_file(
    recipe: dict[str, Any], weights: Mapping[str, Tensor], columns: Mapping[str, Column], origin: dict[str, Any]
) -> ModelFile:
    """The model of a recipe with these weights and columns. origin: its provenance.

    Raises:
        InputError: the weights are not those of such a model, or not all of them are numbers.
    """
    texts, described = pack(columns)
    config = parse_recipe(recipe, recipe["name"]).to_table()
    contiguous = {key: weight.contiguous() for key, weight in weights.items()}
    Outline(config, texts, described, contiguous)
    check_finite(contiguous)
    return ModelFile(contiguous, config, texts, origin, {}, columns=described)
