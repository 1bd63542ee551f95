"""One training at a time in a run directory."""

import os
import socket
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from transduce.core.errors import InputError

NAME = ".lock"
LOOK = 0.2  # seconds between two tries


@contextmanager
def run_lock(run: Path, patience: float = 0.0) -> Iterator[None]:
    """Nobody else trains in `run` meanwhile. A process that dies, however it does, holds no lock any more.

    Args:
        patience: seconds to wait for another one, that may only be saving.

    Raises:
        InputError: another process trains there, and which one; nothing can be written there; its lock is no file of
            its own.
    """
    if sys.platform == "win32":
        yield
        return
    file = _locked(run, time.monotonic() + max(patience, LOOK))  # `is_held` may have it for a moment
    with file:
        with suppress(OSError):  # what it says is for people
            file.truncate(0)
            now = datetime.now().astimezone().isoformat(" ", timespec="seconds")
            file.write(f"process {os.getpid()} on {socket.gethostname()}, since {now}".encode())
        try:
            yield
        finally:
            with suppress(OSError):
                (run / NAME).unlink()


def is_held(run: Path) -> bool:
    """Whether somebody trains in `run` now. Not known on Windows, nor where a file system cannot lock."""
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        descriptor = os.open(run / NAME, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def _locked(run: Path, deadline: float) -> BinaryIO:
    path = run / NAME
    while True:
        try:
            file = open(path, "ab", buffering=0, opener=_opened)  # noqa: SIM115 (the caller's)
        except OSError as error:
            if path.is_symlink():
                raise _not_own(path) from error
            raise InputError(
                f"{run}: cannot be written to: {error.strerror}. Choose another directory with --run."
            ) from error
        if not _is_own(file):
            file.close()
            raise _not_own(path)
        if _lock(file) and _is_at(path, file):
            return file
        file.close()
        if path.exists() and time.monotonic() > deadline:
            holder = ""
            with suppress(OSError):
                holder = path.read_text(encoding="utf-8", errors="replace")
            raise InputError(
                f"{run}: another training is running there{f' ({holder})' if holder else ''}. Wait for it, stop it, or "
                "choose another directory with --run."
            )
        time.sleep(LOOK)


def _opened(path: str, flags: int) -> int:
    """A pipe, too, which nobody reads; no link is followed."""
    return os.open(path, (flags & ~os.O_WRONLY) | os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW, 0o666)


def _is_own(file: BinaryIO) -> bool:
    """Whether nobody else's file is written: it is one, and has no second name (a hard link)."""
    found = os.fstat(file.fileno())
    return stat.S_ISREG(found.st_mode) and found.st_nlink <= 1


def _not_own(path: Path) -> InputError:
    return InputError(
        f"{path}: expected the lock file of this run; found a link, or something that is not a file. Delete it, or "
        "choose another directory with --run."
    )


def _lock(file: BinaryIO) -> bool:
    """Whether it is ours, until it is closed."""
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # some network file systems cannot lock
            return True
    return True


def _is_at(path: Path, file: BinaryIO) -> bool:
    """Whether `path` is this file still: whoever held the lock before has taken its file away."""
    try:
        return path.stat().st_ino == os.fstat(file.fileno()).st_ino
    except FileNotFoundError:
        return False
