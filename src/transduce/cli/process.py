"""A command as a process: signals, standard streams, and errors as messages and exit codes."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from transduce.core.errors import InputError, Interrupted, TransduceError
from transduce.core.printable import printable


def run(name: str, command: Callable[[], Any]) -> None:
    """Run a command. Each of our errors becomes a message, which begins with its name, and an exit code."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    _open_standard_streams()
    try:
        _flushed(command)
    except TransduceError as error:
        _leave(name, str(error), error.exit_code)
    except BrokenPipeError:  # whoever read our output has left
        _leave(name, "", 1)
    except OSError as error:
        if error.errno is None:  # not the system's
            raise
        place = "standard output" if error.filename is None else os.fsdecode(error.filename)
        _leave(name, f"{place}: {error.strerror or error}.", InputError.exit_code)
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        said = str(error).split("\n")[0][:300]
        _leave(name, f"out of memory: a smaller --batch-size, --beam or model needs less ({said}).", 1)


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or sys.modules.get("torch") is None:
        return isinstance(error, MemoryError)
    from transduce.training.memory import is_out_of_memory

    return is_out_of_memory(error)


def _flushed(command: Callable[[], Any]) -> None:
    try:
        command()
    except SystemExit:
        if sys.stdout is not None:
            sys.stdout.flush()  # a full disk is told, too, where only the end of the output meets it
        raise


def _open_standard_streams() -> None:
    """Open closed standard streams on the null device, so that no other file gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (to its end)


def _leave(name: str, message: str, code: int) -> NoReturn:
    """Print the message behind the command's name, and exit. Output that could not be written before is dropped."""
    with suppress(OSError):
        if message:
            print(f"{name}: {printable(message)}", file=sys.stderr)
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(f"stopped by {signal.Signals(number).name}.")
