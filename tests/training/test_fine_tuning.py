"""Training from another model with a changed tokenizer: every token that both have keeps its vectors."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

import transduce
from transduce.core.errors import InputError
from transduce.core.model_file import lasting_tensors, load_model_file, save_model_file
from transduce.data.columns.packed import unpack
from transduce.data.placeholders import has_placeholders, has_terms
from transduce.data.tags import tags_of
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.tasks.base import Task
from transduce.training.display import Display
from transduce.training.initialization import new_training
from transduce.training.run import open_task, run_training

LEARN = "training.start_tokenizer=learn"
SIDES = {"source_embedding": "source", "target_embedding": "target", "output": "target"}
WITH_TAG = 'data.train=[{source="train.digits", target="train.words", to="en", tag="<BT>"}]'


def begun(recipe: Recipe) -> tuple[Task, dict[str, torch.Tensor], list[str]]:
    told: list[str] = []
    task, _ = open_task(recipe, Display(Console(file=io.StringIO())))
    return task, lasting_tensors(new_training(recipe, task, told.append).model), told


def ids(tokenizer: Tokenizer) -> dict[str, int]:
    return {token: index for index, token in enumerate(tokenizer.tokens(range(tokenizer.size)))}


@pytest.fixture
def other_text(tiny_corpus: Path, tmp_path: Path) -> str:
    """Half of the digits, and words that the first model does not know: the recipe's data in its place."""
    for side in ("digits", "words"):
        lines = (tiny_corpus / f"train.{side}").read_text().splitlines()
        changed = [line.replace("7", "07").replace("9", "6").replace("nine", "neun") for line in lines]
        (tmp_path / f"train.{side}").write_text("".join(f"{line}\n" for line in changed))
    return f'data.train=[{{source="{tmp_path}/train.digits", target="{tmp_path}/train.words"}}]'


@pytest.mark.parametrize("changes", [[], ["tokenizer.joint=false"], ["tokenizer.joint=false", "model.tied=none"]])
def test_shared_tokens_keep_their_vectors(
    tiny_recipe: Path, tiny_run: Path, other_text: str, changes: list[str]
) -> None:
    """Also where one table becomes two or three; the model is otherwise the one that training starts from."""
    task, begins, told = begun(load_recipe(tiny_recipe, [f"training.start={tiny_run}", LEARN, other_text, *changes]))
    _, drawn, _ = begun(load_recipe(tiny_recipe, [other_text, *changes]))
    file = load_model_file(tiny_run)
    weights, old = file.weights, ids(next(iter(unpack(file.tokenizers, file.columns).values())).tokenizer)
    tables = [f"{name}.weight" for name in SIDES if f"{name}.weight" in begins]
    [table] = [weights[name] for name in tables if name in weights][:1]
    for name in tables:
        new = ids(task.tokenizers[SIDES[name.split(".")[0]]])
        for token, index in new.items():
            expected = table[old[token]] if token in old else drawn[name][index]
            assert torch.equal(begins[name][index], expected), (name, token)
        assert set(new) - set(old) and set(new) & set(old)
    others = begins.keys() - set(tables)
    assert all(torch.equal(begins[name], weights[name]) for name in others) and others
    counts = {side: (sum(token in old for token in ids(each)), each.size) for side, each in task.tokenizers.items()}
    assert told == [
        f"training.start: {counts['source'][0]:,} of {counts['source'][1]:,} source tokens and "
        f"{counts['target'][0]:,} of {counts['target'][1]:,} target tokens keep their embeddings; those of the others "
        "are new."
    ]


def test_new_tags_become_tokens_of_the_model(tiny_recipe: Path, tiny_run: Path) -> None:
    task, begins, told = begun(load_recipe(tiny_recipe, [f"training.start={tiny_run}", WITH_TAG]))
    weights = load_model_file(tiny_run).weights
    assert tags_of(task.tokenizers["source"]) == [">>en<<", "<BT>"]
    for name, tensor in begins.items():
        assert torch.equal(tensor[: len(weights[name])], weights[name]), name
    assert "keep their embeddings" in told[0]


def test_placeholders_and_marks_of_terms_become_tokens_of_the_model(tiny_recipe: Path, tiny_run: Path) -> None:
    taught = ["data.placeholders=0.2", "data.terms=0.2"]
    task, begins, _ = begun(load_recipe(tiny_recipe, [f"training.start={tiny_run}", *taught]))
    source, target = task.tokenizers["source"], task.tokenizers["target"]
    assert has_placeholders(source) and has_terms(source) and has_placeholders(target)
    weights = load_model_file(tiny_run).weights
    for name, tensor in begins.items():
        assert torch.equal(tensor[: len(weights[name])], weights[name]), name


def test_a_model_of_a_changed_tokenizer_is_trained_and_used(
    tiny_recipe: Path, tiny_run: Path, other_text: str, tmp_path: Path
) -> None:
    recipe = load_recipe(tiny_recipe, [f"training.start={tiny_run}", LEARN, other_text, "training.updates=4"])
    display = Display(Console(file=io.StringIO()))
    run_training(recipe, tmp_path / "run", display)
    model = transduce.load(tmp_path / "run")
    assert "neun" in ids(model.task.tokenizers["target"]) and model.predict("0 1").source == "0 1"
    again = load_recipe(tiny_recipe, [f"training.start={tmp_path / 'run'}", other_text])
    assert not begun(again)[2]


def test_there_must_be_a_model_whose_tokenizer_it_is(tiny_recipe: Path) -> None:
    with pytest.raises(InputError, match="name it in start"):
        load_recipe(tiny_recipe, [LEARN])


def test_a_model_without_a_column_that_the_task_needs_is_told(
    tiny_recipe: Path, tiny_run: Path, tmp_path: Path
) -> None:
    file = load_model_file(tiny_run)
    save_model_file(tmp_path / "half", replace(file, columns={"source": file.columns["source"]}))
    with pytest.raises(InputError, match="the model file has no target column, which its task needs"):
        begun(load_recipe(tiny_recipe, [f"training.start={tmp_path / 'half'}"]))
