"""Whether bytes are MPEG audio (MP3): libraries take raw samples for it where the first two look like its mark."""

from typing import BinaryIO

HEADER = 4  # bytes
SAME = 0xFFFE0C00  # bits of a header that no frame of a file changes: the mark, version, layer and rate
RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}  # by version
KILOBITS = {  # by whether the version is 1, and the layer's bits: II, III; nobody writes layer I
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 1): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 1): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}


def is_mpeg(file: BinaryIO) -> bool:
    """Whether a sound begins with a frame of MPEG audio, behind which is the next one, or the end."""
    start = _behind_tag(_at(file, 0, 10))
    first = _at(file, start, HEADER)
    following = _at(file, start + _length(first), HEADER)
    if not _length(first) or not following:
        return _length(first) > 0
    return _length(following) > 0 and _number(first) & SAME == _number(following) & SAME


def _at(file: BinaryIO, place: int, size: int) -> bytes:
    file.seek(place)
    return file.read(size)


def _behind_tag(begins: bytes) -> int:
    """Where sound begins: an ID3 tag says how long it is, in four times seven bits."""
    if not begins.startswith(b"ID3") or len(begins) < 10:
        return 0
    size = 0
    for byte in begins[6:10]:
        size = size << 7 | byte & 0x7F
    return 10 + size


def _length(header: bytes) -> int:
    """How many bytes the frame has that begins with these; 0 = none does."""
    number = _number(header)
    version, layer = number >> 19 & 3, number >> 17 & 3
    bits, rate, padding = number >> 12 & 15, number >> 10 & 3, number >> 9 & 1
    if (
        len(header) < HEADER
        or number >> 21 != 0x7FF
        or version == 1
        or layer not in (1, 2)
        or bits in (0, 15)
        or rate == 3
    ):
        return 0
    per_second = 1000 * KILOBITS[version == 3, layer][bits - 1]
    slots = 72 if layer == 1 and version != 3 else 144
    return slots * per_second // RATES[version][rate] + padding


def _number(header: bytes) -> int:
    return int.from_bytes(header, "big")
