"""`transduce predict --draw`, as a shell sees it: outputs with their pictures below, without colour in a pipe."""

import sys
from pathlib import Path

import pytest

from drawn_models import CONTEXT, QUESTION, answerer, classifier, file_of, parser, reader
from forked import Run
from transduce.core.model_file import save_model_file
from transduce.pipeline.pipeline import Pipeline

WORDS = "ba de fi"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


def saved(made: Pipeline, folder: Path) -> Path:
    path = folder / "model.safetensors"
    save_model_file(path, file_of(made))
    return path


@pytest.mark.parametrize(
    ("made", "given", "drawn"),
    [
        (classifier(), WORDS, ["good", "so-so", "bad"]),
        (answerer(), f"{QUESTION}\t{CONTEXT}", [QUESTION, "the question looks at: ", "the answer looks at: "]),
        (parser(), WORDS, ["── ba", "── de", "── fi"]),
        (reader(), WORDS, ["[ba] de fi", "[de] fi", "[fi]"]),
    ],
    ids=["classification", "extractive_qa", "parsing", "language_modelling"],
)
def test_each_output_has_its_picture_below(run: Run, tmp_path: Path, made: Pipeline, given: str, drawn: list) -> None:
    path = saved(made, tmp_path)
    plain, done = (run("predict", path, *more, given=f"{given}\n".encode() * 2) for more in ([], ["--draw"]))
    assert done.code == 0, done.err
    first, *pictures = done.out.split("\n")
    assert first == plain.out.split("\n")[0]
    assert pictures.count(first) >= 1  # the second line's output, below the first one's picture
    assert all(done.out.count(each) >= 2 for each in drawn), done.out
    assert "\x1b" not in done.out


def test_a_translation_has_its_attention_below(run: Run, tiny_run: Path) -> None:
    done = run("predict", tiny_run, "--draw", given=b"1 2\n\n")
    assert done.code == 0, done.err
    assert "Cross-attention, mean of all layers and heads" in done.out
    assert "there is no attention in an empty text" in done.err


def test_an_ensemble_has_outputs_and_is_told_to_have_no_attention(run: Run, tmp_path: Path) -> None:
    path = saved(reader(), tmp_path)
    done = run("predict", path, path, "--draw", given=f"{WORDS}\n".encode())
    assert done.code == 0 and done.out.startswith(WORDS)
    assert "an ensemble has no attention of its own" in done.err


def test_pictures_are_no_json(run: Run, tiny_run: Path) -> None:
    done = run("predict", tiny_run, "--draw", "--json", given=b"1 2\n")
    assert done.code == 2 and "--draw shows pictures and --json writes numbers" in done.err and not done.out
