"""How much may be read of what does not say its size: a line, what a packed file holds, a pipe, a download.

A packed file of a few kilobytes can hold terabytes, and a pipe need not end. What is read is counted while it comes, so
that memory and disk stay free whatever a file says of itself. Each limit is an environment variable.
"""

import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Protocol, Self

from transduce.core.atomic import human_size
from transduce.core.errors import InputError

RATIO = 200  # how many times as large as its packed bytes a file may be
REPETITIVE = 1 << 26  # bytes up to which any ratio will do: a small file may say one thing again and again
LEAST = 1_000_000  # bytes that a limit may be
DAMAGED = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


class Limit(NamedTuple):
    """An environment variable that holds a number of units of so many bytes, and its default."""

    variable: str
    default: float
    unit: int

    def bytes(self) -> int:
        """Raises InputError where the variable holds no number, or one below `LEAST`."""
        given = os.environ.get(self.variable, "")
        try:
            found = float(given or self.default) * self.unit
        except ValueError:
            found = 0
        if not LEAST <= found < float("inf"):
            least = f"at least {LEAST / self.unit:g}"
            raise InputError(
                f"{self.variable}: expected a number, {least}, such as {self.default:g}; got {given[:40]}."
            )
        return int(found)


LINE = Limit("TRANSDUCE_MAX_LINE_MB", 16, 1_000_000)
STREAM = Limit("TRANSDUCE_MAX_STREAM_GB", 4, 1_000_000_000)


class Reads(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes: ...

    def close(self) -> None: ...


class BoundedStream:
    """A stream whose size is not known before it is read, up to its limits.

    Args:
        name: what messages call it.
        stream: what it reads.
        packed: how many packed bytes were read so far; None: it is not packed.
        sized: it is a plain file, which may be of any size.
        beneath: closed with it.
    """

    def __init__(
        self,
        name: str | Path,
        stream: Reads,
        packed: Callable[[], int] | None = None,
        sized: bool = False,
        beneath: Reads | None = None,
    ) -> None:
        self._name, self._stream, self._packed, self._beneath = name, stream, packed, beneath
        self._size, self._most = 0, None if sized else STREAM.bytes()

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end.

        Raises:
            InputError: it is larger than the limits; it is damaged or cut off.
        """
        try:
            block = self._stream.read(size)
        except DAMAGED as error:
            raise InputError(
                f"{self._name}: cannot be read to the end: it is damaged or cut off ({error}). Get or compress "
                "it again."
            ) from error
        self._size += len(block)
        self._check()
        return block

    def close(self) -> None:
        self._stream.close()
        if self._beneath:
            self._beneath.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _check(self) -> None:
        if self._most and self._size > self._most:
            raise InputError(f"{self._name}: {self._too_large(self._most)}")
        if self._packed and self._size > REPETITIVE and self._size > RATIO * self._packed():
            raise InputError(
                f"{self._name}: unpacks to more than {RATIO} times its size, which no text, sound or model does. If it "
                "is meant, unpack it yourself: a plain file may be of any size."
            )

    def _too_large(self, limit: int) -> str:
        what = "unpacks to" if self._packed else "has"
        advice = "unpack it yourself, as a plain file may be of any size" if self._packed else "save it as a file first"
        return (
            f"{what} more than {human_size(limit)}, the most that is read of what does not say its size. If it is "
            f"meant, {advice}, or set {STREAM.variable} (now {limit / STREAM.unit:g})."
        )


def split_lines(blocks: Iterable[bytes], name: str | Path) -> Iterator[bytes]:
    """Every line of a stream without its b"\\n". A last line without b"\\n" counts.

    Raises:
        InputError: a line is longer than the limit.
    """
    most, number = LINE.bytes(), 1
    pieces: list[bytes] = []
    held = 0
    for block in blocks:
        head, *rest = block.split(b"\n")
        pieces.append(head)
        held += len(head)
        if held > most:
            raise InputError(f"{name}, line {number}: {line_too_long(most)}")
        if rest:
            yield b"".join(pieces)
            yield from rest[:-1]
            number += len(rest)
            pieces, held = [rest[-1]], len(rest[-1])
    if last := b"".join(pieces):
        yield last


def line_too_long(limit: int) -> str:
    """What is wrong with a line of more bytes."""
    return (
        f"has more than {human_size(limit)}, the most that a line may have. Is this text, with a line break after each "
        f"line? If it is meant, split the line, or set {LINE.variable} (now {limit / LINE.unit:g})."
    )
