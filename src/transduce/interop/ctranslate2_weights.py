"""The tensors in a `model.bin` of CTranslate2, version 6, in fp32.

    u32 version | text: specification | u32 its revision | u32 number of tensors
    each tensor: text: name | u8 rank | u32 each size | u8 type | u32 number of bytes | the bytes
    u32 number of further names | each: text, text: the name of a tensor with the same values

A text is a u16 number of bytes, and the bytes, of which the last is 0; all numbers are little-endian. An 8-bit weight W
has beside it `W_scale`, a number for each row, by which the row was multiplied.
"""

import math
import os
import struct
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch
from torch import Tensor

from transduce.core.bounded_file import open_regular
from transduce.core.errors import InputError

VERSION = 6
TYPES = {0: torch.float32, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.float16, 5: torch.bfloat16}
MOST_AXES = 8
HEAD = 64  # bytes: a version, and the name of a specification
SCALE = "_scale"


class CTranslate2Weights(NamedTuple):
    """specification: such as WhisperSpec. tensors: by CTranslate2's names, in fp32; whole numbers as they are."""

    specification: str
    tensors: dict[str, Tensor]


def ctranslate2_specification(file: Path) -> str:
    """What a `model.bin` of CTranslate2 says it is, such as TransformerSpec; "" = it is no such file."""
    if not file.is_file():
        return ""
    with file.open("rb") as opened:
        head = opened.read(HEAD)
    name = head[6 : 6 + int.from_bytes(head[4:6], "little")].rstrip(b"\0")
    return name.decode() if name.endswith(b"Spec") and name.isalnum() else ""


def read_ctranslate2(path: Path) -> CTranslate2Weights:
    """All tensors of a file. Every size is compared with what is left of the file before memory is taken.

    Raises:
        InputError: it cannot be read, is damaged or cut off, or is of another version.
    """
    try:
        with open_regular(path) as file:
            return _Reader(path, file).weights()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error


class _Reader:
    """Reads the parts of one file in their order."""

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path, self.file = path, file
        self.left = os.fstat(file.fileno()).st_size

    def weights(self) -> CTranslate2Weights:
        if (version := self.number("I")) != VERSION:
            raise InputError(f"{self.path}: expected model.bin of version {VERSION}; got version {version}.")
        specification, _ = self.text(), self.number("I")
        found = dict(self.tensor() for _ in range(self.count()))
        aliases = [(self.text(), self.text()) for _ in range(self.count())] if self.left else []
        if missing := [name for _, name in aliases if name not in found]:
            raise self.damaged(f'a further name of "{missing[0]:.80}", which is no tensor')
        if self.left:
            raise self.damaged(f"{self.left:,} bytes behind its end")
        return CTranslate2Weights(specification, self.in_fp32(found, aliases))

    def in_fp32(self, found: dict[str, Tensor], aliases: list[tuple[str, str]]) -> dict[str, Tensor]:
        scales = {name for name in found if name.endswith(SCALE) and name.removesuffix(SCALE) in found}
        floats = {name: self.value(name, found) for name in found if name not in scales}
        return floats | {name: floats[same] for name, same in aliases if same in floats}

    def value(self, name: str, found: dict[str, Tensor]) -> Tensor:
        """A tensor in fp32; 8-bit rows are divided by their scale."""
        weight, scale = found[name], found.get(name + SCALE)
        if scale is None:
            return weight.float() if weight.is_floating_point() else weight
        if weight.dtype is not torch.int8:
            raise InputError(f'{self.path}: "{name}" is quantised to {weight.dtype}; int8 is read. Convert it again.')
        if not weight.ndim or scale.numel() not in (1, weight.shape[0]):
            raise self.damaged(f'"{name}" with {scale.numel()} scales and the shape {tuple(weight.shape)}')
        return weight.float() / scale.float().view(-1, *[1] * (weight.ndim - 1))

    def tensor(self) -> tuple[str, Tensor]:
        name, rank = self.text(), self.number("B")
        if rank > MOST_AXES:
            raise self.damaged(f'"{name}" with {rank} axes')
        shape, kind, size = [self.number("I") for _ in range(rank)], self.number("B"), self.number("I")
        if not size or kind not in TYPES or math.prod(shape) * TYPES[kind].itemsize != size:
            raise self.damaged(f'"{name}" of type {kind}, shape {shape} and {size:,} bytes')
        return name, torch.frombuffer(bytearray(self.bytes(size)), dtype=TYPES[kind]).view(shape)

    def count(self) -> int:
        """A number of things that take a byte each at least."""
        if (count := self.number("I")) > self.left:
            raise self.damaged(f"{count:,} of something in {self.left:,} bytes")
        return count

    def text(self) -> str:
        content = self.bytes(self.number("H"))
        try:
            return content.removesuffix(b"\0").decode()
        except UnicodeDecodeError:
            raise self.damaged(f"the name {content[:20]!r}") from None

    def number(self, kind: str) -> int:
        found: tuple[Any, ...] = struct.unpack(f"<{kind}", self.bytes(struct.calcsize(f"<{kind}")))
        return int(found[0])

    def bytes(self, size: int) -> bytes:
        if size > self.left:
            raise self.damaged(f"{size:,} more bytes where {self.left:,} are left: it is cut off")
        self.left -= size
        return self.file.read(size)

    def damaged(self, told: str) -> InputError:
        return InputError(f"{self.path}: not a model.bin of CTranslate2 that can be read: {told}.")
