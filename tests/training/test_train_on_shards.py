"""A corpus of many files is trained on as one; a finished run knows its files again."""

import json
from pathlib import Path

import pytest
import torch

from tiny_recipe import TINY_RECIPE
from trained import shown
from transduce.core.errors import InputError
from transduce.core.model_file import load_model_file
from transduce.recipe.recipe import load_recipe
from transduce.training.examination import examine_data
from transduce.training.run import run_training

PATTERN = 'source = "part-*.digits", target = "part-*.words"'


@pytest.fixture
def corpus(tiny_corpus: Path, tmp_path: Path) -> Path:
    """The tiny corpus, its training pairs in three files."""
    for side in ("digits", "words"):
        lines = (tiny_corpus / f"train.{side}").read_text(encoding="utf-8").splitlines(keepends=True)
        for number in range(3):
            (tmp_path / f"part-{number}.{side}").write_text("".join(lines[100 * number : 100 * (number + 1)]))
        for name in ("valid", "test"):
            (tmp_path / f"{name}.{side}").write_bytes((tiny_corpus / f"{name}.{side}").read_bytes())
    return tmp_path


def recipe(corpus: Path, name: str, train: str) -> Path:
    text = TINY_RECIPE.replace("[data]\n", f'[data]\nroot = "{corpus.as_posix()}"\n')
    path = corpus / f"{name}.toml"
    path.write_text(text.replace('{ source = "train.digits", target = "train.words" }', train), encoding="utf-8")
    return path


def test_a_pattern_trains_the_model_of_its_files(corpus: Path) -> None:
    parts = ", ".join(f"{{ {PATTERN.replace('*', str(number))} }}" for number in range(3))
    models = []
    for name, train in (("pattern", f"{{ {PATTERN} }}"), ("listed", parts)):
        loaded = load_recipe(recipe(corpus, "recipe", train))
        examine_data(loaded, corpus / "cache", lambda line: None)
        report = run_training(loaded, corpus / name, shown())
        assert len(report["data"]["train"]) == 3
        models.append(load_model_file(corpus / name).weights)
        assert run_training(loaded, corpus / name, shown())["model"] == report["model"]  # finished: left as it is
    assert all(torch.equal(weight, models[1][name]) for name, weight in models[0].items())
    data = json.loads((corpus / "pattern" / "data.json").read_text())
    assert [entry["source"] for entry in data["train"]] == [f"part-{number}.digits" for number in range(3)]


def test_another_file_is_other_data(corpus: Path) -> None:
    loaded = load_recipe(recipe(corpus, "recipe", f"{{ {PATTERN} }}"))
    run_training(loaded, corpus / "run", shown())
    for side in ("digits", "words"):
        (corpus / f"part-9.{side}").write_bytes((corpus / f"part-0.{side}").read_bytes())
    with pytest.raises(InputError, match="data"):
        run_training(loaded, corpus / "run", shown())
