"""The same work on many things at once, by workers that compute with one thread each.

On two cores two workers of one thread predict a tenth to a fifth more than one of two threads: the matrices of a
step of a small model are too small to be shared out, and what stands between them is not shared at all.
Workers are processes, as Python runs one thread at a time; where nearly all of the work is a call outside Python,
threads of this process do: nothing is copied, and any system has them.
"""

import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import torch

from transduce.core.errors import InputError

Found = TypeVar("Found")
_inherited: list[Callable[[int], Any]] = []  # in a worker, its work


def parallel_map(
    work: Callable[[int], Found], count: int, workers: int = 1, releases_gil: bool = False
) -> Iterator[Found]:
    """work(0), work(1), .. work(count - 1), in that order; with more than one worker, several at a time.

    Processes are copies of this one as it is when the first result is asked for, so that `work` may use anything; what
    it returns is sent back. Workers end with this process, however that ends.

    Args:
        releases_gil: nearly all of the work is done without the interpreter's lock; workers are threads then.

    Raises:
        InputError: the system cannot copy a process.
    """
    if workers <= 1 or count <= 1:
        yield from map(work, range(count))
        return
    ways = _by_threads if releases_gil else _by_processes
    yield from ways(work, count, min(workers, count))


def _by_threads(work: Callable[[int], Found], count: int, workers: int) -> Iterator[Found]:
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield from _in_order(pool, work, count)
    finally:
        torch.set_num_threads(before)  # part of what it sets holds for all threads


def _by_processes(work: Callable[[int], Found], count: int, workers: int) -> Iterator[Found]:
    if "fork" not in multiprocessing.get_all_start_methods() or torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        raise InputError(
            f"workers = {workers}: processes cannot be forked on this system, or while a GPU is in use; use 1."
        )
    fork, begin = multiprocessing.get_context("fork"), partial(_begin, work, os.getpid())
    yield from _in_order(ProcessPoolExecutor(workers, fork, begin), _do, count)


def _in_order(pool: Executor, work: Callable[[int], Found], count: int) -> Iterator[Found]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads: workers use one, as torch's loaders do
            found = pool.map(work, range(count))
        yield from found
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(work: Callable[[int], Any], parent: int) -> None:
    _inherited.append(work)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent is told as well, and ends its workers
    torch.set_num_threads(1)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _do(number: int) -> Any:
    return _inherited[-1](number)
