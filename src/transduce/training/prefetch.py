"""Batches that a thread reads, and copies to a GPU, while the GPU computes the update before."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, Full, Queue
from typing import Any, TypeVar

import torch
from torch.utils.data._utils.pin_memory import pin_memory

from transduce.data.collate import Batch
from transduce.data.columns import Columns
from transduce.data.store import Store
from transduce.inference.inputs import batches_of

Item = TypeVar("Item")
AHEAD = 2  # items that lie ready
LOOK = 0.1  # seconds between two looks whether anybody wants more


def worth_prefetching(device: torch.device) -> bool:
    """Whether a thread helps: a processor computes with all that it has."""
    return device.type == "cuda"


def loader(stores: Sequence[Store], columns: Columns, device: torch.device) -> Callable[[Any], Batch]:
    """Rows -> a batch on `device`; to a GPU of CUDA by way of memory that it reads by itself."""
    if device.type != "cuda":
        return batches_of(stores, columns, device)
    load = batches_of(stores, columns, torch.device("cpu"))

    def moved(rows: Any) -> Batch:
        batch: Batch = pin_memory(load(rows))  # type: ignore[no-untyped-call]
        return batch.to(device)

    return moved


@contextmanager
def prefetch(items: Iterator[Item], count: int = AHEAD) -> Iterator[Iterator[Item]]:
    """The same items in the same order, of which a thread makes up to `count` before they are asked for.

    What it raises is raised where the item would have been. The thread ends with the block.
    """
    ready: Queue[tuple[bool, Any]] = Queue(count)
    done = threading.Event()
    thread = threading.Thread(target=_make, args=(items, ready, done), name="prefetch", daemon=True)
    thread.start()
    try:
        yield _taken(ready)
    finally:
        done.set()
        with suppress(Empty):
            ready.get_nowait()
        thread.join()


def _make(items: Iterator[Item], ready: "Queue[tuple[bool, Any]]", done: threading.Event) -> None:
    try:
        for item in items:
            if not _put((True, item), ready, done):
                return
        _put((False, StopIteration()), ready, done)
    except BaseException as error:  # for whoever takes the item
        _put((False, error), ready, done)


def _put(made: tuple[bool, Any], ready: "Queue[tuple[bool, Any]]", done: threading.Event) -> bool:
    while not done.is_set():
        with suppress(Full):
            ready.put(made, timeout=LOOK)
            return True
    return False


def _taken(ready: "Queue[tuple[bool, Any]]") -> Iterator[Any]:
    while True:
        made, value = ready.get()
        if made:
            yield value
        elif isinstance(value, StopIteration):
            return
        else:
            raise value
