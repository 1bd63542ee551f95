"""Processes side by side: the same results in the same order, errors as they are, and nobody left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch

import forked
import transduce
from transduce.errors import InputError
from transduce.tasks.protocols import Prediction
from transduce.workers import each

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    before = set(psutil.Process().children())
    yield
    assert set(psutil.Process().children()) <= before


def test_results_come_in_order_from_processes_of_one_thread() -> None:
    def work(number: int) -> tuple[int, int, int]:
        time.sleep(0.05 if number == 0 else 0)
        return number, os.getpid(), torch.get_num_threads()

    found = list(each(work, 20, workers=3))
    assert [number for number, _, _ in found] == list(range(20))
    assert 1 < len({process for _, process, _ in found} - {os.getpid()}) <= 3
    assert {threads for _, _, threads in found} == {1}
    assert {process for _, process, _ in each(work, 3)} == {os.getpid()}
    assert list(each(work, 0, workers=2)) == []


def test_an_error_is_the_workers_own() -> None:
    def work(number: int) -> int:
        if number == 2:
            raise InputError("number 2 is wrong.")
        return number

    with pytest.raises(InputError, match="number 2 is wrong"):
        list(each(work, 50, workers=2))


def test_workers_do_not_outlive_who_asked_for_them(tmp_path: Path) -> None:
    script = """
import os, time
from pathlib import Path
from transduce.workers import each
def work(number):
    Path(f"{number}.pid").write_text(str(os.getpid()))
    time.sleep(60)
list(each(work, 2, workers=2))
"""
    process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path)
    noted = [tmp_path / "0.pid", tmp_path / "1.pid"]
    while not all(path.exists() and path.read_text() for path in noted):
        assert process.poll() is None
        time.sleep(0.01)
    workers = [psutil.Process(int(path.read_text())) for path in noted]
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive


@pytest.mark.parametrize("options", [{}, {"method": "sample", "seed": 3}, {"lattice": True, "must": ["two"]}], ids=str)
def test_predictions_are_the_same(tiny_run: Path, tiny_corpus: Path, options: dict[str, object]) -> None:
    pipeline = transduce.load(tiny_run)
    texts = [*(tiny_corpus / "test.digits").read_text().splitlines(), "", "9 9 9"]
    alone: Callable[..., list[Prediction]] = partial(pipeline.predict, texts, batch_size=4, **options)
    told: list[int] = []
    together = alone(workers=2, advance=told.append)
    for one, other in zip(alone(), together, strict=True):
        assert (one.text, one.tokens, one.lattice is None) == (other.text, other.tokens, other.lattice is None)
        assert one.score == pytest.approx(other.score, abs=1e-5)
    assert sum(told) == len(texts)


def test_predict_has_workers(tiny_run: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    given = (tiny_corpus / "train.digits").read_bytes()
    done = [
        forked.transduce(tmp_path, "predict", tiny_run, "--workers", workers, "--batch-size", 16, given=given)
        for workers in (1, 2)
    ]
    assert done[0].code == done[1].code == 0
    assert done[0].out == done[1].out
    assert forked.transduce(tmp_path, "predict", tiny_run, "--workers", 0, given=given).code == 2
