"""`transduce predict` and `transduce-runtime predict`, in processes that cannot import torch."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import transduce
from transduce.runtime.devices import VARIABLE
from transduce.without_torch import choice

pytestmark = pytest.mark.usefixtures("kernels")

MODEL = Path(__file__).parents[1] / "formats/format-2.safetensors"
SCRIPT = """
import sys
sys.modules["torch"] = None  # importing it raises ImportError
from transduce.cli.{module} import main
main()
"""
COMMANDS = ["app", "runtime"]  # of the whole package, and of the one without torch


def run(module: str, *arguments: str, lines: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT.format(module=module), "predict", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, input=lines, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def expected() -> list[dict[str, object]]:
    found = transduce.load(MODEL, device="cpu").predict(["1 2 3", "", "9 9"], beam=2, nbest=2)
    return json.loads(json.dumps([each.to_dict() for each in found]))


@pytest.mark.parametrize("module", COMMANDS)
def test_lines_are_translated(module: str, expected: list[dict[str, object]], tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("1 2 3\n\n9 9\n")
    options = ["--beam", "2", "--nbest", "2"]
    done = run(module, str(MODEL), *options, "--json", "--source", str(tmp_path / "lines"), "--workers", "2")
    assert (done.returncode, done.stderr) == (0, "")
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected
    done = run(module, str(MODEL), "search.beam=2", "--batch-size", "1", lines="1 2 3\n\n9 9\n")
    assert done.stdout.splitlines() == [each["text"] for each in expected]


@pytest.mark.parametrize("module", COMMANDS)
def test_a_text_keeps_its_white_space(module: str, expected: list[dict[str, object]]) -> None:
    done = run(module, str(MODEL), "--text", "\n  1 2 3 ", "--beam", "2")
    assert done.stdout == f"\n  {expected[0]['text']} \n"


@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("app", ["--must", "one"], "must: phrases that must appear needs a search that goes step by step"),
        ("app", ["--device", "cuda"], "--device cuda: the kernels compute on the processor"),
        ("app", ["--coverage", "0.2"], "search.coverage = 0.2: needs a search that goes step by step"),
        ("runtime", ["search.min_length=2"], "search.min_length = 2: needs a search that goes step by step"),
        ("runtime", ["--beam", "2", "search.beam=3"], "search.beam was given twice"),
        ("runtime", ["--nbest", "9", "--beam", "2"], "nbest = 9 is more than beam = 2"),
        ("runtime", ["--to", "fr"], 'to = "fr": this model was trained without language tags'),
        ("runtime", ["--threads", "0"], "threads = 0: expected at least 1"),
        ("runtime", ["missing.safetensors"], "missing.safetensors: there is no such file or folder"),
    ],
)
def test_what_cannot_be_is_told_and_nothing_is_written(module: str, arguments: list[str], said: str) -> None:
    done = run(module, str(MODEL), *arguments, lines="1 2\n")
    assert said in done.stderr
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_auto_takes_torch_where_a_device_is_named_or_there_is_more_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = {"device": "auto", "more": False, "search": {}}
    asked: list[dict[str, Any]] = [{}, {"more": True}, {"device": "cuda"}, {"search": {"coverage": 0.5}}]
    monkeypatch.setattr(choice, "GPUS", ())
    monkeypatch.setenv(VARIABLE, "")
    found = [choice.translator_of([MODEL], "auto", **{**taken, **each}) is not None for each in asked]
    assert found == [True, False, False, False]
    assert choice.translator_of([MODEL], "torch", **taken) is None
    monkeypatch.setenv(VARIABLE, "cuda")
    assert choice.translator_of([MODEL], "auto", **taken) is None
    assert choice.translator_of([MODEL], "auto", **taken, precision="fp32") is None
    monkeypatch.setattr(choice, "GPUS", (MODEL,))
    monkeypatch.setenv(VARIABLE, "")
    assert choice.translator_of([MODEL], "auto", **taken) is None
    assert choice.translator_of([MODEL], "auto", **{**taken, "device": "cpu"}) is not None
