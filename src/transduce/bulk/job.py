"""A bulk job as data, what does it, and where.

A job (`BulkJob`) can be sent anywhere; a worker is made of it where the job is done, and answers block by block with
values for JSON. `BulkEngine.answers` gives the answers in the order of the blocks.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from transduce.bulk.blocks import LineBlock

Advance = Callable[[int], None]
WORKERS = {
    "predict": "transduce.bulk.predicting:PredictingWorker",
    "score": "transduce.bulk.scoring:ScoringWorker",
    "scan": "transduce.bulk.scanning:ScanningWorker",
}


class BlockWorker(Protocol):
    """Does one kind of job, in one process."""

    def answer(self, block: LineBlock, advance: Advance) -> Any:
        """What is made of a block, for JSON.

        Args:
            advance: told how many more lines are done.

        Raises:
            InputError: a line is refused.
        """
        ...


@dataclass(frozen=True)
class BulkJob:
    """A job as data.

    kind: a name in `WORKERS`. settings: of its worker, for JSON.
    models: files that the worker loads; an engine on other machines takes them there.
    device: what a worker computes on; "auto": a GPU where the machines have some.
    """

    kind: str
    settings: dict[str, Any]
    models: list[Path] = field(default_factory=list)
    device: str = "cpu"

    def worker(self, models: list[Path] | None = None, threads: int | None = None) -> BlockWorker:
        """One that does it.

        Args:
            models: the model files, where they lie elsewhere than `self.models`.
            threads: that it computes with; None = as many as this process.

        Raises:
            InputError: a model cannot be loaded; the settings are wrong.
        """
        import torch

        if threads is not None:
            torch.set_num_threads(threads)
        module, _, name = WORKERS[self.kind].partition(":")
        made: BlockWorker = getattr(import_module(module), name)(self.settings, models or self.models)
        return made


class BulkEngine(Protocol):
    """Has workers do a job."""

    def answers(self, job: BulkJob, blocks: Iterable[LineBlock], advance: Advance) -> Iterator[Any]:
        """The answer to each block, in their order; each block is answered once, whatever becomes of a worker.

        Raises:
            InputError: the job cannot be done, or a line is refused.
        """
        ...


@dataclass(frozen=True)
class Placement:
    """Where a model works: the engine, the model's files, and how its workers load them (options of `load`)."""

    engine: BulkEngine
    models: list[Path]
    load: dict[str, Any]

    def job(self, kind: str, settings: dict[str, Any]) -> BulkJob:
        """A job for these workers; 8-bit products are the processor's."""
        device = str(self.load.get("device", "auto"))
        on_processor = self.load.get("precision") == "int8" and device == "auto"
        return BulkJob(kind, {"load": self.load, **settings}, self.models, "cpu" if on_processor else device)
