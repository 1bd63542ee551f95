"""`transduce train` in processes of their own that can die where a test says. Forked from a warm server: fast."""

import multiprocessing
import os
import resource
import signal as signals
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OURS = ("training.run", "recipe", "models.transformer", "tasks.translation", "cli.app", "metrics.evaluate")
WARM = [f"transduce.{name}" for name in OURS]
WARM += ["torch._dynamo", "sacrebleu", "pyarrow.ipc", "tokenizers", "typer", "tomli_w"]  # what training imports later


@dataclass(frozen=True)
class Fate:
    """What befalls the process.

    dies_in_write: killed (-9) in the middle of writing tensor file number n, counted from 1.
    signal, at: sent to itself after update `at`.
    largest_file: bytes that a file may have, as on a full disk.
    """

    dies_in_write: int | None = None
    signal: signals.Signals | None = None
    at: int = 0
    largest_file: int | None = None


@dataclass(frozen=True)
class Ended:
    """Exit code (negative: killed by that signal) and everything that was shown."""

    code: int
    shown: str


def train(recipe: Path, run: Path, *overrides: str, fate: Fate = Fate()) -> Ended:
    """`transduce train RECIPE OVERRIDES --run RUN`, to its end."""
    process, shown = start(recipe, run, *overrides, fate=fate)
    process.join(120)
    assert process.exitcode is not None, "still running"
    return Ended(process.exitcode, shown.read_text(encoding="utf-8"))


def start(recipe: Path, run: Path, *overrides: str, fate: Fate = Fate()) -> tuple[Any, Path]:
    """The process, begun, and the file that takes what it shows."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(WARM)
    shown = run.with_name(f"{run.name}.shown.txt")
    arguments = ["train", str(recipe), *overrides, "--run", str(run)]
    process = context.Process(target=_live, args=(arguments, os.environ["TRANSDUCE_CACHE"], shown, fate))
    process.start()
    return process, shown


def _live(arguments: list[str], cache: str, shown: Path, fate: Fate) -> None:
    with shown.open("w", encoding="utf-8") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ["TRANSDUCE_CACHE"] = cache
    sys.modules["matplotlib"] = None  # type: ignore[assignment]  # as if not installed: no figures, which take long
    import torch

    torch.set_num_threads(1)
    signals.signal(signals.SIGINT, signals.default_int_handler)  # the server ignores it, a shell's child does not
    if fate.dies_in_write:
        _die_in_write(fate.dies_in_write)
    if fate.signal:
        _signal_after(fate.at, fate.signal)
    if fate.largest_file:
        resource.setrlimit(resource.RLIMIT_FSIZE, (fate.largest_file, fate.largest_file))
    from transduce.cli.app import main

    sys.argv = ["transduce", *arguments]
    main()


def _die_in_write(number: int) -> None:
    from transduce import storage

    replace, calls = storage.replace, iter(range(1, 1_000_000))

    def dying(chunks: Iterable[Any]) -> Iterator[Any]:
        yield next(iter(chunks))
        os.kill(os.getpid(), signals.SIGKILL)

    def counted(path: Path, chunks: Iterable[Any], size: int) -> None:
        replace(path, dying(chunks) if next(calls) == number else chunks, size)

    storage.replace = counted


def _signal_after(update: int, number: signals.Signals) -> None:
    from transduce.training.display import Display

    show = Display.show

    def showing(self: Display, progress: Any, *figures: float) -> None:
        show(self, progress, *figures)
        if progress.update == update:
            os.kill(os.getpid(), number)

    Display.show = showing  # type: ignore[method-assign]
