"""A Ray cluster of this machine's: the same bytes as one process, also where a worker dies on the way."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from random_models import model_file, sentences, translator
from transduce.bulk import blocks
from transduce.bulk.blocks import blocks_of
from transduce.bulk.engine import LocalEngine
from transduce.bulk.job import BulkJob
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file

ray = pytest.importorskip("ray", reason="Ray is not installed (extra ray)")
pytest.importorskip("ray.data", reason="ray[data] is not installed (extra ray)")

LINES = [*sentences(150), "", "ba ba\u2028de", "  ", "go " * 40]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """One for all tests here, as starting one takes seconds."""
    before = dict(os.environ)
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_model_file(path, model_file(translator()))
    return path


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "LINES", 8)


def predicting(model: Path, **options: object) -> BulkJob:
    load = {"device": "cpu"}
    how = {"load": load, "predict": {"beam": 3, "split": "none", "batch_size": 4, **options}, "form": "json"}
    return BulkJob("predict", how, [model])


def rows(lines: list[str]) -> Iterator[dict[str, str]]:
    return ({"text": line} for line in lines)


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_changes_no_byte(model: Path) -> None:
    from transduce.bulk.ray_engine import RayEngine

    job, done, killed = predicting(model), list[int](), list[int]()
    expected = list(LocalEngine().answers(job, blocks_of(rows(LINES)), lambda lines: None))
    engine = RayEngine(2)

    def kill(lines: int) -> None:
        done.append(lines)
        if not killed:
            killed.append(next(iter(engine.processes))[1])
            os.kill(killed[0], signal.SIGKILL)

    found = list(engine.answers(job, blocks_of(rows(LINES)), kill))
    assert found == expected
    assert sum(done) == len(LINES)
    assert killed
    assert len(engine.processes) > 1


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_what_is_refused_is_an_error_of_ours_with_the_lines_of_the_file(model: Path) -> None:
    from transduce.bulk.ray_engine import RayEngine

    job = predicting(model, long="refuse")
    with pytest.raises(InputError) as local:
        list(LocalEngine().answers(job, blocks_of(rows(["ba"] * 9 + ["go " * 500])), lambda lines: None))
    assert local.value.problems[0].startswith("line 10: 500 tokens")
    with pytest.raises(InputError) as cluster:
        list(RayEngine(1).answers(job, blocks_of(rows(["ba"] * 9 + ["go " * 500])), lambda lines: None))
    assert cluster.value.problems == local.value.problems
