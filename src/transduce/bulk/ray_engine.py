"""Bulk jobs on a Ray cluster: Ray Data, with actors that hold the model.

The blocks are the rows of a dataset. They are read on this machine, no faster than they are worked off; an actor is
given one at a time; answers come back in order. Where an actor or its machine is lost, Ray starts another, which does
the block again. Model files travel as bytes, so that the machines need no files in common: only this package and its
libraries, in the same versions. Blocks and answers travel as JSON.
"""

import json
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from transduce.bulk.blocks import LineBlock
from transduce.bulk.job import Advance, BlockWorker, BulkJob
from transduce.core.errors import InputError, TransduceError
from transduce.core.extras import library
from transduce.runtime.environment import library_versions
from transduce.version import __version__

OFTEN = 2.0  # seconds between two looks at the cluster
ANSWER = 5.0  # seconds in which a machine takes a connection
SILENT = 30.0  # seconds without an answer, after which it is named
THREADS = 1  # of an actor, which takes one processor
SAME = ("torch", "tokenizers")  # libraries that decide about bits
LOCAL = {  # of a cluster that is started here: no reports of use to its makers, no lower priority, no log of its own
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}


class RayEngine:
    """The cluster that `RAY_ADDRESS` names, or that this machine belongs to; where there is none, this machine as one.

    Args:
        workers: actors; None = one for each processor, or GPU, of the cluster.

    Attributes:
        processes: (machine, process id) of the actors that have answered.

    Raises:
        InputError: Ray is not installed; `RAY_ADDRESS` is that of Ray's client.
    """

    def __init__(self, workers: int | None = None) -> None:
        library("ray.data", "engine ray", "ray", called="ray[data]")
        if os.environ.get("RAY_ADDRESS", "").startswith("ray://"):
            raise InputError(
                "RAY_ADDRESS: expected HOST:PORT or auto; got Ray's client (ray://), from which no dataset can read. "
                "Start the command on a machine of the cluster, as ray job submit does."
            )
        self._workers = workers
        self.processes: set[tuple[str, int]] = set()

    def answers(self, job: BulkJob, blocks: Iterable[LineBlock], advance: Advance) -> Iterator[Any]:
        """See `BulkEngine`. All blocks are written to a temporary file first."""
        with TemporaryDirectory(prefix="transduce-") as folder:
            spool = Path(folder) / "blocks.jsonl"
            lengths = _spooled(blocks, spool)
            if not lengths:
                return
            with _cluster(self._workers), _watched():
                for text, length in zip(self._answered(job, spool), lengths, strict=True):
                    answer = json.loads(text)
                    self.processes.add((answer["machine"], answer["process"]))
                    if answer["problems"]:
                        raise InputError(answer["problems"])
                    advance(length)
                    yield answer["found"]

    def _answered(self, job: BulkJob, spool: Path) -> Iterator[str]:
        """The answers to the blocks of a file, in its order. Raises TransduceError if Ray gives up."""
        import ray.exceptions
        from ray.data import ActorPoolStrategy

        described = {"kind": job.kind, "settings": job.settings, "device": job.device}
        models = [(path.name, ray.put(path.read_bytes())) for path in job.models]  # held here until the last answer
        versions = {name: library_versions()[name] for name in SAME} | {"transduce": __version__}
        size, gpus = _pool(self._workers, job.device)
        answered = _dataset(spool).map_batches(
            RayActor,
            batch_size=1,
            compute=ActorPoolStrategy(size=size, max_tasks_in_flight_per_actor=2),
            fn_constructor_args=(described, models, versions),
            num_cpus=THREADS,
            num_gpus=gpus,
        )
        try:
            for row in answered.iter_rows():
                yield row["answer"]
        except ray.exceptions.RayError as error:
            first = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
            raise TransduceError(f"the Ray cluster gave up: {first}") from error


class RayActor:
    """A worker in a process of the cluster.

    Args:
        described: the fields of its `BulkJob`.
        models: (name, Ray's reference to the bytes) of each model file.
        versions: of this package and of libraries, with which its bytes are those of one machine.
    """

    def __init__(self, described: dict[str, Any], models: list[tuple[str, Any]], versions: dict[str, str]) -> None:
        self._problems: list[str] = []
        self._folder = TemporaryDirectory(prefix="transduce-")
        try:
            _check_versions(versions)
            paths = [_written(Path(self._folder.name) / str(place), *each) for place, each in enumerate(models)]
            self._worker: BlockWorker = BulkJob(**described).worker(paths, THREADS)
        except InputError as error:  # raised, it would be tried again
            self._problems = list(error.problems)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[str]]:
        """The answer to each block of a batch, {"block": JSON} -> {"answer": JSON}."""
        return {"answer": [json.dumps(self._answer(text)) for text in batch["block"].tolist()]}

    def _answer(self, text: str) -> dict[str, Any]:
        told = {"machine": socket.gethostname(), "process": os.getpid()}
        if self._problems:
            return {**told, "problems": self._problems}
        try:
            found = self._worker.answer(LineBlock(*json.loads(text)), lambda lines: None)
        except InputError as error:
            return {**told, "problems": list(error.problems)}
        return {**told, "problems": [], "found": found}


def _check_versions(versions: dict[str, str]) -> None:
    here = library_versions() | {"transduce": __version__}
    problems = [
        f"{socket.gethostname()}: expected {name} {version}, as where the command was started; got {here[name]}. "
        "Install the same version on all machines of the cluster."
        for name, version in versions.items()
        if here[name] != version
    ]
    if problems:
        raise InputError(problems)


def _written(folder: Path, name: str, reference: Any) -> Path:
    import ray

    folder.mkdir()
    (folder / name).write_bytes(ray.get(reference))
    return folder / name


def _spooled(blocks: Iterable[LineBlock], path: Path) -> list[int]:
    """Write a block a line; returns how many rows each has."""
    lengths = []
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for block in blocks:
            file.write(json.dumps(block) + "\n")
            lengths.append(len(block.rows))
    return lengths


def _dataset(spool: Path) -> Any:
    """The lines of a file of this machine as rows, each of which is a block of Ray's too and so is sent by itself."""
    import pyarrow
    import ray
    from ray.data import Datasource, ReadTask, read_datasource
    from ray.data.block import BlockMetadata

    def read() -> Iterator[Any]:
        with spool.open(encoding="utf-8", newline="\n") as file:
            for line in file:
                yield pyarrow.table({"block": pyarrow.array([line], pyarrow.large_string())})

    class SpooledBlocks(Datasource):  # type: ignore[misc]
        def estimate_inmemory_data_size(self) -> int:
            return spool.stat().st_size

        def get_read_tasks(self, parallelism: int, *more: Any, **options: Any) -> list[ReadTask]:
            size = spool.stat().st_size
            return [ReadTask(read, BlockMetadata(num_rows=None, size_bytes=size, input_files=None, exec_stats=None))]

    here = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
    return read_datasource(SpooledBlocks(), override_num_blocks=1, num_cpus=0, label_selector=here)


def _pool(workers: int | None, device: str) -> tuple[int, int]:
    """How many actors, and how many GPUs each takes."""
    import ray

    there = ray.cluster_resources()
    gpus = int(there.get("GPU", 0)) if device != "cpu" else 0
    return workers or max(1, gpus or int(there.get("CPU", 1))), int(gpus > 0)


@contextmanager
def _cluster(workers: int | None) -> Iterator[None]:
    """Connected to the cluster, with Ray Data set to keep order and to say nothing; as before afterwards."""
    import ray
    from ray.data import DataContext

    connected = ray.is_initialized()
    if not connected:
        for name, value in LOCAL.items():
            os.environ.setdefault(name, value)
        _connect(workers)
    logger = logging.getLogger("ray.data")
    level, context = logger.level, DataContext.get_current()
    before = context.execution_options.preserve_order, context.enable_progress_bars, context.target_max_block_size
    try:
        logger.setLevel(logging.ERROR)
        context.execution_options.preserve_order, context.enable_progress_bars = True, False
        context.target_max_block_size = 1
        yield
    finally:
        context.execution_options.preserve_order, context.enable_progress_bars = before[:2]
        context.target_max_block_size = before[2]
        logger.setLevel(level)
        if not connected:
            ray.shutdown()


@contextmanager
def _watched() -> Iterator[None]:
    """A thread names the machines of the cluster that go meanwhile; see `ClusterWatch`."""
    import ray

    watch = ClusterWatch(ray.nodes)
    watch.start()
    try:
        yield
    finally:
        watch.stop()


class ClusterWatch(threading.Thread):
    """Names on standard error each machine of a cluster that does not answer, and each that Ray has given up.

    Ray needs more than a minute for the second where a link is cut, and its own words are not shown.

    Args:
        nodes: what `ray.nodes` gives.
        silent: seconds without an answer after which a machine is named.
    """

    def __init__(self, nodes: Callable[[], list[dict[str, Any]]], silent: float = SILENT) -> None:
        super().__init__(name="watch of the cluster", daemon=True)
        self._nodes, self._limit = nodes, silent
        self._answered: dict[str, float] = {}  # when each machine did so last; those that are given up are not there
        self._named: set[str] = set()
        self._done = threading.Event()

    def stop(self) -> None:
        """The work is done. A head node that does not answer may keep it a while."""
        self._done.set()
        self.join(OFTEN)

    def run(self) -> None:
        """Until `stop`, or until the cluster itself does not answer, which is told."""
        while not self._done.wait(OFTEN):
            try:
                nodes = self._nodes()
            except Exception as error:  # Ray's own kinds differ from version to version
                if not self._done.is_set():
                    _say(f"the head of the Ray cluster does not say which machines there are: {error}")
                return
            for node in nodes:
                if not self._done.is_set():
                    self._look(node)

    def _look(self, node: dict[str, Any]) -> None:
        key, now = node["NodeID"], time.monotonic()
        if not node["Alive"]:
            if self._answered.pop(key, None) is not None:
                _tell(node, "has gone from the Ray cluster. The others do its lines again.")
            return
        if key not in self._answered or _answers(node):
            self._answered[key] = now
            self._named.discard(key)
        elif now - self._answered[key] > self._limit and key not in self._named:
            self._named.add(key)
            _tell(
                node,
                f"has not answered for {now - self._answered[key]:.0f} s: it is down, or the network to it. Ray gives "
                "it up after a minute or so; then the others do its lines.",
            )


def _answers(node: dict[str, Any]) -> bool:
    try:
        with socket.create_connection((node["NodeManagerAddress"], node["NodeManagerPort"]), ANSWER):
            return True
    except OSError:
        return False


def _tell(node: dict[str, Any], what: str) -> None:
    _say(f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}) {what}")


def _say(what: str) -> None:
    sys.stderr.write(f"transduce: {what}\n")
    with suppress(OSError):
        sys.stderr.flush()


def _connect(workers: int | None) -> None:
    """Raises InputError if the cluster cannot be reached."""
    import ray

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    try:
        ray.init(address=os.environ.get("RAY_ADDRESS", "auto"), **quiet)
        return
    except ConnectionError as error:
        if "RAY_ADDRESS" in os.environ:
            raise InputError(f"RAY_ADDRESS = {os.environ['RAY_ADDRESS']}: no Ray cluster there: {error}") from None
    ray.init(address="local", num_cpus=workers, include_dashboard=False, **quiet)
