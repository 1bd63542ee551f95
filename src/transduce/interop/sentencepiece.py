"""Our subword tokenizers as files of SentencePiece, written as the protocol buffer that its library reads.

    ModelProto      1 pieces (repeated), 2 trainer_spec, 3 normalizer_spec
    SentencePiece   1 piece, 2 score (float), 3 type
    TrainerSpec     3 model_type, 35 byte_fallback, 40 unk_id, 41 bos_id, 42 eos_id, 43 pad_id, 45 .. 48 their pieces
    NormalizerSpec  1 name, 2 precompiled_charsmap, 3 add_dummy_prefix, 4 remove_extra_whitespaces, 5 escape_whitespaces

(sentencepiece_model.proto of SentencePiece 0.2.) Ids are those of our tokenizer. A tokenizer that was read from a model
of SentencePiece (`transduce.interop.import_tokenizer`) keeps its table of characters and its bytes. What SentencePiece
cuts otherwise than the tokenizers that we train:

- it has no NFC here, and leaves control characters as they are: a caller normalizes text before;
- it takes several spaces for one;
- a text that begins with punctuation: a piece "▁(" is written as unused, as ours never cuts one inside a text;
- several unknown characters side by side are one unknown, where ours begins anew at a space or punctuation;
- BPE: it merges any two pieces whose union is a piece, where ours has a list of pairs. Unigram has no such difference.

SentencePiece's model files, read without its library; see `transduce.interop.sentencepiece` for their fields.

A file is a protocol buffer: fields one after the other, each with a number and a wire type, so that whatever is not
known is skipped (https://protobuf.dev/programming-guides/encoding).
"""

import base64
import json
import re
import struct
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from transduce.core.bounded_file import bounded_bytes
from transduce.core.errors import InputError
from transduce.data.tokenizers.tokenizer import Tokenizer

FIXED64 = 1  # a wire type
LARGEST, MOST = 100_000_000, 1_000_000  # bytes, pieces
UNIGRAM, BPE = 1, 2  # kinds of model

SPACE = "▁"
BYTE = re.compile("<0x[0-9A-F]{2}>")
KINDS = {"Unigram": 1, "BPE": 2}
VARINT, FIXED32, BYTES = 0, 5, 2  # wire types


class Kind(IntEnum):
    """Of a piece."""

    NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6


def sentencepiece_model(tokenizer: Tokenizer, size: int | None = None) -> bytes:
    """The contents of a `.model` file. size: how many tokens go into it; None = all.

    Raises:
        InputError: the tokenizer is of no kind that SentencePiece has.
    """
    table = json.loads(tokenizer.to_json())
    kind, decoders = table["model"].get("type"), _types(table.get("decoder"))
    if kind not in KINDS or decoders not in (["Metaspace"], ["ByteFallback", "Metaspace"]):
        raise InputError(
            f"SentencePiece has no tokenizer of this kind ({kind}, decoder {' and '.join(decoders)}): train with "
            'tokenizer.kind = "unigram" or "bpe".'
        )
    if _lowers(tokenizer):
        raise InputError("SentencePiece has no lower-casing here: train with tokenizer.lowercase = false.")
    scores, whole = _scores(table["model"], kind), _types(table.get("pre_tokenizer")) == ["Metaspace"]
    pieces = b"".join(
        _field(1, _field(1, name.encode()) + _float(2, score) + _number(3, _kind(tokenizer, index, name, whole)))
        for index, (name, score) in enumerate(islice(_rows(tokenizer, scores), size))
    )
    return pieces + _field(2, _trainer(tokenizer, KINDS[kind], len(decoders) > 1)) + _field(3, _normalizer(table))


def _types(part: dict[str, Any] | None) -> list[str]:
    """Of the steps of a tokenizer's part."""
    steps = part or {}
    each = next((steps[key] for key in ("decoders", "pretokenizers") if key in steps), [steps])
    return [str(step.get("type")) for step in each]


def _lowers(tokenizer: Tokenizer) -> bool:
    normalizer = tokenizer._inner.normalizer
    return normalizer is not None and normalizer.normalize_str("A") == "a"


def _scores(model: dict[str, Any], kind: str) -> dict[str, float]:
    """By piece: its log-probability, or the order in which BPE merges; single characters need none."""
    if kind == "Unigram":
        return dict(model["vocab"])
    merges = (each.split(" ") if isinstance(each, str) else each for each in model["merges"])
    ranks: dict[str, float] = {}
    for rank, (left, right) in enumerate(merges):
        ranks.setdefault(left + right, -float(rank))
    return ranks


def _rows(tokenizer: Tokenizer, scores: dict[str, float]) -> Iterable[tuple[str, float]]:
    least = min(scores.values(), default=0.0) - 1
    for index in range(tokenizer.size):
        name = tokenizer._inner.id_to_token(index)
        yield (f"<unused {index}>", least) if name is None else (name, scores.get(name, least))


def _kind(tokenizer: Tokenizer, index: int, name: str, whole: bool) -> Kind:
    """whole: whether pieces go on behind punctuation."""
    if index == tokenizer.unknown:
        return Kind.UNKNOWN
    if index in (tokenizer.pad, tokenizer.start, tokenizer.end):
        return Kind.CONTROL
    if name in tokenizer.added:
        return Kind.USER_DEFINED
    if BYTE.fullmatch(name):
        return Kind.BYTE
    unused = tokenizer._inner.id_to_token(index) is None or (_begins_a_text(name) and not whole)
    return Kind.UNUSED if unused else Kind.NORMAL


def _begins_a_text(name: str) -> bool:
    """Whether ours cuts this piece at the beginning of a text alone: a space, then punctuation."""
    return len(name) > 1 and name[0] == SPACE and _is_punctuation(name[1])


def _is_punctuation(character: str) -> bool:
    ascii_symbol = character.isascii() and character.isprintable() and not character.isalnum() and character != " "
    return ascii_symbol or unicodedata.category(character).startswith("P")


def _trainer(tokenizer: Tokenizer, kind: int, bytewise: bool) -> bytes:
    ids = (tokenizer.unknown, tokenizer.start, tokenizer.end, tokenizer.pad)
    numbered = b"".join(_number(40 + place, index) for place, index in enumerate(ids))
    named = b"".join(_field(45 + place, name.encode()) for place, name in enumerate(tokenizer.tokens(ids)))
    return _number(3, kind) + (_number(35, 1) if bytewise else b"") + numbered + named


def _normalizer(table: dict[str, Any]) -> bytes:
    steps = (table.get("normalizer") or {}).get("normalizers", [])
    charsmap = next((step["precompiled_charsmap"] for step in steps if step["type"] == "Precompiled"), "")
    characters = _field(2, base64.b64decode(charsmap)) if charsmap else b""
    return _field(1, b"identity") + characters + _number(3, 1) + _number(4, 1) + _number(5, 1)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | VARINT) + _varint(value)


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | FIXED32) + struct.pack("<f", value)


def _field(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | BYTES) + _varint(len(content)) + content


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
        key, at = _read_varint(content, at)
        wire = key & 7
        if wire == VARINT:
            value, at = _read_varint(content, at)
            yield key >> 3, value
            continue
        if wire == BYTES:
            length, at = _read_varint(content, at)
        elif wire in (FIXED32, FIXED64):
            length = 4 if wire == FIXED32 else 8
        else:
            raise ValueError(f"a field of an unknown kind ({wire}) at byte {at}")
        if at + length > len(content):
            raise ValueError(f"it ends inside the field at byte {at}")
        yield key >> 3, content[at : at + length]
        at += length


def _read_varint(content: bytes, at: int) -> tuple[int, int]:
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
