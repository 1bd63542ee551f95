"""A short training of each architecture is as good as it was when canary.py measured it.

What an optimizer, a schedule, an initialization or a kernel does wrong, unseen by tests of parts, makes training worse.
The loss may be above the worst of three seeds by their standard deviation, and by 1 % at least: kernels draw dropout
otherwise than torch does. Where a change only draws other random numbers and this fails by bad luck, canary.py shows
how all three seeds fared.
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


# Muon, counted embeddings, sampled words and a recurrent model; in bf16 a canary takes half a minute on many machines.
QUICK = [name for name in canary.CANARIES if name.startswith(("transformer, rotary", "rnn, GRU"))]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in canary.CANARIES]
)
def test_training_is_as_good_as_it_was(name: str, data: Path, tmp_path: Path) -> None:
    expected = json.loads(canary.EXPECTED.read_text(encoding="utf-8"))["losses"][name]
    worst = max(expected)
    most = worst + max(statistics.stdev(expected), 0.01 * worst)
    found = canary.loss(name, canary.SEEDS[0], data, tmp_path / "run")
    assert found <= most, (
        f"loss {found:.3f} after {canary.UPDATES} updates; {worst:.3f} when it was measured, at most {most:.3f}"
    )
