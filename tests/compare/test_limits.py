"""From a comparison along an axis, and from the benchmark of cost, to the page of the limits."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compared import compared_letters
from scripts import ROOT, loaded

GIB = 2**30


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recurrent networks of two widths, with two seeds, in this process."""
    variants = (
        '[compare.axis]\nname = "width"\nkey = "model.d_model"\nvalues = [4, 32]\n'
        '[variants.gru]\nmodel = { cell = "gru" }\n[variants.lstm]\nmodel = { cell = "lstm" }\n'
    )
    return compared_letters(tmp_path_factory.mktemp("limits"), "window", variants)


def test_what_is_along_a_key_is_recorded_and_becomes_a_section(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = loaded("benchmarks/publish_comparison.py").recorded(finished, "abc123")
    assert (record["comparison"], record["commit"], record["budget"]) == ("window", "abc123", "1ktok")
    assert [point["at"] for point in record["points"]] == [4, 32]
    trainings = [each for point in record["points"] for one in point["variants"].values() for each in one["trainings"]]
    assert len(trainings) == 8
    assert json.loads(json.dumps(record)) == record
    limits = loaded("docs/make_limits.py")
    monkeypatch.setattr(limits, "RECIPES", tmp_path)
    (tmp_path / "window.toml").write_text("# Is wide\n# better?\n#\n#   a command\n#\n# Published: no.\nbase = 1\n")
    section = limits.section("window", record)
    assert "\n\nIs wide\nbetter?\n\nPublished: no.\n\n    a command\n\n![" in section
    [figure] = record["axis"]["figures"]
    first = figure["variants"]["gru"][0]
    assert "| gru | {:.2f} [{:.2f}, {:.2f}] |".format(first["value"], *first["interval"]) in section
    assert "\n- perplexity on letters: " in section
    assert "8 trainings; budget 1ktok each" in section
    assert "commit `abc123`" in section
    assert list(limits.charts_of(record)) == ["axis-letters"]


def test_what_is_not_trained_at_every_value_is_not_published(finished: Path, tmp_path: Path) -> None:
    results = json.loads((finished / "compare.json").read_text())
    results["points"].pop()
    (tmp_path / "compare.json").write_text(json.dumps(results))
    with pytest.raises(SystemExit, match="not trained yet: 32"):
        loaded("benchmarks/publish_comparison.py").recorded(tmp_path)


def test_the_length_at_the_limit_is_that_of_the_power() -> None:
    cost = loaded("benchmarks/cost.py")
    lengths = [256, 512, 1024, 2048]
    found = {"lengths": lengths, "bytes": [7.0 * n**1.5 for n in lengths], "seconds": [1e-6 * n**2 for n in lengths]}
    told = cost.extrapolated(found, 20 * GIB)
    assert told["exponent_of_bytes"] == pytest.approx(1.5)
    assert 7 * told["length_at_limit"] ** 1.5 == pytest.approx(20 * GIB)
    assert told["seconds_there"] == pytest.approx(1e-6 * told["length_at_limit"] ** 2)
    assert cost.following([1.0]) == 0  # nothing is known yet
    assert cost.following([1.0, 3.0]) == 9
    assert cost.following([1.0, 1.1]) == pytest.approx(2.2)  # twice the length is twice the work at least


def test_a_model_is_measured_until_the_next_length_would_need_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = loaded("benchmarks/cost.py")

    def run(command: list[str], **settings: Any) -> subprocess.CompletedProcess[str]:
        length = int(command[-1])
        said = json.dumps({"seconds": length / 1e4, "bytes": 100.0 * length**2})
        return subprocess.CompletedProcess(command, 0, f"a warning\n{said}\n", "")

    monkeypatch.setattr(cost.subprocess, "run", run)
    assert cost.grown("softmax", 100.0 * 2048**2, 100.0)["lengths"] == [256, 512, 1024, 2048]
    assert cost.grown("softmax", 100.0 * 4096**2, 0.1)["lengths"] == [256, 512]


def test_memory_of_a_pass_is_measured_in_a_process_of_its_own() -> None:
    """A text of 4,096 tokens, 2 layers, width 128: the inputs of the layers alone take 4 MiB."""
    command = [sys.executable, str(ROOT / "benchmarks" / "cost.py"), "--one", "linear", "4096"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["bytes"] > 2 * 4096 * 128 * 4
    assert told["seconds"] > 0
