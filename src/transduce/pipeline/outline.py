"""The model that a file describes, built without its weights and compared with the sizes of these weights.

A file may have been made by anybody: a few characters of its settings can ask for a billion layers. So sizes are
compared before memory is allocated.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.core.model_file import (
    ColumnTables,
    ModelFile,
    check_dtypes,
    check_weights,
    lasting_tensors,
)
from transduce.core.registry import resolve
from transduce.core.skip_init import no_larger_than, undrawn
from transduce.core.tensor_file import TensorInfo
from transduce.core.trust import foreign_code
from transduce.data.columns import Columns
from transduce.data.columns.packed import unpack
from transduce.data.kneser_ney import KneserNey
from transduce.data.lexicon import Lexicon
from transduce.models.protocols import LimitsPositions
from transduce.recipe.recipe import Recipe, parse_recipe
from transduce.tasks.base import Task, task_class

LARGEST = 2**31  # of the settings of a model: a setting above it fits no tensor
DEEPEST = 1000  # layers that share their weights: those of a file do not say how many there are


class Outline:
    """A model file's recipe, task and model; the model's weights are still zero.

    Args:
        config, tokenizers, columns: as in `transduce.core.model_file.ModelFile`.
        weights: the file's, or what it says of them.

    Raises:
        InputError: the settings are wrong, or not those of such weights; a tokenizer is wrong.
    """

    def __init__(
        self,
        config: dict[str, Any],
        tokenizers: dict[str, str],
        columns: ColumnTables,
        weights: Mapping[str, Tensor | TensorInfo],
    ) -> None:
        self.recipe = parse_recipe(config, "the model file's config")
        trusted = bool(foreign_code(config))  # whose sizes are its own affair, or it would not have come so far
        if not trusted:
            _check_sizes(self.recipe.model.model_dump(), len(weights))
        self.task = make_task(self.recipe, unpack(tokenizers, columns))
        with torch.inference_mode(False), undrawn():
            if trusted:
                self.model = make_model(self.recipe, self.task, _shares(weights))
            else:
                self.model = _built(self.recipe, self.task, weights)
        tensors = lasting_tensors(self.model)
        check_weights({name: tuple(tensor.shape) for name, tensor in tensors.items()}, weights)
        check_dtypes(tensors, weights)


def _check_sizes(settings: dict[str, Any], weights: int) -> None:
    numbers = {name: value for name, value in settings.items() if type(value) is int}
    most = max(weights, DEEPEST) if settings.get("shared_layers") else weights
    problems = [
        f"the model file's config: model.{name} = {value}, but the file has {weights} weights."
        for name, value in numbers.items()
        if name.endswith("layers") and value > most
    ]
    problems += [
        f"the model file's config: model.{name} = {value} is larger than any size of a model."
        for name, value in numbers.items()
        if value > LARGEST
    ]
    if problems:
        raise InputError(problems)


def _built(recipe: Recipe, task: Task, weights: Mapping[str, Tensor | TensorInfo]) -> nn.Module:
    """The model, if it is no larger than the weights."""
    shapes = [tuple(each.shape) for each in weights.values()]
    try:
        with no_larger_than(shapes):
            return make_model(recipe, task, _shares(weights))
    except InputError as error:
        raise InputError(f"the model file's config: {problem}" for problem in error.problems) from None
    except (ArithmeticError, AssertionError, IndexError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"the model file's config: no model can be built from it: {error}.") from error


def _shares(weights: Mapping[str, Tensor | TensorInfo]) -> bool:
    """Whether the source has no embedding of its own."""
    return "source_embedding.weight" not in weights


def make_task(recipe: Recipe, columns: Columns) -> Task:
    """The task of a recipe. Raises InputError where the columns are not those that it needs."""
    task = task_class(recipe)
    if missing := [side for side in task.kinds if side not in columns]:
        raise InputError(f"the model file has no {side} column, which its task needs." for side in missing)
    return task(recipe.task, recipe.data, _limited(recipe.model, columns))


def _limited(model: Any, columns: Columns) -> Columns:
    """The columns of a model with these settings, which may have few positions."""
    most = model.most_positions if isinstance(model, LimitsPositions) else None
    if most is None or "source" not in columns:
        return columns
    return {**columns, "source": columns["source"].limited(most)}


def make_model(recipe: Recipe, task: Task, shared: bool = False) -> nn.Module:
    """The untrained model of a recipe; its random start is torch's global generator's.

    shared: one embedding may serve both sides whatever their vocabularies are. Older files are of such models: all
        vocabularies of one size passed for the same.
    """
    kind: str = recipe.model.kind  # type: ignore[attr-defined]
    specs = task.specs._replace(joint=None) if shared else task.specs
    model: nn.Module = resolve("models", kind)(recipe.model, specs)
    return model


def load_weights(model: nn.Module, weights: dict[str, torch.Tensor]) -> None:
    """Copy `weights` into the model's parameters and lasting buffers.

    Raises:
        InputError: names, shapes or types differ; all differences are listed.
    """
    tensors = lasting_tensors(model)
    check_weights({name: tuple(tensor.shape) for name, tensor in tensors.items()}, weights)
    check_dtypes(tensors, weights)
    with torch.no_grad():
        for name, tensor in tensors.items():
            tensor.copy_(weights[name])


def ngrams_in(task: Task) -> dict[str, Tensor]:
    """The tensors of a task's language model, for a model file; none where there is none."""
    arrays = task.ngrams.to_arrays() if task.ngrams else {}
    return {name: torch.from_numpy(each) for name, each in arrays.items()}


def ngrams_of(file: ModelFile, task: Task) -> KneserNey | None:
    """The language model of a model file. Raises InputError if it is damaged, or of other tokens than the task's."""
    if not file.ngrams:
        return None
    return KneserNey.of_arrays({name: each.numpy() for name, each in file.ngrams.items()}, task.specs.target.size)


def lexicon_of(file: ModelFile, task: Task) -> Lexicon | None:
    """Of a model file, for shortlists. Raises InputError if the file's is of other vocabularies than the task's."""
    if file.lexicon is None:
        return None
    candidates_SC, frequent_F = (each.numpy() for each in file.lexicon)
    return Lexicon(candidates_SC, frequent_F).checked(*task.specs.sizes)
