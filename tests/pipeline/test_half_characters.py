"""A lone surrogate is half of a character: no file can hold it, and wherever it is given it is said to be none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import forked
from random_models import model_file, translator
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.explore.exploration import asked, explore
from transduce.pipeline.pipeline import Pipeline

HALF = "a\ud800"


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return translator()


@pytest.mark.parametrize(
    ("said", "ask"),
    [
        ("texts[1]: holds a lone surrogate", lambda pipeline: pipeline.predict(["ba", HALF])),
        ("score[0], target: holds a lone surrogate", lambda pipeline: pipeline.score([("ba", HALF)])),
        ("score[0], source: holds a lone surrogate", lambda pipeline: pipeline.score([(HALF, "ba")])),
        ("text: holds a lone surrogate", lambda pipeline: explore(pipeline, HALF)),
        ("text 1: its character 2 is U+D800", lambda pipeline: asked(pipeline, "ba", [HALF])),
        (r"must: 'a\ud800' is not a phrase", lambda pipeline: pipeline.predict(["ba"], must=[HALF])),
        (r"must: ('ba', 'a\ud800') is not a phrase", lambda pipeline: pipeline.predict(["ba"], must=[("ba", HALF)])),
        (r"must_not: 'a\ud800' is not a phrase", lambda pipeline: pipeline.predict(["ba"], must_not=[HALF])),
        (r"prefix: 'a\ud800' holds half of a character", lambda pipeline: pipeline.predict(["ba"], prefix=HALF)),
    ],
)
def test_in_python_it_is_an_input_error(said: str, ask: Callable[[Pipeline], Any], pipeline: Pipeline) -> None:
    with pytest.raises(InputError) as caught:
        ask(pipeline)
    assert said in str(caught.value)


@pytest.mark.parametrize("option", ["--must", "--must-not", "--prefix"])
def test_on_the_command_line_it_is_told_without_a_traceback(option: str, pipeline: Pipeline, tmp_path: Path) -> None:
    save_model_file(tmp_path / "model.safetensors", model_file(pipeline))
    half = b"a\xff".decode("utf-8", "surrogateescape")  # as Python is given such an argument
    done = forked.transduce(tmp_path, "predict", tmp_path / "model.safetensors", option, half, given=b"ba\n")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("transduce: ") and done.err.count("\n") == 1
