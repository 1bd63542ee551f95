"""Atomic file writes.

A file is written under a temporary name in the same folder, flushed to disk, then renamed. A reader sees the old file
or the new one, never a partial one, whatever happens to the writer. Links are followed. Devices and pipes have no old
and new: they are written into (`transduce.core.destination`).
"""

import errno
import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from transduce.core.destination import file_to_write, open_stream
from transduce.core.errors import InputError, TransduceError

FULL = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO}  # system failures; anything else is a wrong path


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Writes `text` atomically as UTF-8, without changing line ends.

    Raises:
        InputError: the folder does not exist, `path` is one itself, or nothing may be written there.
        TransduceError: the system could not write it (disk full); the old file is unchanged.
    """
    encoded = text.encode("utf-8")
    replace(Path(path), [encoded], len(encoded))


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Writes `value` atomically as indented JSON.

    Raises the errors of `write_text`, and InputError for values that JSON cannot represent (NaN, a tensor).
    """
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: this cannot be written as JSON: {error}.") from error
    write_text(path, text + "\n")


def replace(path: Path, chunks: Iterable[Any], size: int) -> None:
    """Replaces `path` atomically by a file made of `chunks` (bytes-like, `size` bytes in all).

    Raises the errors of `write_text`.
    """
    with writing(path, size) as file:
        for chunk in chunks:
            file.write(chunk)


@contextmanager
def writing(path: Path, size: int | None = None) -> Iterator[BinaryIO]:
    """A file that gets the name `path` when the block ends, complete and on disk. If anything fails, it never does.

    At a link, that is the file which it leads to. A device or a pipe is written into at once.

    Args:
        path: the name.
        size: the expected size in bytes, for the error message if the disk is full.

    Raises:
        InputError: the folder does not exist, `path` is one itself, or nothing may be written there.
        BrokenPipeError: whoever read the pipe has left.
        TransduceError: the system could not write it (disk full); the old file is unchanged.
    """
    file = _file_or_stream(path)
    if file is None:
        with _into_stream(path) as stream:
            yield stream
        return
    try:
        with _renamed_at_the_end(file) as opened:
            yield opened
    except OSError as error:
        raise _kind_of(error)(_why_not(file, size, error)) from error
    try:
        _flush_folder(file.parent)
    except OSError as error:
        raise TransduceError(
            f"{path}: written, but a power cut may undo it: its folder could not be flushed to the disk "
            f"({error.strerror})."
        ) from error


def _file_or_stream(path: Path) -> Path | None:
    try:
        return file_to_write(path)
    except OSError as error:
        raise InputError(f"{path}: could not be written: {error.strerror}.") from error


@contextmanager
def _into_stream(path: Path) -> Iterator[BinaryIO]:
    try:
        with open_stream(path) as stream:
            yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _kind_of(error)(f"{path}: could not be written: {error.strerror or error}.") from error


def _kind_of(error: OSError) -> type[TransduceError]:
    return TransduceError if error.errno in FULL else InputError


@contextmanager
def _renamed_at_the_end(path: Path) -> Iterator[BinaryIO]:
    _remove_leftovers(path)
    temporary, guard = _created(path)
    try:
        with guard:
            with temporary.open("wb") as file:  # a compressor may close it, and with it would go a lock on it
                yield file
            os.fsync(guard.fileno())
            if sys.platform == "win32":
                guard.close()  # there what is open cannot be renamed
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _created(path: Path) -> tuple[Path, BinaryIO]:
    """A new temporary file beside `path`, and the object that holds its lock, which protects it from being removed."""
    while True:
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}.tmp")
        guard = temporary.open("xb")
        try:
            _lock(guard)
            swept = not temporary.exists()  # by another writer, before it had its lock
        except BlockingIOError:  # another writer is about to
            swept = True
        except OSError:  # some network file systems cannot lock; then nobody sweeps there either
            swept = False
        if not swept:
            return temporary, guard
        guard.close()


def _why_not(path: Path, size: int | None, error: OSError) -> str:
    import shutil  # late, as glob: whoever only reads needs neither

    free = human_size(shutil.disk_usage(path.parent).free)
    needs = f"It needs {human_size(size)} ({size} bytes), and " if size is not None else ""
    kept = "The file that was there is unchanged." if path.exists() else "Nothing was left behind."
    return f"{path}: could not be written: {error.strerror or error}. {needs}{free} is free in {path.parent}. {kept}"


def _remove_leftovers(path: Path) -> None:
    """Removes what a killed process left half-written; a living writer holds a lock on its file."""
    if sys.platform == "win32":
        return
    import glob

    for leftover in path.parent.glob(f".{glob.escape(path.name)}.????????.tmp"):
        with suppress(OSError), leftover.open("rb") as file:
            _lock(file)
            leftover.unlink()


def _lock(file: BinaryIO) -> None:
    """Holds `file` until it is closed or the process dies. OSError where another process holds it."""
    if sys.platform != "win32":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _flush_folder(folder: Path) -> None:
    """Makes a rename survive a power failure. Windows has no such call and needs none."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def human_size(size: int) -> str:
    """`1234567` -> `1.2 MB` (powers of 1000)."""
    number = float(size)
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
