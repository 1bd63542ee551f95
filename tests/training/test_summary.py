"""The last that a training tells: how good the model is, where it lies, and commands that work as they stand."""

import io
import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import forked
from transduce.core.model_file import load_model_file, save_model_file
from transduce.recipe.recipe import load_recipe, parse_recipe
from transduce.training.display import Display
from transduce.training.summary import rows, tell_summary


def told(run: Path, table: dict[str, object] | None = None) -> list[str]:
    shown = io.StringIO()
    recipe = load_recipe(run / "recipe.toml") if table is None else parse_recipe(table, "test")
    report = json.loads((run / "report.json").read_text())
    tell_summary(recipe, run, report, Display(Console(file=shown, width=150)))
    return shown.getvalue().splitlines()


def test_scores_are_told_with_their_intervals_and_files_with_their_place(tiny_run: Path) -> None:
    lines = told(tiny_run)
    test = json.loads((tiny_run / "report.json").read_text())["tests"]["held_out"]
    for metric in ("bleu", "exact_match"):
        score = test["scores"][metric]
        low, high = score["interval"]
        assert any(
            score["name"] in line and f"{score['value']:.2f}" in line and f"[{low:.2f}, {high:.2f}]" in line
            for line in lines
        ), lines
    assert any("held_out" in line for line in lines)
    assert any(f"{test['likelihood']['perplexity']:.2f}" in line for line in lines)
    [place] = [line for line in lines if line.startswith(f"In {tiny_run}: ")]
    for file in place.removeprefix(f"In {tiny_run}: ").partition(" (")[0].split(", "):
        assert (tiny_run / file).is_file()
    assert "report.json" in place


def test_two_scores_of_one_name_are_told_apart() -> None:
    scores = {
        key: {"name": name, "value": 1.0, "interval": None, "signature": f"tok:{key}"}
        for key, name in (("bleu", "BLEU"), ("bleu-lc-moses", "BLEU"), ("chrf", "chrF"))
    }
    found = [row[1] for row in rows({"tests": {"t": {"scores": scores, "likelihood": {"perplexity": 1.0}}}})]
    assert found == ["BLEU (bleu)", "BLEU (bleu-lc-moses)", "chrF", "perplexity a token"]


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_the_next_commands_work_as_they_stand(tiny_run: Path, tmp_path: Path) -> None:
    lines = told(tiny_run)
    commands = [shlex.split(line) for line in lines[lines.index("Next:") + 1 :]]
    assert [command[:3] for command in commands] == [
        ["transduce", verb, str(tiny_run)] for verb in ("predict", "explore", "evaluate")
    ]
    predicted = forked.transduce(tmp_path, *commands[0][1:], given=b"1 2\n")
    assert (predicted.code, predicted.out.count("\n")) == (0, 1)
    evaluated = forked.transduce(tmp_path, *commands[2][1:])
    assert evaluated.code == 0, evaluated.err
    value = json.loads((tiny_run / "report.json").read_text())["tests"]["held_out"]["scores"]["bleu"]["value"]
    assert f"BLEU {value:.2f}" in evaluated.out


def test_columns_and_texts_are_named_as_evaluate_takes_them(tiny_run: Path) -> None:
    data = {"root": "/a b", "train": {"tsv": "x"}, "test": {"t": {"tsv": "t.tsv", "source_column": 2}}}
    assert told(tiny_run, {"data": data})[-1].endswith("--tsv '/a b/t.tsv' --source-column 2 --target-column 1")
    text = {"task": {"kind": "language_modelling"}, "model": {"kind": "transformer_decoder"}}
    data = {"train": {"text": "x"}, "test": {"t": {"text": "t.txt"}}}
    lines = told(tiny_run, {**text, "data": data})
    assert lines[-1].endswith("--reference t.txt")
    assert lines[lines.index("Next:") + 1] == f"  transduce generate {tiny_run}"


@pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
def test_train_ends_with_it(tiny_recipe: Path, tmp_path: Path) -> None:
    done = forked.transduce(tmp_path, "train", tiny_recipe, "training.updates=3", "--run", tmp_path / "run")
    assert done.code == 0, done.err
    assert "95 % interval" in done.out
    assert f"transduce predict {tmp_path / 'run'}" in done.out


def test_commands_for_a_model_of_ones_own_say_that_its_code_is_trusted(tiny_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name in ("recipe.toml", "report.json"):
        (run / name).write_bytes((tiny_run / name).read_bytes())
    file = load_model_file(tiny_run)
    save_model_file(run / "model.safetensors", file)
    assert not any("--trust-code" in line for line in told(run))
    config = {**file.config, "model": {**file.config["model"], "score": "my_score:MyScore"}}
    save_model_file(run / "model.safetensors", replace(file, config=config))
    lines = told(run)
    commands = lines[lines.index("Next:") + 1 :]
    assert len(commands) == 3
    assert all(line.endswith(" --trust-code") for line in commands)
