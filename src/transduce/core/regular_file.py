"""Reads files of run directories, which may come from anybody: what is no file, such as a pipe, is never waited for."""

import os
import stat
from pathlib import Path


def read_bytes(path: Path, most: int | None = None, tail: bool = False) -> bytes:
    """A regular file.

    Args:
        most: bytes that it may have; None = any number.
        tail: of a longer file, read its end.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no regular file, or a longer one.
    """
    with open(path, "rb", opener=_without_waiting) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("is no regular file")
        if most is None:
            return file.read()
        if status.st_size > most and not tail:
            raise ValueError(f"has {status.st_size:,} bytes; {most:,} at most are read")
        file.seek(max(0, status.st_size - most))
        return file.read(most)


def read_text(path: Path) -> str:
    """A regular file in UTF-8. Raises OSError, or ValueError that says what it is."""
    return read_bytes(path).decode("utf-8")


def _without_waiting(path: str, flags: int) -> int:
    """Opened: a pipe, too, that nobody writes to."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
