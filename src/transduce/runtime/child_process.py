"""Work in a process of its own, so that its memory is its own, or that several work side by side.

Its standard input is a pipe that ends when whoever started it does, however that ends: then it stops, saved.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from transduce.core.atomic import write_json
from transduce.core.errors import InputError, Interrupted, TransduceError

Job = dict[str, Any]  # "kind": which work it is, "where": its name for people
Process = subprocess.Popen[bytes]


def start(
    module: str, job: Job, path: Path, shown: Path | None = None, threads: int | None = None, keep: Sequence[int] = ()
) -> Process:
    """Begin `job`, to which `module` answers when it is run (see `answer`); the job is handed over as the file `path`.

    Args:
        shown: a file for what it tells a person; None = it tells where we do.
        threads: that it may use where nothing else is said; None = as many as we.
        keep: descriptors that it holds with us, as a lock.
    """
    write_json(path, job)
    own_group = sys.platform != "win32"  # Ctrl-C reaches us alone, and we tell it
    with contextlib.ExitStack() as files:
        output = files.enter_context(shown.open("ab")) if shown else None
        return subprocess.Popen(
            [sys.executable, "-m", module, str(path)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT if output else None,
            start_new_session=own_group,
            pass_fds=keep,
            env=os.environ | ({"OMP_NUM_THREADS": str(threads)} if threads else {}),
        )


def stop(process: Process) -> None:
    """Let it save and leave, if it has not; back when it has left."""
    assert process.stdin
    process.stdin.close()
    process.wait()


def exit_code(process: Process, refused: Callable[[], str]) -> int:
    """Wait for its end; its exit code, where it is not one of the errors below.

    Raises:
        InputError: it refused its input; `refused` says what a person should know of that.
        Interrupted: it was stopped.
    """
    try:
        code = process.wait()
    finally:
        stop(process)
    if code == InputError.exit_code:
        raise InputError(refused())
    if code == Interrupted.exit_code:
        raise Interrupted("Stopped; saved. The same command goes on from here.")
    return code


def answer(works: Mapping[str, Callable[[Job], None]]) -> None:
    """In the process that `start` began: do the job; errors are told and become exit codes as everywhere."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt)
        threading.Thread(target=leave_when_alone, daemon=True).start()
        job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
        works[job["kind"]](job)
    except TransduceError as error:
        print(f"transduce: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


def leave_when_alone() -> None:
    """Wait for the end of standard input, then ask this process to stop."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(f"stopped by {signal.Signals(number).name}.")
