"""The command `transduce` in processes of its own, forked from a warm server: fast, and able to die where told."""

import json
import multiprocessing
import os
import runpy
import signal as signals
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

OURS = (
    "training.run",
    "recipe",
    "models.transformer",
    "tasks.translation",
    "cli.app",
    "metrics.evaluate",
    "evaluation",
    "distillation.pipeline",
    "fused.pack",
    "objectives.text",
    "planning.planned_run",
    "search.beam",
)
WARM = [f"transduce.{name}" for name in OURS]
WARM += ["torch._dynamo", "sacrebleu", "pyarrow.ipc", "tokenizers", "typer", "tomli_w"]  # what training imports later
WARM += ["ftfy", "opencc", "pandas", "pyarrow.pandas_compat", "sacrebleu.tokenizers.tokenizer_13a", "sentencex"]
BRIEFLY = 0.1  # seconds for which planning measures the machine's speed


@dataclass(frozen=True)
class Fate:
    """What befalls the process.

    dies_in_write: killed (-9) in the middle of writing tensor file number n, counted from 1.
    dies_once_there: killed (-9) when it opens or renames the next file after this one has come to be.
    signal, at: sent to itself after update `at`.
    largest_file: bytes that a file may have, as on a full disk.
    """

    dies_in_write: int | None = None
    dies_once_there: Path | None = None
    signal: signals.Signals | None = None
    at: int = 0
    largest_file: int | None = None


UNHARMED = Fate()
NOTHING: Mapping[str, str] = {}


class Ended(NamedTuple):
    """Exit code (negative: killed by that signal), standard output and standard error."""

    code: int
    out: str
    err: str

    @property
    def shown(self) -> str:
        """Everything that a person would see."""
        return self.out + self.err


Run = Callable[..., Ended]


def transduce(folder: Path, *arguments: object, given: bytes = b"", fate: Fate = UNHARMED) -> Ended:
    """`transduce ARGUMENTS < given`, to its end; its streams are files in `folder`."""
    return ended(start(folder, *arguments, given=given, fate=fate), folder)


def warm() -> None:
    """The server, if it is not there yet."""
    forkserver.set_forkserver_preload(WARM)
    forkserver.ensure_running()


def together(
    processes: int, folder: Path, *arguments: object, fates: Mapping[int, Fate] = MappingProxyType({})
) -> Ended:
    """`transduce ARGUMENTS` in processes that train together, as torchrun starts them; what all of them said.

    fates: of some of them, by rank.
    """
    started = []
    for rank, environment in enumerate(ranks(processes)):
        (folder / f"rank-{rank}").mkdir(exist_ok=True)
        own, fate = folder / f"rank-{rank}", fates.get(rank, UNHARMED)
        started.append(start(own, *arguments, environment=environment, fate=fate))
    ends = [ended(process, folder / f"rank-{rank}") for rank, process in enumerate(started)]
    out, err = ("".join(getattr(each, stream) for each in ends) for stream in ("out", "err"))
    return Ended(next((each.code for each in ends if each.code), 0), out, err)


def ranks(processes: int) -> list[dict[str, str]]:
    """What torchrun adds to the environment of each process; nothing for one alone."""
    if processes == 1:
        return [{}]
    with socket.create_server(("127.0.0.1", 0)) as free:
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    return [
        {**where, "WORLD_SIZE": str(processes), "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(processes)
    ]


def start(
    folder: Path,
    *arguments: object,
    given: bytes = b"",
    fate: Fate = UNHARMED,
    environment: Mapping[str, str] = NOTHING,
) -> Any:
    """The process, begun. environment: what it has more than the tests have."""
    warm()
    context = multiprocessing.get_context("forkserver")
    (folder / "stdin").write_bytes(given)
    environment = {"TRANSDUCE_CACHE": os.environ["TRANSDUCE_CACHE"], **environment}
    words = [str(argument) for argument in arguments]
    process = context.Process(target=_live, args=(words, environment, folder, fate))
    process.start()
    return process


class Child:
    """A process as `runtime.child_process.start` begins it, forked instead; it ends with its parent as well."""

    def __init__(
        self, module: str, job: Mapping[str, Any], path: Path, shown: Path | None = None, *unused: object
    ) -> None:
        warm()
        path.write_text(json.dumps(job), encoding="utf-8")
        reading, self.stdin = multiprocessing.Pipe(duplex=False)
        given = (module, path, shown, reading, os.environ["TRANSDUCE_CACHE"])
        self._process = multiprocessing.get_context("forkserver").Process(target=_answer, args=given)
        self._process.start()
        reading.close()

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.exitcode

    def wait(self) -> int | None:
        """Its exit code."""
        self._process.join()
        return self._process.exitcode


def _answer(module: str, path: Path, shown: Path | None, given: Connection, cache: str) -> None:
    os.setsid()
    os.dup2(given.fileno(), 0)
    if shown:
        with shown.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
    import torch

    torch.set_num_threads(1)
    os.environ["TRANSDUCE_CACHE"] = cache
    sys.argv = [module, str(path)]
    sys.modules.pop(module, None)
    runpy.run_module(module, run_name="__main__")


def ended(process: Any, folder: Path) -> Ended:
    """Waits for it."""
    process.join(600)
    assert process.exitcode is not None, "still running"
    return Ended(process.exitcode, *((folder / name).read_bytes().decode() for name in ("stdout", "stderr")))


def _live(arguments: list[str], environment: Mapping[str, str], folder: Path, fate: Fate) -> None:
    for descriptor, (name, mode) in enumerate((("stdin", "rb"), ("stdout", "wb"), ("stderr", "wb"))):
        with (folder / name).open(mode) as file:
            os.dup2(file.fileno(), descriptor)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 (multiprocessing closes a child's own)
    os.environ.update(environment)
    import torch

    torch.set_num_threads(1)
    _measure_briefly()
    signals.signal(signals.SIGINT, signals.default_int_handler)  # the server ignores it, a shell's child does not
    if fate.dies_in_write:
        _die_in_write(fate.dies_in_write)
    if fate.dies_once_there:
        _die_once_there(fate.dies_once_there)
    if fate.signal:
        _signal_after(fate.at, fate.signal)
    if fate.largest_file:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (fate.largest_file, fate.largest_file))
    from transduce.cli.app import main

    sys.argv = ["transduce", *arguments]
    main()


def _measure_briefly() -> None:
    from transduce.planning import speed

    assert speed.SECONDS > BRIEFLY
    speed.SECONDS = BRIEFLY


def _die_in_write(number: int) -> None:
    from transduce.core import tensor_file

    replace, calls = tensor_file.replace, iter(range(1, 1_000_000))

    def dying(chunks: Iterable[Any]) -> Iterator[Any]:
        yield next(iter(chunks))
        os.kill(os.getpid(), signals.SIGKILL)

    def counted(path: Path, chunks: Iterable[Any], size: int) -> None:
        replace(path, dying(chunks) if next(calls) == number else chunks, size)

    tensor_file.replace = counted


def _die_once_there(path: Path) -> None:
    def look(event: str, arguments: tuple[object, ...]) -> None:
        if event in ("open", "os.rename") and path.exists() and path.stat().st_size:
            os.kill(os.getpid(), signals.SIGKILL)

    sys.addaudithook(look)


def _signal_after(update: int, number: signals.Signals) -> None:
    from transduce.training.display import Display

    show = Display.show

    def showing(self: Display, progress: Any, *figures: float) -> None:
        show(self, progress, *figures)
        if progress.update == update:
            os.kill(os.getpid(), number)

    Display.show = showing  # type: ignore[method-assign]
