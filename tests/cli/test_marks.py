"""Texts with marked spans: in colour where people look, as labels in a pipe."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from drawn_models import classifier, file_of, tagger
from forked import transduce as command
from transduce.core.model_file import save_model_file
from transduce.pipeline.pipeline import Pipeline

TEXT = "ba de, fi go!"


@pytest.fixture(scope="module")
def made() -> Pipeline:
    return tagger(seed=1, unit="split")


@pytest.fixture(scope="module")
def model(made: Pipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("marked") / "names.safetensors"
    save_model_file(path, file_of(made))
    return path


def marked(made: Pipeline, text: str) -> str:
    """The text with each entity of the prediction in brackets."""
    prediction = made.predict(text)
    for each in reversed(prediction.entities):  # type: ignore[attr-defined]
        text = f"{text[: each.start]}[{each.text} {each.kind}]{text[each.end :]}"
    return text


def at_terminal(model: Path) -> str:
    """What a person sees whose standard output is a terminal."""
    master, terminal = os.openpty()
    told = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": "80"}
    told.pop("NO_COLOR", None)
    arguments = [sys.executable, "-m", "transduce", "predict", str(model)]
    done = subprocess.run(arguments, input=TEXT.encode(), stdout=terminal, stderr=subprocess.PIPE, env=told, check=True)
    os.close(terminal)
    assert b"Traceback" not in done.stderr
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    return shown


def test_a_terminal_shows_colours_and_a_pipe_labels(model: Path, made: Pipeline, tmp_path: Path) -> None:
    shown = at_terminal(model)
    assert "\x1b[" in shown and "48;2;" in shown
    assert re.sub("\x1b\\[[0-9;]*m", "", shown).strip() == marked(made, TEXT)
    assert made.predict(TEXT).entities  # type: ignore[attr-defined]
    piped = command(tmp_path, "predict", model, given=TEXT.encode())
    assert (piped.code, piped.out) == (0, made.predict(TEXT).text + "\n")


def test_marks_may_be_asked_for_in_a_pipe(model: Path, made: Pipeline, tmp_path: Path) -> None:
    given = f"{TEXT}\n\nfi"
    found = command(tmp_path, "predict", model, "--format", "marks", given=given.encode())
    assert (found.code, found.out) == (0, "".join(f"{marked(made, line)}\n" for line in given.split("\n")))
    drawn = command(tmp_path, "predict", model, "--draw", given=TEXT.encode())
    assert drawn.out == f"{made.predict(TEXT).text}\n{marked(made, TEXT)}\n\n"


def test_other_models_mark_nothing(tmp_path: Path) -> None:
    save_model_file(tmp_path / "labels.safetensors", file_of(classifier()))
    found = command(tmp_path, "predict", tmp_path / "labels.safetensors", "--format", "marks", given=b"ba")
    assert found.code == 2 and "--format marks is for models that label words" in found.err
    assert "Traceback" not in found.err
