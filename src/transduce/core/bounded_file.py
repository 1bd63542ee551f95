"""Files of others, whose kind and size are looked at before they are read."""

import errno
import json
import os
import stat
from io import BufferedReader
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError


def open_regular(path: Path) -> BufferedReader:
    """A file to read bytes from. Pipes and devices may have no end, or let their readers wait.

    Raises:
        OSError: it cannot be opened, or is none of the regular files.
    """
    return open(path, "rb", opener=_regular)


def _regular(path: str, flags: int) -> int:
    """Opened without waiting for whoever writes into a pipe; Python itself refuses folders."""
    file = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISREG(kind := os.fstat(file).st_mode) or stat.S_ISDIR(kind):
        return file
    os.close(file)
    raise OSError(errno.EINVAL, "not a regular file", path)


def read_bytes(path: Path, max_bytes: int | None = None, tail: bool = False) -> bytes:
    """The content of a regular file.

    Args:
        max_bytes: bytes that it may have; None = any number.
        tail: of a longer file, read its end.

    Raises:
        OSError: it cannot be read, or is none of the regular files.
        ValueError: it is longer.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if max_bytes is None:
            return file.read()
        if size > max_bytes and not tail:
            raise ValueError(f"has {size:,} bytes; {max_bytes:,} at most are read")
        file.seek(max(0, size - max_bytes))
        return file.read(max_bytes)


def read_text(path: Path) -> str:
    """A regular file in UTF-8. Raises OSError as `read_bytes`, and ValueError where it is no UTF-8."""
    return read_bytes(path).decode("utf-8")


def read_table(path: Path, advice: str) -> dict[str, Any]:
    """A JSON object in a regular file that Transduce wrote.

    Args:
        advice: what to do about a damaged one, for the message.

    Raises:
        InputError: the file cannot be read, or holds something else.
    """
    try:
        found = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: damaged: {getattr(error, 'strerror', None) or error}. {advice}") from error
    if not isinstance(found, dict):
        raise InputError(f"{path}: damaged: expected a JSON object; got {type(found).__name__}. {advice}")
    return found


def bounded_bytes(path: Path, max_bytes: int) -> bytes:
    """The content of a file.

    Raises:
        InputError: it cannot be read, is no regular file, or has more than `max_bytes` bytes.
    """
    try:
        return read_bytes(path, max_bytes)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}.") from error


def bounded_text(path: Path, max_bytes: int) -> str:
    """The same of a text in UTF-8, with lines that end as they do anywhere."""
    try:
        return bounded_bytes(path, max_bytes).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8: {error}.") from error
