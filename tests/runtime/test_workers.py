"""Workers side by side: the same results in the same order, errors as they are, and nobody left behind."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch

import forked
import transduce
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.inference.prediction import Prediction
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.runtime.workers import parallel_map
from transduce.search import fused_search
from transduce.search.settings import Search

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    forked.warm()  # its processes stay
    before = set(psutil.Process().children())
    yield
    assert set(psutil.Process().children()) <= before


def test_results_come_in_order_from_processes_of_one_thread() -> None:
    met = multiprocessing.get_context("fork").Barrier(2)

    def work(number: int) -> tuple[int, int, int]:
        if number < 2:  # by two of them, each waiting for the other
            met.wait()
        return number, os.getpid(), torch.get_num_threads()

    found = list(parallel_map(work, 20, workers=3))
    assert [number for number, _, _ in found] == list(range(20))
    assert 1 < len({process for _, process, _ in found} - {os.getpid()}) <= 3
    assert {threads for _, _, threads in found} == {1}
    assert {os.getpid()} == set(parallel_map(lambda number: os.getpid(), 3))
    assert list(parallel_map(work, 0, workers=2)) == []


def test_threads_do_what_is_done_outside_of_python() -> None:
    met = threading.Barrier(2)

    def work(number: int) -> tuple[int, int, int, int]:
        if number < 2:
            met.wait()
        return number, os.getpid(), threading.get_ident(), torch.get_num_threads()

    torch.set_num_threads(2)
    found = list(parallel_map(work, 20, workers=3, releases_gil=True))
    assert torch.get_num_threads() == 2
    assert [number for number, *_ in found] == list(range(20))
    assert {process for _, process, _, _ in found} == {os.getpid()}
    assert 1 < len({thread for _, _, thread, _ in found} - {threading.get_ident()}) <= 3
    assert {threads for *_, threads in found} == {1}


def test_no_thread_goes_on_when_nobody_asks_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    left = threading.Event()
    shutdown = ThreadPoolExecutor.shutdown

    def leaving(pool: ThreadPoolExecutor, **asked: bool) -> None:
        shutdown(pool, wait=False, **asked)
        left.set()  # only now those that had begun go on
        shutdown(pool)

    def work(number: int) -> None:
        begun.append(number)
        assert number == 0 or left.wait(600)

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", leaving)
    threads = set(threading.enumerate())
    found = parallel_map(work, 1000, workers=2, releases_gil=True)
    next(found)
    found.close()
    assert set(threading.enumerate()) <= threads
    assert len(begun) <= 3  # the first, and one for each of the two


@pytest.mark.parametrize("outside_python", [False, True], ids=["processes", "threads"])
def test_an_error_is_the_workers_own(outside_python: bool) -> None:
    def work(number: int) -> int:
        if number == 2:
            raise InputError("number 2 is wrong.")
        return number

    with pytest.raises(InputError, match="number 2 is wrong"):
        list(parallel_map(work, 50, workers=2, releases_gil=outside_python))


def test_workers_do_not_outlive_who_asked_for_them(tmp_path: Path) -> None:
    script = """
import os, time
from pathlib import Path
from transduce.runtime.workers import parallel_map
def work(number):
    Path(f"{number}.pid").write_text(str(os.getpid()))
    time.sleep(60)
list(parallel_map(work, 2, workers=2))
"""
    process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path)
    noted = [tmp_path / "0.pid", tmp_path / "1.pid"]
    while not all(path.exists() and path.read_text() for path in noted):
        assert process.poll() is None
        time.sleep(0.01)
    workers = [psutil.Process(int(path.read_text())) for path in noted]
    process.send_signal(signal.SIGKILL)
    process.wait()
    _, alive = psutil.wait_procs(workers, timeout=120)
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


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("beam", [1, 5], ids=["greedy", "beam"])
def test_threads_search_where_a_process_cannot_be_copied(
    tiny_run: Path, tiny_corpus: Path, monkeypatch: pytest.MonkeyPatch, beam: int
) -> None:
    pipeline = transduce.load(tiny_run)
    texts = (tiny_corpus / "test.digits").read_text().splitlines()
    search = {"method": "greedy" if beam == 1 else "beam", "beam": beam, "batch_size": 4}
    alone = pipeline.predict(texts, **search)
    monkeypatch.setattr("multiprocessing.get_all_start_methods", lambda: ["spawn"])
    together = pipeline.predict(texts, workers=2, **search)
    assert [(each.text, each.score) for each in alone] == [(each.text, each.score) for each in together]
    with pytest.raises(InputError, match="processes cannot be forked on this system"):
        pipeline.predict(texts, workers=2, must=["two"], batch_size=4)


@pytest.mark.usefixtures("kernels")
def test_what_goes_in_one_call(tiny_run: Path) -> None:
    pipeline = transduce.load(tiny_run)
    source = Padded(torch.tensor([[5, 6, 2]]), torch.tensor([3]))
    assert fused_search.suits(pipeline.model, source, 20, Search())
    assert fused_search.suits(pipeline.model, source, 20, Search(method="greedy", beam=1))
    for asked in ({"method": "sample"}, {"coverage": 0.2}, {"groups": 5}, {"no_repeat_ngram": 3}):
        assert not fused_search.suits(pipeline.model, source, 20, Search(**asked))
    relative = Transformer(
        TransformerConfig(d_model=16, heads=2, feed_forward=16, positions="alibi"), Specs.of_tokens(20, 20)
    )
    assert not fused_search.suits(relative.eval(), source, 20, Search())


def test_predict_has_workers(tiny_run: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    given = (tiny_corpus / "train.digits").read_bytes()
    done = [
        forked.transduce(tmp_path, "predict", tiny_run, "--workers", workers, "--batch-size", 16, given=given)
        for workers in (1, 2)
    ]
    assert done[0].code == done[1].code == 0
    assert done[0].out == done[1].out
    assert forked.transduce(tmp_path, "predict", tiny_run, "--workers", 0, given=given).code == 2
