"""Files in, files out: what is written to a file is what standard output would have had."""

import gzip
import json
from pathlib import Path

import pytest

import forked
from random_models import model_file, sentences, translator
from transduce.core.model_file import save_model_file


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_model_file(tmp_path / "model.safetensors", model_file(translator()))
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in sentences(12)))
    return tmp_path / "model.safetensors"


def test_predictions_go_to_a_file_that_is_compressed_by_its_name(run: forked.Run, model: Path) -> None:
    shown = run("predict", model, "--source", model.parent / "in.txt")
    done = run("predict", model, "--source", model.parent / "in.txt", "--output", model.parent / "out.gz")
    assert (shown.code, done.code, done.out) == (0, 0, ""), done.err
    assert gzip.decompress((model.parent / "out.gz").read_bytes()).decode() == shown.out
    assert shown.out.count("\n") == 12


def test_scores_go_to_a_file_with_the_summary_last(run: forked.Run, model: Path) -> None:
    sides = ("--source", model.parent / "in.txt", "--target", model.parent / "in.txt", "--json")
    shown = run("score", model, *sides)
    done = run("score", model, *sides, "--output", model.parent / "out.jsonl")
    assert (shown.code, done.code, done.out) == (0, 0, ""), done.err
    written = (model.parent / "out.jsonl").read_text(encoding="utf-8")
    assert written == shown.out
    assert json.loads(written.splitlines()[-1])["total"]["tokens"] > 12


def test_nothing_is_written_where_a_line_is_refused(run: forked.Run, model: Path) -> None:
    (model.parent / "in.txt").write_text("ba\n" + "go " * 500 + "\n")
    done = run(
        "predict", model, "--source", model.parent / "in.txt", "--output", model.parent / "out", "--long", "refuse"
    )
    assert done.code == 2 and "line 2: 500 tokens" in done.err
    assert not (model.parent / "out").exists()


@pytest.mark.parametrize("more", [("--engine", "ray"), ("--output", "out.txt")])
def test_what_is_for_many_lines_is_refused_for_one(run: forked.Run, model: Path, more: tuple[str, str]) -> None:
    done = run("predict", model, "--text", "ba", *more)
    assert done.code == 2 and f"{more[0]}" in done.err and "many lines" in done.err
