"""Run directories whose files somebody has spoilt: `train` says what is wrong with them, or goes on without them."""

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from transduce.core.errors import InputError
from transduce.core.tensor_file import read_tensors, write_tensors
from transduce.recipe.recipe import load_recipe
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


def refused(recipe: Path, run: Path, *overrides: str) -> str:
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with pytest.raises(InputError) as raised:
        run_training(load_recipe(recipe, list(overrides)), run, Display(Console(file=io.StringIO())))
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


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes")
@pytest.mark.parametrize(
    "name", ["recipe.toml", "data.json", "report.json", "log.jsonl", "plan.json", "model.safetensors", ".lock"]
)
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(name: str, tiny_recipe: Path, copied: Path) -> None:
    (copied / name).unlink(missing_ok=True)
    os.mkfifo(copied / name)
    assert name in refused(tiny_recipe, copied, "training.updates=26")


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


def spoil(run: Path, change: Callable[[dict[str, Any], dict[str, str]], None], which: str = "update-*") -> None:
    """Checkpoints with a valid checksum, and `change` made to their tensors and metadata; the run is not finished."""
    (run / "report.json").unlink()
    for path in (run / "checkpoints").glob(f"{which}.safetensors"):
        tensors, metadata = read_tensors(path)
        change(tensors, metadata)
        write_tensors(path, tensors, metadata)


PROGRESS = ["", "[]", "null", "x", '{"update":"x"}', '{"update":-5}', '{"update":1.5}', '{"nope":1}', '{"best":5}']
PROGRESS += ['{"best":{"update":"x"}}', '{"best":{"loss":1}}', '{"raised":[1]}', '{"update":1e999}', "[" * 100_000]


@pytest.mark.parametrize("progress", PROGRESS, ids=[each[:30] for each in PROGRESS])
def test_a_checkpoint_without_sound_progress_is_gone_back_from(
    tiny_recipe: Path, tiny_run: Path, copied: Path, progress: str
) -> None:
    spoil(copied, lambda tensors, metadata: metadata.update(progress=progress), "update-00000024")
    shown = io.StringIO()
    run_training(load_recipe(tiny_recipe), copied, Display(Console(file=shown, width=1000)))
    assert "it is damaged, or not a checkpoint" in shown.getvalue()
    assert "Going on after update 20." in shown.getvalue()
    assert (copied / "model.safetensors").read_bytes() == (tiny_run / "model.safetensors").read_bytes()


def shrink(tensors: dict[str, Any]) -> None:
    for name in tensors:
        tensors[name] = torch.zeros(3)


@pytest.mark.parametrize(
    "change", [dict.clear, shrink, lambda tensors: tensors.update({"other/x": torch.zeros(1)})], ids=range(3)
)
def test_a_checkpoint_of_other_tensors_is_named(
    tiny_recipe: Path, copied: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    spoil(copied, lambda tensors, metadata: change(tensors))
    said = refused(tiny_recipe, copied)
    assert "update-00000024.safetensors: it belongs to another training" in said
