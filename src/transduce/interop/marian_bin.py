"""Marian's own `.bin`, as Firefox's and Bergamot's models are published: its arrays, by name.

    version, count                    u64, 1 and the number N of arrays
    name, type, shape, data           u64 of each array: bytes of its name with a NUL, kind of its numbers, dimensions,
                                      bytes of its data
    names, shapes                     of each array; int32 for a dimension
    gap                               u64, and as many bytes, which let the data begin at a multiple of 256
    data                              of each array

(`io/binary.cpp` of Marian.) Matrices of 8 bits (`intgemm8`) are the numbers, and behind them one float32 that each was
multiplied by. All but embeddings are transposed. What quantises activations (`.._QuantMultA`) is left out: here
products are in fp32, or in 8 bits with scales of their own.

A file says how large its parts are. Each is compared with what is left of the file before memory is taken.
"""

import os
import struct
from collections.abc import Iterator
from io import BufferedReader
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.core.bounded_file import open_regular
from transduce.core.errors import InputError

VERSION = 1
FLOAT32, INT8, INTGEMM8 = 0x0404, 0x0101, 0x4101
KINDS = {FLOAT32: 4, INT8: 1, INTGEMM8: 1}  # bytes of a number
SCALES = "_QuantMultA"
MOST_DIMENSIONS = 8
HEAD = struct.Struct("<QQQQ")

Arrays = dict[str, NDArray[Any]]


class _Item(NamedTuple):
    name: str
    kind: int
    shape: tuple[int, ...]
    size: int


def is_marian_bin(path: Path) -> bool:
    """Whether a file begins as such a `.bin` does; a pickle, which may be called so too, does not."""
    if path.suffix != ".bin" or not path.is_file():
        return False
    try:
        with open_regular(path) as file:
            return file.read(8) == struct.pack("<Q", VERSION)
    except OSError:
        return False


def read_marian_bin(path: Path) -> Arrays:
    """All arrays, in fp32, but for `special:` ones, which are bytes.

    Raises:
        InputError: it cannot be read, is damaged, or holds numbers of a kind that is not supported.
    """
    try:
        with open_regular(path) as file:
            rest = _Rest(path, file)
            items = list(_items(rest))
            (gap,) = struct.unpack("<Q", rest.take(8, "the gap"))
            rest.take(gap, "the gap")
            found = {item.name: _array(rest, item) for item in items}
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error
    return {name: array for name, array in found.items() if array is not None}


class _Rest:
    """What is left of a file, from which parts are taken in order."""

    def __init__(self, path: Path, file: BufferedReader) -> None:
        self.path, self._file, self.left = path, file, os.fstat(file.fileno()).st_size

    def take(self, size: int, name: str) -> bytes:
        """The next `size` bytes. Raises InputError where the file has not as many."""
        if size > self.left:
            raise self.damaged(f"{name} should have {size:,} bytes; {self.left:,} are left")
        self.left -= size
        found = self._file.read(size)
        if len(found) < size:
            raise self.damaged(f"it became shorter while it was read, at {name}")
        return found

    def damaged(self, what: str) -> InputError:
        return InputError(f"{self.path}: expected a .bin of Marian, but it is damaged: {what}.")


def _items(rest: _Rest) -> Iterator[_Item]:
    """The head of the file."""
    version, count = struct.unpack("<QQ", rest.take(16, "the head"))
    if version != VERSION:
        raise rest.damaged(f"its version is {version}, not {VERSION}")
    heads = list(HEAD.iter_unpack(rest.take(HEAD.size * count, "the list of arrays")))
    names = [rest.take(head[0], "a name").rstrip(b"\0").decode("utf-8", "replace") for head in heads]
    if len(set(names)) < len(names):
        raise rest.damaged("two arrays have one name")
    for (_, kind, dimensions, size), name in zip(heads, names, strict=True):
        if dimensions > MOST_DIMENSIONS:
            raise rest.damaged(f"{name} has {dimensions:,} dimensions")
        shape = struct.unpack(f"<{dimensions}i", rest.take(4 * dimensions, f"the shape of {name}"))
        if any(each < 1 for each in shape):
            raise rest.damaged(f"{name} has shape {list(shape)}")
        yield _Item(name, kind, shape, size)


def _array(rest: _Rest, item: _Item) -> NDArray[Any] | None:
    """The numbers of an array; None for one that is left out."""
    data = rest.take(item.size, item.name)
    if item.name.endswith(SCALES):
        return None
    if item.kind not in KINDS:
        raise InputError(
            f'{rest.path}: the array "{item.name}" has numbers of kind {item.kind:#06x}; expected float32 '
            f"({FLOAT32:#06x}) or intgemm8 ({INTGEMM8:#06x}). Others are laid out for one processor: take the file "
            "that was made for all."
        )
    count = prod(item.shape)
    if count * KINDS[item.kind] + 4 * (item.kind == INTGEMM8) > item.size:
        raise rest.damaged(f"{item.name} has shape {list(item.shape)}, but {item.size:,} bytes")
    if item.kind == FLOAT32:
        return np.frombuffer(data, "<f4", count).reshape(item.shape)
    whole = np.frombuffer(data, np.int8, count)
    return whole if item.kind == INT8 else _dequantised(rest, item, whole, data)


def _dequantised(rest: _Rest, item: _Item, whole: NDArray[np.int8], data: bytes) -> NDArray[np.float32]:
    """The numbers that were multiplied and rounded."""
    (factor,) = struct.unpack_from("<f", data, len(whole))
    if not 0 < factor < float("inf") or len(item.shape) != 2 or item.name.endswith("_Wt"):
        raise rest.damaged(f"{item.name} has shape {list(item.shape)} and was multiplied by {factor:g}")
    number = whole.astype(np.float32)
    number /= np.float32(factor)
    return number.reshape(item.shape) if item.name.endswith("Wemb") else number.reshape(item.shape[::-1]).T
