"""Who does bulk jobs: this process, or a cluster, behind one interface (`transduce.bulk.job.BulkEngine`)."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from transduce.bulk.blocks import LineBlock
from transduce.bulk.job import Advance, BlockWorker, BulkEngine, BulkJob
from transduce.core.errors import InputError

EngineName = Literal["local", "ray"]


class LocalEngine:
    """This process, block by block.

    worker: one that is there already, as its model is loaded.
    """

    def __init__(self, worker: BlockWorker | None = None) -> None:
        self._worker = worker

    def answers(self, job: BulkJob, blocks: Iterable[LineBlock], advance: Advance) -> Iterator[Any]:
        """See `BulkEngine`."""
        worker = self._worker or job.worker()
        return (worker.answer(block, advance) for block in blocks)


def engine_of(name: EngineName, worker: BlockWorker | None = None, workers: int | None = None) -> BulkEngine:
    """The engine of this name.

    Args:
        worker: for "local", one that is there already.
        workers: for "ray", how many processes hold the model; None = one for each processor, or GPU, of the cluster.

    Raises:
        InputError: there is no such engine, or its library is not installed.
    """
    if name == "local":
        return LocalEngine(worker)
    if name != "ray":
        raise InputError(f'engine: expected "local" or "ray"; got {name!r}.')
    from transduce.bulk.ray_engine import RayEngine  # late: it imports torch, which the kernels alone do without

    return RayEngine(workers)
