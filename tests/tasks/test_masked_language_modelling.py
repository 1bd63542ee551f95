"""Hidden words: rows of text, a training that is resumed, words filled in, and classifiers that start from it."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

import transduce
from forked import transduce as command
from served import serving
from toy_trainings import resumed_to_the_same_bytes, trained_beside
from transduce.core.model_file import lasting_tensors, load_model_file
from transduce.data.columns.masked_text import MaskedText
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import load_recipe
from transduce.tasks.masked_language_modelling import MaskedLanguageModelling
from transduce.training.display import Display
from transduce.training.initialization import new_training
from transduce.training.run import open_task

QUIET = Display(Console(file=io.StringIO()))
RECIPE = """
[task]
kind = "masked_language_modelling"
context = 8
[data]
train = [{ text = "train.txt" }]
validation = { text = "held-out.txt" }
[tokenizer]
kind = "whitespace"
min_frequency = 1
[batch]
tokens = 400
[model]
d_model = 16
heads = 2
layers = 1
feed_forward = 24
dropout = 0.0
[training]
updates = 240
learning_rate = 1e-2
warmup = 10
validate_every = 120
average = 0.9
threads = 1
precision = "fp32"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Numbers that follow each other, so that the one between two is known."""
    made = tmp_path_factory.mktemp("masked")
    lines = [" ".join(f"n{(start + place) % 12}" for place in range(3 + start % 5)) for start in range(120)]
    (made / "train.txt").write_text("".join(f"{line}\n" for line in lines))
    (made / "held-out.txt").write_text("".join(f"{line}\n" for line in lines[:24]))
    (made / "recipe.toml").write_text(f"{RECIPE.replace('[data]', '[data]' + chr(10) + f'root = {str(made)!r}')}")
    return made


@pytest.fixture(scope="module")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    trained_beside(folder / "recipe.toml", tmp_path_factory)
    return folder / "run"


def test_the_word_between_two_others_is_learnt(trained: Path) -> None:
    model = transduce.load(trained)
    made = model.predict("n4 <mask> n6 n7")
    assert made.text == "n4 n5 n6 n7" == made.alternatives[0].text
    assert len(made.alternatives) == 10 and made.alternatives[1].log_probability < made.log_probability < 0
    two = model.predict("n1 <mask> n3 <mask> n5")
    assert (two.text, two.tokens, two.alternatives) == ("n1 n2 n3 n4 n5", ("n2", "n4"), ())
    assert model.predict("n1 n2").text == "n1 n2"
    assert model.predict("Ünknown, n4  <mask> n6!").text.startswith("Ünknown, n4  n")  # the rest stays as it came


def test_the_same_alone_and_in_any_batch(trained: Path) -> None:
    model = transduce.load(trained)
    texts = [f"n{place} <mask> n{place + 2}" + " n5" * place for place in range(6)]
    for text, each in zip(texts, model.predict(texts), strict=True):
        alone = model.predict(text)
        assert alone.text == each.text
        assert alone.log_probability == pytest.approx(each.log_probability, abs=1e-5)


def test_attention_and_server_say_what_was_hidden(trained: Path) -> None:
    attention = transduce.load(trained).predict("n4 <mask> n6").attention()
    assert [token.text for token in attention.source.tokens] == ["n4", "<mask>", "n6", "</s>"]
    assert attention.layers[0].weights.shape == (2, 4, 4)
    with serving([trained]) as server:
        [prediction] = server.post("/v1/predict", texts=["n4 <mask> n6"]).json()["predictions"]
        assert prediction["text"] == "n4 n5 n6"


def test_a_killed_training_ends_in_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text((folder / "recipe.toml").read_text())
    resumed_to_the_same_bytes(recipe)


def task_of(pipeline: Pipeline) -> MaskedLanguageModelling:
    assert isinstance(pipeline.task, MaskedLanguageModelling)
    return pipeline.task


def test_lines_are_cut_where_they_are_longer_than_the_context(trained: Path, tmp_path: Path) -> None:
    task = task_of(transduce.load(trained))
    lines = ["n1 n2 n3", "", "</s> n1", " ".join(f"n{place}" for place in range(11))]
    (tmp_path / "x.txt").write_text("".join(f"{line}\n" for line in lines))
    size = task.tokenizers["source"].size

    def rows(unit: str) -> list[list[str]]:
        table = {**task.data.model_dump(), "root": str(tmp_path), "train": [{"text": "x.txt", "unit": unit}]}
        data = type(task.data).model_validate(table)
        again = MaskedLanguageModelling(task.config, data, task.columns)
        store = again._store(data.train[0], tmp_path)
        source, target = (store.read(side, np.arange(len(store))) for side in ("source", "target"))
        assert all(each[0] >= size and (each % size == other).all() for each, other in zip(source, target, strict=True))
        return [task.columns["target"].tokens(each.tolist()) for each in target]

    numbers = [f"n{place}" for place in range(11)]
    assert rows("line") == [["n1", "n2", "n3"], ["<unk>", "n1"], numbers[:8], numbers[8:]]
    running = ["n1", "n2", "n3", "<unk>", "n1", *numbers]
    assert rows("stream") == [running[:8], running[8:]]


def test_a_classifier_starts_from_it(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"n{place % 9} n{place % 5}\t{'ab'[place % 2]}\n" for place in range(40)))
    (tmp_path / "a.toml").write_text(f"""
[task]
kind = "classification"
[data]
root = "{tmp_path}"
train = [{{ file = "a.tsv" }}]
[training]
start = "{trained}"
""")
    recipe, told = load_recipe(tmp_path / "a.toml"), list[str]()
    task, _ = open_task(recipe, QUIET)
    begins = lasting_tensors(new_training(recipe, task, told.append).model)
    weights = load_model_file(trained).weights
    read = [name for name in begins if name.startswith(("encoder.", "source_embedding."))]
    assert recipe.model.encoder == "transformer" and recipe.model.d_model == 16  # type: ignore[attr-defined]
    assert read and all(torch.equal(begins[name], weights[name]) for name in read)
    assert told == [
        f"training.start: {len(read)} of {len(begins)} tensors are those of {trained}; new: key, pool, output."
    ]


def test_it_starts_from_a_model_without_a_mask(folder: Path, trained: Path, tmp_path: Path) -> None:
    """A translator's vocabulary gets a token for what is hidden, with a new vector."""
    (tmp_path / "a.tsv").write_text("".join(f"n{place % 9} n{place % 5}\t{'ab'[place % 2]}\n" for place in range(40)))
    model = "\n".join(('encoder = "transformer"', "d_model = 16", "heads = 2", "layers = 1", "feed_forward = 24"))
    (tmp_path / "a.toml").write_text(f"""
[task]
kind = "classification"
[data]
root = "{tmp_path}"
train = [{{ file = "a.tsv" }}]
[tokenizer]
kind = "whitespace"
[model]
{model}
[training]
updates = 1
threads = 1
""")
    assert command(tmp_path, "train", tmp_path / "a.toml", "--run", tmp_path / "run").code == 0
    text = (folder / "recipe.toml").read_text()
    (tmp_path / "masked.toml").write_text(text.replace("[training]", f'[training]\nstart = "{tmp_path / "run"}"'))
    recipe, told = load_recipe(tmp_path / "masked.toml"), list[str]()
    task, _ = open_task(recipe, QUIET)
    begins = lasting_tensors(new_training(recipe, task, told.append).model)
    reads, weights = task.columns["source"], load_model_file(tmp_path / "run").weights
    assert isinstance(reads, MaskedText) and reads.tokenizer.mask == reads.tokenizer.size - 1
    embedded, before = begins["source_embedding.weight"], weights["source_embedding.weight"]
    assert len(embedded) == len(before) + 1 and torch.equal(embedded[:-1], before)
    assert all(torch.equal(begins[name], weights[name]) for name in begins if name.startswith("encoder."))
