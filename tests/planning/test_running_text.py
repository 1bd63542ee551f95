"""Text alone: it is refused with both commands, or with its task planned as a language model, and trained."""

import gzip
import json
import random
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from forked import transduce as command
from transduce.core.errors import InputError
from transduce.data.pairs.inputs import Named
from transduce.planning import plan
from transduce.planning.plan import TrainingPlan, make_plan
from transduce.planning.recognition import kind_of, planner_of
from transduce.planning.speed import Speed
from transduce.training.display import Display

WORDS = ["the", "a", "cat", "dog", "sees", "hears", "old", "young", "in", "of", "house", "garden", "and", "or", "now"]
KIND = "language_modelling"


def sentences(path: Path, count: int, paragraphs: bool = False) -> Path:
    draw = random.Random(1)
    lines = [" ".join(draw.choices(WORDS, k=7)) for _ in range(count)]
    ends = ["\n\n" if paragraphs and n % 5 == 4 else "\n" for n in range(count)]
    path.write_text("".join(f"{line}.{end}" for line, end in zip(lines, ends, strict=True)), encoding="utf-8")
    return path


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A plan for a text, on a machine of a known speed, and what was told."""
    monkeypatch.setattr(plan, "measure", lambda *_: Speed(update=0.1, validation=1.0, tests=2.0, start=0.0))

    def make(path: Path, task: str = KIND, **named: Any) -> tuple[TrainingPlan, str]:
        told = StringIO()
        display = Display(Console(file=told, width=500))
        return make_plan(Named(path, task=task, **named), {}, None, display), told.getvalue()

    return make


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "text"])
def test_text_alone_is_refused_with_both_commands(tmp_path: Path, name: str) -> None:
    text = sentences(tmp_path / "x", 300).read_bytes()
    path = tmp_path / name
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    with pytest.raises(InputError, match="the target is missing") as error:
        kind_of(Named(path))
    assert "--target" in str(error.value)
    assert f"transduce train {path} --task {KIND}" in str(error.value)
    assert "docs/planning.md" in str(error.value)
    assert kind_of(Named(path, target=path)) == "translation"


def test_sentences_are_decided(tmp_path: Path, planned: Any) -> None:
    path = sentences(tmp_path / "a.txt", 1000)
    made, told = planned(path)
    assert "1,000 lines of 7,000 words" in told
    assert "A text a line." in told
    data, table = made.table["data"], made.table
    assert data["train"] == [{"text": str(path), "part": [0.0, 0.9]}]
    assert data["validation"]["part"] == [0.9, 0.95]
    assert data["test"]["held_out"]["part"] == [0.95, 1.0]
    assert (table["tokenizer"]["kind"], table["task"]["context"]) == ("bpe", 128)
    assert (table["model"]["kind"], table["model"]["d_model"]) == ("transformer_decoder", 64)
    assert all(each.reason for each in made.decisions)
    assert made.recipe.name == "a"


def test_hidden_words_of_paragraphs_are_decided(tmp_path: Path, planned: Any) -> None:
    """A line is a row, in pieces of words, and an LSTM reads what is little."""
    made, told = planned(sentences(tmp_path / "a.txt", 1000, paragraphs=True), "masked_language_modelling")
    assert "trains a masked language model." in told
    table = made.table
    assert "unit" not in table["data"]["train"][0] and table["tokenizer"]["kind"] == "bpe"
    assert (table["task"]["kind"], table["model"]["kind"]) == ("masked_language_modelling", "masked_language_model")
    assert (table["model"]["encoder"], table["model"]["hidden"]) == ("recurrent", 128)


def test_paragraphs_are_read_by_characters(tmp_path: Path, planned: Any) -> None:
    made, told = planned(sentences(tmp_path / "a.txt", 1000, paragraphs=True))
    assert "Running text, with empty lines between paragraphs." in told
    assert made.table["data"]["train"][0]["unit"] == "stream"
    assert (made.table["tokenizer"]["kind"], made.table["task"]["context"]) == ("character", 256)


def test_files_that_are_there_are_taken(tmp_path: Path, planned: Any) -> None:
    for name in ("train", "valid", "test"):
        sentences(tmp_path / f"{name}.txt", 200)
    inputs = planner_of(Named(tmp_path, task=KIND)).inputs
    assert (inputs.train, inputs.validation) == tuple({"text": f"{tmp_path}/{each}.txt"} for each in ("train", "valid"))
    path = tmp_path / "train.txt"
    made, _ = planned(path, validation=tmp_path / "valid.txt")
    assert made.table["data"]["train"] == [{"text": str(path), "part": [0.0, 0.95]}]
    assert made.table["data"]["validation"] == {"text": str(tmp_path / "valid.txt")}


def test_too_little_text_is_refused(tmp_path: Path, planned: Any) -> None:
    with pytest.raises(InputError, match=r"a\.txt: expected at least 5,000 characters; found"):
        planned(sentences(tmp_path / "a.txt", 20))


def test_a_text_is_trained_from_end_to_end(tmp_path: Path) -> None:
    path, run = sentences(tmp_path / "a.txt", 800), tmp_path / "run"
    small = ("training.updates=2", "model.d_model=8", "model.heads=2", "model.feed_forward=8")
    done = command(tmp_path, "train", path, "--task", KIND, *small, "--run", run)
    assert done.code == 0, done.shown
    report = json.loads((run / "report.json").read_text())
    assert report["tests"]["held_out"]
