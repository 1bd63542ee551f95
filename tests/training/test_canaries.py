"""A short training of each architecture is as good as it was when canary.py measured it.

What an optimizer, a schedule, an initialization or a kernel does wrong, unseen by tests of parts, makes training worse.
The loss may be above the mean of the three seeds by four times their standard deviation, and by 1 % at least.
"""

import json
import statistics
from pathlib import Path

import canary
import pytest


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("canaries")
    canary.write_data(folder)
    return folder


@pytest.mark.parametrize("name", canary.CANARIES)
def test_training_is_as_good_as_it_was(name: str, data: Path, tmp_path: Path) -> None:
    expected = json.loads(canary.EXPECTED.read_text(encoding="utf-8"))["losses"][name]
    mean, deviation = statistics.mean(expected), statistics.stdev(expected)
    found = canary.loss(name, canary.SEEDS[0], data, tmp_path / "run")
    most = mean + max(4 * deviation, 0.01 * mean)
    assert found <= most, f"loss {found:.3f} after 60 updates; {mean:.3f} when it was measured, at most {most:.3f}"
