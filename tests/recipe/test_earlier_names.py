"""Recipes and model files that call keys by earlier names are read as those that call them by today's."""

from dataclasses import replace
from pathlib import Path

import pytest

import transduce
from transduce.core.errors import InputError
from transduce.core.model_file import load_model_file, save_model_file
from transduce.recipe.recipe import load_recipe
from transduce.without_torch import choice

KIND = 'kind = "transformer"'


def recipe_with(tiny_recipe: Path, keys: str) -> Path:
    path = tiny_recipe.with_name("keys.toml")
    path.write_text(tiny_recipe.read_text(encoding="utf-8").replace(KIND, f"{KIND}\n{keys}"), encoding="utf-8")
    return path


def test_a_recipe_with_an_earlier_name_is_read(tiny_recipe: Path) -> None:
    earlier = load_recipe(recipe_with(tiny_recipe, 'weighing = "entmax"')).to_table()
    today = load_recipe(recipe_with(tiny_recipe, 'normalizer = "entmax"')).to_table()
    assert earlier == today
    assert today["model"]["normalizer"] == "entmax"


def test_both_names_of_a_key_are_refused(tiny_recipe: Path) -> None:
    with pytest.raises(InputError, match='weighing is called normalizer now, and both are there: remove "weighing"'):
        load_recipe(recipe_with(tiny_recipe, 'weighing = "entmax"\nnormalizer = "softmax"'))


@pytest.mark.usefixtures("kernels")
def test_a_model_file_with_an_earlier_name_predicts_the_same(tiny_run: Path, tmp_path: Path) -> None:
    file = load_model_file(tiny_run)
    settings = dict(file.config["model"])
    settings["weighing"] = settings.pop("normalizer")
    path = tmp_path / "earlier.safetensors"
    save_model_file(path, replace(file, config={**file.config, "model": settings}))
    texts = ["1 2 3", "4 5"]
    said = [each.text for each in transduce.load(tiny_run).predict(texts)]
    assert [each.text for each in transduce.load(path).predict(texts)] == said
    alone = choice.translator_of([path], "kernels", {}, "cpu", False)
    assert alone is not None
    assert [each.text for each in alone.predict(texts)] == said
