"""`transduce.train`: the same model as the command's, whatever holds recipe and data."""

import json
import random
import shutil
import threading
import tomllib
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import torch
from rich.console import Console

import transduce
from shared_folders import made_once
from tiny_recipe import TINY_RECIPE
from trained import sha256, shown
from transduce.api.train import TrainingUpdate
from transduce.core.errors import InputError
from transduce.core.model_file import load_model_file
from transduce.data.pairs.known_columns import known_of, read_pair_inputs
from transduce.recipe.recipe import load_recipe
from transduce.training.run import run_training

Pairs = list[tuple[str, str]]
SHORT = TINY_RECIPE.replace("updates = 24", "updates = 12")


@pytest.fixture(scope="module")
def parts(tiny_corpus: Path) -> dict[str, Pairs]:
    def read(name: str) -> Pairs:
        sides = [(tiny_corpus / f"{name}.{side}").read_text(encoding="utf-8") for side in ("digits", "words")]
        return list(zip(*(side.splitlines() for side in sides), strict=True))

    return {"train": read("train"), "validation": read("valid"), "test": read("test")}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory, parts: dict[str, Pairs]) -> Path:
    """The run of the recipe as a table and of lists of pairs; nobody may write into it."""

    def train(folder: Path) -> None:
        transduce.train(table(), folder / "run", parts, quiet=True)

    return made_once(tmp_path_factory, "from-lists", train) / "run"


def table(**more: Any) -> dict[str, Any]:
    return {**tomllib.loads(SHORT), "name": "tiny", **more}


def test_from_lists_comes_the_same_file_as_from_files(tmp_path: Path, usual: Path, parts: dict[str, Pairs]) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for name, pairs in parts.items():
        lines = [f'{{"source": "{source}", "target": "{target}"}}\n' for source, target in pairs]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    data = (
        f'[data]\nroot = "{folder.as_posix()}"\ntrain = {{ jsonl = "train.jsonl" }}\n'
        'validation = { jsonl = "validation.jsonl" }\ntest = { jsonl = "test.jsonl" }\n[tokenizer]\n'
    )
    before, after = SHORT.split("[data]")
    (tmp_path / "tiny.toml").write_text(before + data + after.split("[tokenizer]\n")[1], encoding="utf-8")
    run_training(load_recipe(tmp_path / "tiny.toml"), tmp_path / "command", shown())
    report = json.loads((usual / "report.json").read_text(encoding="utf-8"))
    assert sha256(usual) == sha256(tmp_path / "command") == report["model"]["sha256"]


def test_from_lists_come_the_same_weights_as_from_two_text_files(
    tmp_path: Path, tiny_corpus: Path, usual: Path
) -> None:
    recipe = table()
    recipe["data"]["root"] = str(tiny_corpus)
    files = transduce.train(recipe, tmp_path / "files", quiet=True)
    one, other = (load_model_file(run).weights for run in (usual, files.run))
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert transduce.load(usual).predict("4 4 3 5").text == files.model.predict("4 4 3 5").text


def test_what_holds_recipe_and_data_makes_no_difference(tmp_path: Path, usual: Path, parts: dict[str, Pairs]) -> None:
    (tmp_path / "tiny.toml").write_text(SHORT, encoding="utf-8")
    recipes = [table(), tmp_path / "tiny.toml", transduce.Recipe.from_table(table())]

    def generated() -> Iterator[tuple[str, str]]:
        yield from parts["train"]

    rest = {name: parts[name] for name in ("validation", "test")}
    mappings = [{"source": source, "target": target, "more": 1} for source, target in parts["train"]]
    named = [{"digits": source, "words": target} for source, target in parts["train"]]
    data = [({**rest, "train": generated()}, None), ({**rest, "train": mappings}, None)]
    every = [transduce.train(recipe, tmp_path / f"{place}", *data[0][:1] if place == 0 else [parts], quiet=True)
             for place, recipe in enumerate(recipes)]  # fmt: skip
    every.append(transduce.train(table(), tmp_path / "mappings", data[1][0], quiet=True))
    columns = {name: [{"digits": one, "words": two} for one, two in rest[name]] for name in rest}
    given = {**columns, "train": named}
    other = transduce.train(table(), tmp_path / "named", given, columns=("digits", "words"), quiet=True)
    assert {sha256(trained.run) for trained in every} == {sha256(usual)}
    one, same = (load_model_file(run).weights for run in (usual, other.run))
    assert all(torch.equal(one[name], same[name]) for name in one)  # the file says what the columns are called


def test_the_columns_of_a_table_are_remembered(tmp_path: Path, parts: dict[str, Pairs]) -> None:
    sides = [*zip(*parts["train"], strict=True)]
    told = StringIO()
    data = {**parts, "train": pyarrow.table(sides, ["numbers", "said"])}
    trained = transduce.train(table(), tmp_path / "run", data, console=Console(file=told, width=200))
    assert 'data.train: column "numbers" is the input, "said" the answer; columns=(..) says' in told.getvalue()
    written = (trained.run / "data" / "train.jsonl").read_text(encoding="utf-8").splitlines()
    assert [*map(json.loads, written)] == [{"numbers": one, "said": other} for one, other in parts["train"]]
    [entry] = trained.model.recipe.data.train  # type: ignore[attr-defined]
    assert (entry.source_column, entry.target_column) == ("numbers", "said")

    more = pyarrow.table([range(len(parts["test"])), *zip(*parts["test"], strict=True)], ["id", "numbers", "said"])
    (tmp_path / "new.csv").write_text("id,numbers,said\n" + "".join(f"1,{a},{b}\n" for a, b in parts["test"]))
    expected = transduce.evaluate(trained, parts["test"]).scores
    assert transduce.evaluate(trained, more).scores == expected
    assert transduce.evaluate(trained, tmp_path / "new.csv").scores == expected
    found = read_pair_inputs(tmp_path / "new.csv", known_of(trained.model.recipe.to_table()))
    assert found is not None
    assert (found.texts, found.note) == ([source for source, _ in parts["test"]], "")
    with pytest.raises(transduce.InputError, match=r"data: got a table with the columns id, said; say which"):
        transduce.evaluate(trained, more.select(["id", "said"]))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_table_is_read_by_its_columns(tmp_path: Path, usual: Path, parts: dict[str, Pairs], library: str) -> None:
    tables = pytest.importorskip(library)
    sides = {
        name: dict(zip(("source", "target"), zip(*pairs, strict=True), strict=True)) for name, pairs in parts.items()
    }
    made = tables.table if library == "pyarrow" else tables.DataFrame
    frames = {name: made(both) for name, both in sides.items()}
    assert sha256(transduce.train(table(), tmp_path / "run", frames, quiet=True).run) == sha256(usual)


def test_a_stopped_training_goes_on_to_the_same_file_wherever_its_run_lies(
    tmp_path: Path, usual: Path, parts: dict[str, Pairs]
) -> None:
    seen = list[TrainingUpdate]()

    class Stop(Exception):
        pass

    def stop(update: TrainingUpdate) -> None:
        seen.append(update)
        if update.update == 6:
            raise Stop

    with pytest.raises(Stop):
        transduce.train(table(), tmp_path / "run", parts, callbacks=[stop], quiet=True)
    assert [each.update for each in seen] == [1, 2, 3, 4, 5, 6]
    assert {each.updates for each in seen} == {12}
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    again = transduce.train(moved / "recipe.toml", moved, callbacks=[seen.append], quiet=True)  # as `train moved` does
    assert [each.update for each in seen[6:]] == [5, 6, 7, 8, 9, 10, 11, 12]  # after the checkpoint of update 4
    assert seen[4].loss > 0
    assert seen[-1].best["update"] == 6
    assert sha256(again.run) == sha256(usual)
    seen.clear()
    left = transduce.train(table(), moved, parts, callbacks=[seen.append], quiet=True)
    assert left.report == again.report
    assert not seen


def test_a_run_keeps_the_name_of_its_first_directory(tmp_path: Path, parts: dict[str, Pairs]) -> None:
    unnamed = {name: section for name, section in table().items() if name != "name"}

    class Stop(Exception):
        pass

    def stop(update: TrainingUpdate) -> None:
        raise Stop

    for folder in ("run", "moved"):
        with pytest.raises(Stop):
            transduce.train(unnamed, tmp_path / folder, parts, callbacks=[stop], quiet=True)
        if folder == "run":
            (tmp_path / "run").rename(tmp_path / "moved")
    assert tomllib.loads((tmp_path / "moved" / "recipe.toml").read_text())["name"] == "run"


def test_a_recipe_without_model_goes_on_with_the_model_that_it_starts_from(
    tmp_path: Path, usual: Path, parts: dict[str, Pairs]
) -> None:
    first = transduce.load(usual)
    recipe = {name: section for name, section in table().items() if name not in ("model", "tokenizer")}
    second = transduce.train(recipe, tmp_path / "second", parts, overrides={"training.start": str(usual)}, quiet=True)
    assert second.model.recipe.model == first.recipe.model
    assert second.model.task.tokenizers["source"].to_json() == first.task.tokenizers["source"].to_json()
    assert sha256(second.run) != sha256(usual)


def test_other_data_is_refused_and_the_runs_data_stays(tmp_path: Path, usual: Path, parts: dict[str, Pairs]) -> None:
    shutil.copytree(usual, tmp_path / "run")
    before = {path: path.read_bytes() for path in sorted((tmp_path / "run").rglob("*")) if path.is_file()}
    shuffled = random.Random(1).sample(parts["train"], len(parts["train"]))
    with pytest.raises(transduce.InputError, match=r"began with other data; these differ: train\.jsonl"):
        transduce.train(table(), tmp_path / "run", {**parts, "train": shuffled}, quiet=True)
    with pytest.raises(transduce.InputError, match=r"another recipe; these keys differ: model\.dropout"):
        transduce.train(table(), tmp_path / "run", parts, overrides={"model.dropout": 0.3}, quiet=True)
    assert {path: path.read_bytes() for path in sorted((tmp_path / "run").rglob("*")) if path.is_file()} == before


def test_all_problems_are_told_at_once_and_nothing_is_left(tmp_path: Path, parts: dict[str, Pairs]) -> None:
    wrong = [("1", "one"), "two", {"source": "3"}, ("4", None), ("5", "\ud800"), ("6", ["six", "half a dozen"])]
    recipe = table(modell={}, training={"updatess": 3})
    with pytest.raises(transduce.InputError) as caught:
        transduce.train(recipe, tmp_path / "run", {"train": wrong, "validation": []}, quiet=True)
    told = "\n".join(caught.value.problems)
    for expected in (
        "unknown section [modell]",
        "updatess",
        "data.train[1]: expected a pair (source, target); got str: 'two'.",
        'data.train[2]: expected the keys "source" and "target" or "text" and "label"; got source.',
        "data.train[3]: target: expected a text; got NoneType: None.",
        "data.train[4]: target: holds a lone surrogate",
        "expected one answer; got 2.",
        "data.validation: expected at least one example; got none.",
    ):
        assert expected in told
    assert not (tmp_path / "run").exists()
    with pytest.raises(transduce.InputError, match=r"mapping with train.* got a mapping with tests"):
        transduce.train(table(), tmp_path / "run", {"train": parts["train"], "tests": []}, quiet=True)
    with pytest.raises(transduce.InputError, match=r"data\.train: expected pairs .*; got str: 'train\.tsv'"):
        transduce.train(table(), tmp_path / "run", "train.tsv", quiet=True)
    with pytest.raises(transduce.InputError, match="the recipe has no name"):
        transduce.train(tomllib.loads(SHORT), data=parts, quiet=True)
    with pytest.raises(transduce.InputError, match="expected the path of a TOML file"):
        transduce.train(3, tmp_path / "run", parts, quiet=True)  # type: ignore[arg-type]
    with pytest.raises(transduce.InputError, match='"language_modelling" reads its examples from files'):
        transduce.train({"task": {"kind": "language_modelling"}}, tmp_path / "run", parts, quiet=True)
    assert not (tmp_path / "run").exists()


def test_labelled_texts(tmp_path: Path) -> None:
    drawn = random.Random(3)
    texts = [" ".join(drawn.choices("abcde", k=5)) for _ in range(80)]
    examples = [{"text": text, "label": int(text.count("a") > 0)} for text in texts]
    recipe = {
        "task": {"kind": "classification"},
        "tokenizer": {"kind": "whitespace", "min_frequency": 1},
        "batch": {"tokens": 100},
        "model": {"kind": "classifier", "d_model": 8, "encoder": "none"},
        "training": {"threads": 1, "updates": 4, "validate_every": 2, "checkpoint_every": 2, "precision": "fp32"},
    }
    data = {"train": examples[:60], "validation": examples[60:], "test": examples[60:]}
    trained = transduce.train(recipe, tmp_path / "run", data, quiet=True)
    assert trained.model.predict("a b").text in ("0", "1")
    [test] = trained.report["tests"].values()
    assert "accuracy" in test["scores"]


def test_what_is_shown_and_where(tmp_path: Path, parts: dict[str, Pairs], capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(file=StringIO(), width=200)
    transduce.train(table(), tmp_path / "run", parts, console=console)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert "Training ended: all 12 updates done." in told
    assert ".new-" not in told
    transduce.train(table(), tmp_path / "other", parts, overrides={"training.updates": 1}, quiet=True)
    assert capsys.readouterr() == ("", "")


def test_in_a_thread_and_no_caller_of_the_recipe_is_changed(tmp_path: Path, parts: dict[str, Pairs]) -> None:
    recipe, found = table(), list[transduce.TrainedRun]()
    before = json.dumps(recipe)

    def work() -> None:
        settings = {"training.updates": 4, "training.warmup": 2}
        found.append(transduce.train(recipe, tmp_path / "run", parts, overrides=settings, quiet=True))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0].report["training"]["updates"] == 4
    assert json.dumps(recipe) == before


@pytest.mark.parametrize("overrides", [["training.updates=2"], "training.updates=2", {1}])
def test_overrides_that_are_no_mapping_are_told(tiny_recipe: Path, overrides: Any) -> None:
    for recipe in (tiny_recipe, None):
        with pytest.raises(InputError, match=r'overrides: expected a mapping, such as {"training.updates": 2000}; got'):
            transduce.train(recipe, data=None if recipe else [("a", "b")], overrides=overrides, quiet=True)
