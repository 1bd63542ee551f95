"""Trainings that start from a model of another task, or of other labels: what is read is taken, answers are learnt."""

import io
from pathlib import Path

import pytest
import torch
from rich.console import Console

import transduce
from transduce.core.errors import InputError
from transduce.core.model_file import lasting_tensors, load_model_file
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.tasks.base import Task
from transduce.training.display import Display
from transduce.training.initialization import new_training
from transduce.training.run import open_task, run_training

QUIET = Display(Console(file=io.StringIO()))
RECIPE = """
[task]
kind = "classification"
[data]
root = "{root}"
train = [{{ file = "{name}.tsv" }}]
[training]
start = "{start}"
threads = 1
precision = "fp32"
updates = 2
average = 0.0
"""
MODEL = """
[model]
encoder = "transformer"
d_model = 16
heads = 2
feed_forward = 24
"""


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    for name, labels in (("two", "ab"), ("other", "cd"), ("three", "abc"), ("one", "ba")):
        lines = [f"{place % 10} {place % 7} {place % 3}\t{labels[place % len(labels)]}\n" for place in range(40)]
        (tmp_path / f"{name}.tsv").write_text("".join(lines))
    return tmp_path


def recipe(folder: Path, name: str, start: Path | str, model: str = "") -> Recipe:
    path = folder / f"{name}.toml"
    path.write_text(RECIPE.format(root=folder, name=name, start=start) + model)
    return load_recipe(path)


def begun(recipe: Recipe) -> tuple[Task, dict[str, torch.Tensor], list[str]]:
    told: list[str] = []
    task, _ = open_task(recipe, QUIET)
    return task, lasting_tensors(new_training(recipe, task, told.append).model), told


@pytest.fixture
def classifier(labelled: Path) -> Path:
    """Trained on labels a and b."""
    made = recipe(labelled, "two", "none", MODEL)
    run_training(made, labelled / "run", QUIET)
    return labelled / "run"


def test_a_classifier_reads_as_the_translator_it_starts_from(labelled: Path, tiny_run: Path) -> None:
    """The encoder's weights and the tokenizer are the translator's; the labels are those of the data."""
    made = recipe(labelled, "two", tiny_run)
    task, begins, told = begun(made)
    start = load_model_file(tiny_run)
    assert made.model.kind == "classifier" and made.model.encoder == "transformer"
    assert task.columns["target"].labels == ("a", "b")
    assert task.tokenizers["source"].to_json() in start.tokenizers.values()
    read = [name for name in begins if name.startswith("encoder.")]
    assert read and all(torch.equal(begins[name], start.weights[name]) for name in read)
    assert torch.equal(begins["source_embedding.weight"], start.weights["target_embedding.weight"])  # it is one there
    count = f"{len(read) + 1} of {len(begins)} tensors"
    assert told == [f"training.start: {count} are those of {tiny_run}; new: key, pool, output."]


def test_a_classifier_starts_from_a_language_model(labelled: Path, tiny_corpus: Path) -> None:
    """With its tokenizer and its embeddings."""
    path = labelled / "lm.toml"
    path.write_text(f"""
[task]
kind = "language_modelling"
[data]
root = "{tiny_corpus}"
train = [{{ text = "train.digits" }}]
[tokenizer]
kind = "whitespace"
[model]
d_model = 16
heads = 2
layers = 1
feed_forward = 24
[training]
updates = 1
threads = 1
precision = "fp32"
""")
    run_training(load_recipe(path), labelled / "lm", QUIET)
    task, begins, told = begun(recipe(labelled, "two", labelled / "lm"))
    start = load_model_file(labelled / "lm")
    assert torch.equal(begins["source_embedding.weight"], start.weights["embedding.weight"])
    assert task.columns["target"].labels == ("a", "b") and "1 of" in told[0]


def test_labels_of_the_data_that_the_start_has_keep_its_output(labelled: Path, classifier: Path) -> None:
    task, begins, told = begun(recipe(labelled, "one", classifier))
    assert not told and task.columns["target"].labels == ("a", "b")
    weights = load_model_file(classifier).weights
    assert all(torch.equal(begins[name], weights[name]) for name in weights)


@pytest.mark.parametrize(("name", "labels"), [("other", ("c", "d")), ("three", ("a", "b", "c"))])
def test_other_labels_have_a_new_output(name: str, labels: tuple[str, ...], labelled: Path, classifier: Path) -> None:
    """Also where they are equally many; what reads is the start's."""
    task, begins, told = begun(recipe(labelled, name, classifier))
    weights = load_model_file(classifier).weights
    assert task.columns["target"].labels == labels
    assert all(torch.equal(begins[each], weights[each]) for each in weights if not each.startswith("output."))
    assert begins["output.weight"].shape != weights["output.weight"].shape or not torch.equal(
        begins["output.weight"], weights["output.weight"]
    )
    assert "new: output." in told[0]


def test_a_start_of_another_shape_is_told_with_what_it_has(labelled: Path, classifier: Path) -> None:
    made = recipe(labelled, "other", classifier, MODEL.replace("16", "32"))
    with pytest.raises(InputError, match=r"Expected in \[model\] what it has: d_model = 16 \(here 32\)"):
        begun(made)


def test_what_was_started_is_trained_and_used(labelled: Path, classifier: Path) -> None:
    run_training(recipe(labelled, "three", classifier), labelled / "tuned", QUIET)
    model = transduce.load(labelled / "tuned")
    assert set(model.predict("1 2 0").probabilities) == {"a", "b", "c"}


def test_the_model_of_a_task_that_names_none_suits_it(labelled: Path) -> None:
    assert recipe(labelled, "two", "none").model.kind == "classifier"


def test_a_tagger_starts_from_a_classifier(labelled: Path, classifier: Path) -> None:
    """Words are cut by its tokenizer and stand between its tokens; characters are not read, as nothing learnt them."""
    (labelled / "words.conll").write_text("".join(f"{place % 10} {'XY'[place % 2]}\n\n" for place in range(40)))
    path = labelled / "tagger.toml"
    text = RECIPE.format(root=labelled, name="words", start=classifier).replace("classification", "tagging")
    path.write_text(text.replace("words.tsv", "words.conll"))
    task, begins, told = begun(made := load_recipe(path))
    weights = load_model_file(classifier).weights
    assert made.model.kind == "tagger" and made.model.encoder == "transformer" and made.model.filters == 0
    read = [name for name in begins if name.startswith(("encoder.", "source_embedding."))]
    assert read and all(torch.equal(begins[name], weights[name]) for name in read)
    assert task.columns["source"].after == ("</s>",) and task.columns["target"].labels == ("X", "Y")
    assert "new: output" in told[0]
