"""Run directories whose files somebody has spoilt: `train` says what is wrong with them, or goes on without them."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from transduce.errors import InputError
from transduce.recipe import load_recipe
from transduce.training.display import Display
from transduce.training.finished import read_report
from transduce.training.run import run_training

SPOILT = [b"", b"\0" * 100, b"\xff\xfe{", b"[]", b"null", b"1", b'"x"', b"[" * 100_000, b"9" * 5000]
ODD: list[Any] = [None, "x", [], {}, -1, 10**30, float("nan")]
READ = [  # keys of a report that is whole
    *(("model",), ("model", "sha256"), ("ended",), ("training",), ("training", "updates"), ("training", "seconds")),
    *(("tests",), ("tests", "held_out"), ("tests", "held_out", "scores"), ("tests", "held_out", "scores", "bleu")),
    *(("tests", "held_out", "scores", "bleu", "value"), ("tests", "held_out", "likelihood", "perplexity")),
    *(("progress",), ("progress", "update"), ("progress", "stale"), ("progress", "seconds"), ("progress", "raised")),
]


def refused(recipe: Path, run: Path) -> str:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(InputError) as raised:
        run_training(load_recipe(recipe), run, Display(Console(file=io.StringIO())))
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    return str(raised.value)


@pytest.fixture
def copied(tiny_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_run, tmp_path / "copied"))


@pytest.mark.parametrize("content", SPOILT, ids=range(len(SPOILT)))
def test_spoilt_fingerprints_are_named(tiny_recipe: Path, copied: Path, content: bytes) -> None:
    (copied / "data.json").write_bytes(content)
    assert "data.json: the fingerprints of this run's data cannot be read" in refused(tiny_recipe, copied)


@pytest.mark.parametrize(
    "content", ["data = 1", "training = []", 'search = "x"', "tokenizer = true", "[", "a = " + "[" * 100_000]
)
def test_a_spoilt_recipe_is_named(tiny_recipe: Path, copied: Path, content: str) -> None:
    (copied / "recipe.toml").write_text(content)
    assert "recipe.toml: the recipe of this run" in refused(tiny_recipe, copied)


def test_a_limit_that_is_no_number_is_another_recipe(tiny_recipe: Path, copied: Path) -> None:
    resolved = copied / "recipe.toml"
    resolved.write_text(resolved.read_text().replace("updates = 24", 'updates = "x"'))
    assert "these keys differ: training.updates" in refused(tiny_recipe, copied)


@pytest.mark.parametrize("content", SPOILT, ids=range(len(SPOILT)))
def test_a_spoilt_report_is_none(tiny_run: Path, tmp_path: Path, content: bytes) -> None:
    assert read_report(tiny_run) is not None
    (tmp_path / "report.json").write_bytes(content)
    assert read_report(tmp_path) is None


@pytest.mark.parametrize("key", READ, ids=".".join)
def test_a_report_with_an_odd_value_is_none(tiny_run: Path, tmp_path: Path, key: tuple[str, ...]) -> None:
    """A figure may be any number; `tests` and `scores` may be empty."""
    for odd in ODD:
        report = json.loads((tiny_run / "report.json").read_text())
        table = report
        for name in key[:-1]:
            table = table[name]
        if type(odd) is type(table[key[-1]]):
            continue
        table[key[-1]] = odd
        (tmp_path / "report.json").write_text(json.dumps(report))
        assert read_report(tmp_path) is None or type(table[key[-1]]) in (int, float), (key, odd)
