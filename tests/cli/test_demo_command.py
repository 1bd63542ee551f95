"""`transduce demo`, run for real on a small corpus with a model that is too small to be good."""

import io
import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
import typer
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from transduce.cli import demo as command
from transduce.core.errors import InputError
from transduce.core.extras import installing
from transduce.core.model_file import load_model_file
from transduce.demo import corpus
from transduce.demo.pronouns import Head, Look
from transduce.site.demo_model import RECIPE

TINY = [
    "model.d_model=16", "model.heads=2", "model.feed_forward=16", "training.updates=2", "training.decode_sentences=5",
    "search.max_length_offset=0",
]  # fmt: skip

app = typer.Typer()
app.command()(command.demo)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a demo has been run: a small corpus, two updates."""
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus, "SIZES", {"train": 3000, "validation": 20, "test": 60})
        patch.chdir(folder)
        patch.setenv("TRANSDUCE_CACHE", str(folder / "cache"))
        (folder / "first.txt").write_text(shown(TINY), encoding="utf-8")
    return folder


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TRANSDUCE_CACHE", str(folder / "cache"))
    return folder


def shown(arguments):
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "80", "NO_COLOR": "1"})
    if result.exception:
        raise result.exception
    return result.stdout


def test_it_leaves_a_run_and_a_figure(folder):
    run = folder / "runs" / "demo"
    for name in ("recipe.toml", "model.safetensors", "report.json", "log.jsonl", "figures/it.png", "corpus/train.fr"):
        assert (run / name).stat().st_size > 0, name
    assert (run / "figures" / "it.png").read_bytes().startswith(b"\x89PNG")


def test_the_explorer_opens_on_its_pair(folder):
    kept = load_model_file(folder / "runs" / "demo").provenance["examples"]
    assert kept[:2] == [question.english for question in corpus.PRONOUN_PAIR]
    assert set(kept[2:]) <= set((folder / "runs/demo/corpus/validation.en").read_text("utf-8").splitlines())


def test_what_it_prints_fits_80_columns(folder):
    lines = (folder / "first.txt").read_text(encoding="utf-8").split("\n")
    printed = lines[lines.index(command.UNSEEN) :]
    assert max(cell_len(line) for line in printed if "transduce predict" not in line) <= 80


def test_its_figures_are_those_of_the_report(folder):
    text = (folder / "first.txt").read_text(encoding="utf-8")
    report = json.loads((folder / "runs/demo/report.json").read_text())
    for score in report["tests"]["test"]["scores"].values():
        assert f"{score['value']:.2f}" in text
        assert score["signature"] in text
    simple = report["baseline"]["tests"]["test"]["scores"].values()
    assert re.search(r"nearest source +" + ", ".join(f"{each['name']} {each['value']:.2f}" for each in simple), text)
    assert re.search(r"where it matters +\d+\.\d\d %  \d+ of \d+", text)


def test_it_answers_for_both_sentences_and_names_a_head(folder):
    text = (folder / "first.txt").read_text(encoding="utf-8")
    for question in corpus.PRONOUN_PAIR:
        assert question.english in text
        assert f"for the {question.antecedent}?" in text
    assert re.search(r'What ("it"|its adjective) attends to: encoder block \d, head \d', text)
    assert len(re.findall(r"\bstreet +\d\.\d\d █", text)) == 2


def test_no_pages_are_built_with_a_model_that_does_not_say_what_they_say(folder):
    text = " ".join((folder / "first.txt").read_text(encoding="utf-8").split())
    assert "Not built: The model translates" in text
    assert not (folder / "runs" / "demo" / "site").exists()


def test_again_it_shows_the_same_model_without_training(here):
    model = here / "runs" / "demo" / "model.safetensors"
    before = model.stat().st_mtime_ns
    again = shown(TINY)
    assert model.stat().st_mtime_ns == before
    assert "trained already" in again
    first = (here / "first.txt").read_text(encoding="utf-8")
    assert again[again.index(command.UNSEEN) :] == first[first.index(command.UNSEEN) :]


def test_another_recipe_wants_another_run_directory(here):
    with pytest.raises(InputError, match=r"training\.seed.*--run"):
        shown([*TINY, "training.seed=2"])


def test_right_and_wrong_translations_are_told_apart():
    console = Console(file=io.StringIO(), width=80)
    pairs = [(f"English {place}.", f"Français {place}.") for place in range(26)]
    outputs = [french if place != 4 else "Anglais." for place, (_, french) in enumerate(pairs)]
    command._show_translations(console, pairs, outputs)
    text = console.file.getvalue()
    marks = re.findall(r"English (\d+)\..*(right|WRONG)", text)
    assert marks == [(str(place), "WRONG" if place == 4 else "right") for place in range(2, 26, 2)]
    assert re.findall("reference: (.*?) +", text.split("English 6")[0]) == ["Français"]
    assert text.count("reference:") == 1


@pytest.mark.parametrize(
    ("french", "pronouns"),
    [
        ("Le chat a dormi près du lit parce qu'il était fatigué.", ["il"]),
        ("Elles ont fui, même s'ils dorment.", ["elles", "ils"]),
        ("Une ville utile.", []),
    ],
)
def test_pronouns(french, pronouns):
    assert command._pronouns(french) == pronouns


def test_the_recipe_lies_inside_the_package():
    assert RECIPE.is_file()
    assert RECIPE.is_relative_to(Path(str(files("transduce"))))


def test_importing_the_verb_is_cheap():
    script = "import sys, transduce.cli.demo; sys.exit(bool({'torch', 'numpy', 'rich.console'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], env=os.environ, check=False).returncode == 0


def test_without_matplotlib_there_is_no_figure_and_it_says_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    console = Console(file=io.StringIO(), width=200)
    look = Look(["it", "noun"], query=0, noun=1, weights=np.array([0.4, 0.6]))
    command._save_figure(console, tmp_path / "it.png", Head(0, 0), [look, look])
    assert installing("figures") in " ".join(console.file.getvalue().split())
    assert not (tmp_path / "it.png").exists()
