"""A training that starts from another model: which weights it begins with."""

import io
from pathlib import Path

import pytest
import torch
from rich.console import Console

from transduce.errors import InputError
from transduce.model_file import lasting_tensors, load_model_file
from transduce.recipe import Recipe, load_recipe
from transduce.training.display import Display
from transduce.training.run import new_training, open_task


def begun(recipe: Recipe) -> tuple[dict[str, torch.Tensor], list[str]]:
    told: list[str] = []
    task, _ = open_task(recipe, Display(Console(file=io.StringIO())))
    return lasting_tensors(new_training(recipe, task, told.append).model), told


def test_of_the_same_kind_all(tiny_recipe: Path, tiny_run: Path) -> None:
    begins, told = begun(load_recipe(tiny_recipe, [f"training.start={tiny_run}"]))
    weights = load_model_file(tiny_run).weights
    assert begins.keys() == weights.keys()
    assert all(torch.equal(begins[name], weights[name]) for name in weights)
    assert not told


def test_of_another_kind_what_fits(tiny_recipe: Path, tiny_run: Path) -> None:
    kind = ["model.kind=non_autoregressive", "search.method=mask_predict"]
    begins, told = begun(load_recipe(tiny_recipe, [*kind, f"training.start={tiny_run}"]))
    anew, _ = begun(load_recipe(tiny_recipe, kind))
    weights = load_model_file(tiny_run).weights
    assert begins.keys() > weights.keys()
    for name, begin in begins.items():
        assert torch.equal(begin, weights[name] if name in weights else anew[name]), name
    assert told == [f"{len(weights)} of {len(begins)} weights begin as those of {tiny_run}, the others anew."]


def test_what_has_nothing_in_common_or_other_sizes_is_refused(tiny_recipe: Path, tiny_run: Path) -> None:
    start = f"training.start={tiny_run}"
    with pytest.raises(InputError, match="another kind of model and has no weight in common"):
        begun(load_recipe(tiny_recipe, [start, "model={kind='rnn', d_model=24}"]))
    with pytest.raises(InputError, match=r"has shape \[32, 16\] in the file and \[48, 16\] in the model"):
        begun(load_recipe(tiny_recipe, [start, "model.feed_forward=48"]))
