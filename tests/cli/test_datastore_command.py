"""`transduce datastore build` and `info`, and `predict --datastore`."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from random_models import model_file, sentences, translator
from transduce.cli.app import app
from transduce.core.model_file import save_model_file

SOURCES = [text for text in sentences(12, seed=5) if text]
TARGETS = [text for text in sentences(40, seed=8) if text][: len(SOURCES)]


def called(*arguments: object, fails: int = 0) -> tuple[str, str]:
    done = CliRunner().invoke(app, [str(each) for each in arguments], standalone_mode=True)
    assert done.exit_code == fails or (fails == 2 and done.exception), done.output
    return done.stdout, done.stderr if not done.exception or not str(done.exception) else str(done.exception)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_model_file(path, model_file(translator()))
    return path


def memory(folder: Path) -> Path:
    units = "".join(
        f'<tu><tuv xml:lang="xx"><seg>{source}</seg></tuv><tuv xml:lang="yy"><seg>{target}</seg></tuv></tu>'
        for source, target in zip(SOURCES, TARGETS, strict=True)
    )
    path = folder / "memory.tmx"
    path.write_text(f'<tmx version="1.4"><header srclang="xx"/><body>{units}</body></tmx>', encoding="utf-8")
    return path


def test_built_shown_and_used(model: Path, tmp_path: Path) -> None:
    store, keep = tmp_path / "memory.datastore", tmp_path / "keep.txt"
    keep.write_text("\n".join(SOURCES[:4]) + "\n", encoding="utf-8")
    how = ("--knn", "weight=0.9", "--knn", "k=2", "--keep", keep, "--languages", "xx-yy")
    _, told = called("datastore", "build", model, memory(tmp_path), "--output", store, *how)
    assert f"entries of {len(SOURCES)} pairs" in told
    assert f"of {keep} stay the same" in told
    facts = json.loads(called("datastore", "info", store, "--json")[0])
    assert (facts["pairs"], facts["settings"]["weight"], facts["settings"]["k"]) == (len(SOURCES), 0.9, 2)
    assert f"{len(SOURCES)}\n" in called("datastore", "info", store)[0]
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(SOURCES) + "\n", encoding="utf-8")
    limits = ("search.max_length_factor=0.5", "search.max_length_offset=4", "--source", lines)
    plain, _ = called("predict", model, *limits)
    with_it, _ = called("predict", model, *limits, "--datastore", store, "--knn", "distance=1000.0")
    assert plain.splitlines() != with_it.splitlines()
    told_json, _ = called("predict", model, *limits, "--datastore", store, "--json")
    answers = [json.loads(line) for line in told_json.splitlines()]
    assert all(len(each["origins"]) == len(each["tokens"]) for each in answers)
    several, _ = called("predict", model, *limits, "--datastore", store, "--workers", "2", "--batch-size", "3")
    assert several.splitlines() == [each["text"] for each in answers]


def test_what_cannot_be_is_told(model: Path, tmp_path: Path) -> None:
    store = memory(tmp_path)
    assert "expected one translation memory" in called("datastore", "build", model, fails=2)[1]
    assert "expected a safetensors file" in called("predict", model, "--text", "ba", "--datastore", store, fails=2)[1]
    assert "not a datastore" in called("datastore", "info", model, fails=2)[1]
    assert "name it with --datastore" in called("predict", model, "--text", "ba", "--knn", "k=2", fails=2)[1]
    same = ("datastore", "build", model, store, "--output", model, "--languages", "xx-yy")
    before = model.read_bytes()
    called(*same, fails=2)
    assert model.read_bytes() == before
