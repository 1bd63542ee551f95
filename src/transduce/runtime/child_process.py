"""Jobs in child processes, for separate memory or for parallel work.

A child's standard input is a pipe that closes when its parent ends, for whatever reason. The child then saves and
stops.
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
from transduce.core.printable import printable
from transduce.core.trust import allow_code

Job = dict[str, Any]  # "kind": which work it is, "where": its name for people
Process = subprocess.Popen[bytes]


def start(
    module: str, job: Job, path: Path, shown: Path | None = None, threads: int | None = None, keep: Sequence[int] = ()
) -> Process:
    """Start `job` in a process that runs `module` (see `answer`). The job is passed in the file `path`.

    Args:
        module: name of the module.
        job: the job.
        path: file for the job.
        shown: a file for its messages; None = where this process writes its own.
        threads: default number of threads; None = as many as this process.
        keep: file descriptors that it shares with this process, such as a lock.
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
    """Let the process save and exit, if it has not, and wait for it."""
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


def answer(handlers: Mapping[str, Callable[[Job], None]]) -> None:
    """In the process that `start` began: do the job; errors are told and become exit codes as everywhere."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _interrupt)
        threading.Thread(target=leave_when_alone, daemon=True).start()
        job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
        allow_code(job)  # which our parent was allowed to import
        handlers[job["kind"]](job)
    except TransduceError as error:
        print(f"transduce: {printable(str(error))}", file=sys.stderr)
        sys.exit(error.exit_code)


def leave_when_alone() -> None:
    """Wait for the end of standard input, then ask this process to stop."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted(f"stopped by {signal.Signals(number).name}.")
