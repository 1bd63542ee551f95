"""A metric of one's own, as `my_file:my_metric`: held to its contract, and run by leave alone."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import transduce
from transduce.core import trust
from transduce.core.errors import InputError
from transduce.core.model_file import load_model_file, save_model_file
from transduce.core.trust import allow_code
from transduce.metrics.evaluate import tallies

CODE = """
import pathlib
import numpy as np
from transduce.metrics.tally import Tally
pathlib.Path('ran').touch()
number = 1
class Metric: ...
def right(hypotheses, references, language=None):
    return Tally("right", f"language:{language}", np.ones((len(hypotheses), 1)), lambda sums: sums[0])
def short(hypotheses, references, language=None):
    return Tally("short", "", np.ones((1, 1)), lambda sums: sums[0])
def bare(hypotheses, references, language=None):
    return 1.0
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with the file; nothing was allowed or imported before."""
    (tmp_path / "own_metrics.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(trust, "_allowed", set())
    monkeypatch.delitem(sys.modules, "own_metrics", raising=False)
    return tmp_path


def told(name: str) -> str:
    with pytest.raises(InputError) as error:
        tallies([name], ["a", "b"], ["a", "b"])
    return str(error.value)


def test_it_counts_beside_the_built_in_ones(folder: Path) -> None:
    allow_code(["own_metrics:right"])
    own, built_in = tallies(["own_metrics:right", "exact_match"], ["a", "b"], ["a", "c"], "sw")
    assert (own.name, own.signature, own.value, built_in.value) == ("right", "language:sw", 2, 50)
    assert own.score().interval == (2, 2)
    assert type(own.value) is float and isinstance(own.statistics_SN, np.ndarray)


def test_texts_that_are_composed_are_composed_for_it_too(folder: Path) -> None:
    allow_code(["own_metrics:right"])
    [own] = tallies(["own_metrics:right"], ["é"], ["e\u0301"])
    assert own.signature == "language:None|unicode:NFC"


def test_it_is_held_to_its_contract(folder: Path) -> None:
    allow_code(["own_metrics:right"])
    rows = 'metrics: "own_metrics:{}": expected a Tally with a row for each of 2 texts; got {}.'
    assert told("own_metrics:short") == rows.format("short", "a Tally of 1")
    assert told("own_metrics:bare") == rows.format("bare", "float")
    assert told("own_metrics:Metric") == 'metrics: "own_metrics:Metric" is no function, but a type.'
    assert told("own_metrics:number") == 'metrics: "own_metrics:number" is no function, but a int.'
    assert told("own_metrics:none") == 'metrics: "own_metrics" has no function "none".'
    assert told("own-metrics:right") == (
        'metrics: "own-metrics:right" does not name a function; expected my_file:my_metric.'
    )


def test_nothing_runs_that_nobody_has_allowed(folder: Path) -> None:
    assert "needs trust_code=True / --trust-code" in told("own_metrics:right")
    assert not (folder / "ran").exists()


def test_a_model_file_that_names_one_runs_nothing_without_trust(folder: Path, tiny_run: Path) -> None:
    file = load_model_file(tiny_run)
    task = {**file.config["task"], "metrics": ["own_metrics:right"]}
    save_model_file(folder / "model.safetensors", replace(file, config={**file.config, "task": task}))
    with pytest.raises(InputError, match="names code outside Transduce: own_metrics:right"):
        transduce.load(folder / "model.safetensors")
    assert not (folder / "ran").exists()
    model = transduce.load(folder / "model.safetensors", trust_code=True)
    assert list(model.task.tallies(["a"], ["a"])) == ["own_metrics:right"]
    assert (folder / "ran").exists()
