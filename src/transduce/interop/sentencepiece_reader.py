"""SentencePiece's model files, read without its library; see `transduce.interop.sentencepiece` for their fields.

A file is a protocol buffer: fields one after the other, each with a number and a wire type, so that whatever is not
known is skipped (https://protobuf.dev/programming-guides/encoding).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from transduce.core.bounded_file import bounded_bytes
from transduce.core.errors import InputError
from transduce.interop.sentencepiece import BYTES, FIXED32, VARINT, Kind

FIXED64 = 1  # a wire type
LARGEST, MOST = 100_000_000, 1_000_000  # bytes, pieces
UNIGRAM, BPE = 1, 2  # kinds of model


class ScoredPiece(NamedTuple):
    """What a text is cut into. score: its log-probability, or where BPE merges it: the higher, the earlier."""

    text: str
    score: float
    kind: Kind


@dataclass(frozen=True)
class SentencePieceModel:
    """The contents of a file.

    pieces: by their ids. kind: `UNIGRAM` or `BPE`. unknown: an id. charsmap: the table of its normalizer; b"" = none.
    prefix: whether a space is put before a text. trims: whether spaces at the ends are dropped, and several are one.
    """

    pieces: list[ScoredPiece]
    kind: int
    unknown: int
    byte_fallback: bool
    charsmap: bytes
    prefix: bool
    trims: bool


def read_sentencepiece(path: Path) -> SentencePieceModel:
    """The model in a `.spm` or `.model` file.

    Raises:
        InputError: there is no such file; it is none of SentencePiece's; it cuts texts as we cannot.
    """
    content = bounded_bytes(path, LARGEST)
    try:
        model = _model(content)
    except (ValueError, struct.error) as error:
        raise InputError(f"{path}: expected a model file of SentencePiece, but it cannot be read: {error}.") from error
    if problems := list(_problems(model)):
        raise InputError(f"{path}: {problem}" for problem in problems)
    return model


def _problems(model: SentencePieceModel) -> Iterator[str]:
    if model.kind not in (UNIGRAM, BPE):
        yield "it cuts texts into words or characters; expected pieces (unigram or BPE)."
    if not model.pieces:
        yield "it has no pieces."
    elif not 0 <= model.unknown < len(model.pieces):
        yield f"its unknown piece is number {model.unknown} of {len(model.pieces):,}."


def _model(content: bytes) -> SentencePieceModel:
    pieces: list[ScoredPiece] = []
    trainer: dict[int, int | bytes] = {}
    normalizer: dict[int, int | bytes] = {}
    for field, value in _fields(content):
        if field == 1 and isinstance(value, bytes):
            pieces.append(_piece(value))
            if len(pieces) > MOST:
                raise ValueError(f"more than {MOST:,} pieces")
        elif field == 2 and isinstance(value, bytes):
            trainer = dict(_fields(value))
        elif field == 3 and isinstance(value, bytes):
            normalizer = dict(_fields(value))
    if trainer.get(24):
        raise ValueError("it treats white space as the end of a word")
    charsmap = normalizer.get(2, b"")
    return SentencePieceModel(
        pieces,
        int(trainer.get(3, UNIGRAM)),
        next((place for place, piece in enumerate(pieces) if piece.kind == Kind.UNKNOWN), -1),
        bool(trainer.get(35, 0)),
        charsmap if isinstance(charsmap, bytes) else b"",
        bool(normalizer.get(3, 1)),
        bool(normalizer.get(4, 1)),
    )


def _piece(content: bytes) -> ScoredPiece:
    text, score, kind = "", 0.0, Kind.NORMAL
    for field, value in _fields(content):
        if field == 1 and isinstance(value, bytes):
            text = value.decode("utf-8")
        elif field == 2 and isinstance(value, bytes):
            (score,) = struct.unpack("<f", value)
        elif field == 3 and isinstance(value, int):
            kind = Kind(value)
    return ScoredPiece(text, score, kind)


def _fields(content: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The number and the value of each field: a whole number, or the bytes of anything else."""
    at = 0
    while at < len(content):
        key, at = _varint(content, at)
        wire = key & 7
        if wire == VARINT:
            value, at = _varint(content, at)
            yield key >> 3, value
            continue
        if wire == BYTES:
            length, at = _varint(content, at)
        elif wire in (FIXED32, FIXED64):
            length = 4 if wire == FIXED32 else 8
        else:
            raise ValueError(f"a field of an unknown kind ({wire}) at byte {at}")
        if at + length > len(content):
            raise ValueError(f"it ends inside the field at byte {at}")
        yield key >> 3, content[at : at + length]
        at += length


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """The whole number at this place, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(content):
            break
        byte = content[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise ValueError(f"it ends inside a number at byte {at}")
