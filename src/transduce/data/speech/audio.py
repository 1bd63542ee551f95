"""Sound files and arrays of features, by the names that people write.

    recordings/7_theo_3.wav                a sound file: WAV, FLAC, Ogg and what else soundfile reads
    recordings.tar.gz:7_theo_3.wav         one in a tar archive, by its path there or by its name
    features.npy:1200:350                  350 rows of an array from row 1200 on; without numbers, all of it
    data:audio/wav;base64,UklGR...         the bytes of a sound file themselves
    7_theo_3.wav + 2_theo_1.wav            one after the other

`.npy` may be compressed (.npy.gz). Shapes: N samples, S frames, F features.
"""

import base64
import binascii
import io
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.data.files import PACKERS, existing_file, lasting_file
from transduce.data.remote import located
from transduce.data.speech.archives import TarArchive, plain_file, tar_archive
from transduce.data.speech.uploads import DATA, called

HEADER = 4  # bytes
SAME = 0xFFFE0C00  # bits of a header that no frame of a file changes: the mark, version, layer and rate
RATES = {3: (44_100, 48_000, 32_000), 2: (22_050, 24_000, 16_000), 0: (11_025, 12_000, 8_000)}  # by version
KILOBITS = {  # by whether the version is 1, and the layer's bits: II, III; nobody writes layer I
    (True, 2): (32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (True, 1): (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (False, 2): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
    (False, 1): (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}

ARCHIVE = re.compile(r"(.+\.(?:tar|tar\.gz|tgz|tar\.xz|tar\.bz2)):(.+)")
ARRAY = re.compile(r"(.+\.npy(?:\.gz|\.zst|\.xz)?)(?::(\d+):(\d+))?")
JOIN = " + "  # between the names of recordings that are one utterance
MOST_RATE = 384_000  # samples a second of an upload: no recorder takes more
MOST_SAMPLES = 1 << 28  # of a recording: four hours and a half at 16 kHz
BEGINNING = 1024  # bytes of a file that cannot be read, by which it is told what it is
BLOCK = 65_536  # numbers read at once, of all channels


def name_of(text: str) -> str:
    """What people call a recording: its name; the bytes of a sound file have none."""
    return "" if text.startswith(DATA) else text


def read_samples(name: str, root: Path, seconds: float | None = None) -> tuple[Tensor, int]:
    """(N,) samples between -1 and 1, channels averaged, and their rate.

    Raises:
        InputError: there is no such file, or it is no sound; it is longer than `seconds`; soundfile is not installed.
    """
    soundfile = library("soundfile", "reading sound files", "speech")
    begins = b""
    try:
        with _opened(name, root) as file:
            mpeg, begins = _looked_at(file)
            with soundfile.SoundFile(file) as sound:
                if sound.format == "MP3" and not mpeg:
                    raise _no_sound(name, "no format is recognised", begins)
                rate = int(sound.samplerate)
                if seconds is not None:
                    _check(sound.frames, rate, name, seconds)
                return _averaged(name, sound, seconds), rate
    except InputError:
        raise
    except Exception as error:  # soundfile has many ways to fail, such as TypeError of .raw
        raise _no_sound(name, str(getattr(error, "error_string", error)), begins) from None


def _looked_at(file: BinaryIO) -> tuple[bool, bytes]:
    """Whether it is MPEG audio, and how it begins; it is then at its start again."""
    mpeg = is_mpeg(file)
    file.seek(0)
    begins = file.read(BEGINNING)
    file.seek(0)
    return mpeg, begins


def _no_sound(name: str, reason: str, begins: bytes) -> InputError:
    """What to do depends on what the file holds instead."""
    if not begins:
        return InputError(f"{called(name)}: not a sound file: it is empty.")
    if begins.isascii() and b"\0" not in begins:
        return InputError(f"{called(name)}: not a sound file, but text. Expected a recording, such as a .wav or .flac.")
    return InputError(
        f"{called(name)}: not a sound file that can be read ({reason.rstrip('.')}). If it holds bare samples, "
        "write them with a header, as in: sox -t raw -r RATE -e signed -b 16 -c 1 OLD NEW.wav, at their RATE."
    )


def _averaged(name: str, sound: Any, seconds: float | None) -> Tensor:
    """(N,) samples of all channels. Some formats cannot be sought: they are read until nothing comes."""
    blocks, size = list[Tensor](), 0
    while len(part := sound.read(max(1, BLOCK // sound.channels), dtype="float32", always_2d=True)):
        blocks.append(torch.from_numpy(part).mean(1))
        size += len(part)
        if seconds is not None:
            _check(size, sound.samplerate, name, seconds)  # its header may say less
        if size > MOST_SAMPLES:
            raise InputError(f"{called(name)}: has more than {MOST_SAMPLES:,} samples. Cut it into utterances.")
    return torch.cat(blocks) if blocks else torch.zeros(0)


def _check(samples: int, rate: int, name: str, seconds: float) -> None:
    """Raises InputError for an upload that is too long, by its header, before memory is taken for it."""
    if not 1 <= rate <= MOST_RATE:
        raise InputError(f"{called(name)}: {rate:,} samples a second; expected at most {MOST_RATE:,}.")
    if samples > seconds * rate:
        raise InputError(f"{called(name)}: longer than the {seconds:g} seconds that this server hears.")


def read_features(name: str, root: Path) -> NDArray[np.float32]:
    """(S, F) rows of an array.

    Raises:
        InputError: no such file, no array of two dimensions, or not so many rows.
    """
    found = ARRAY.fullmatch(name)
    if found is None:
        raise InputError(f"{called(name)}: expected an array as FILE.npy or FILE.npy:START:FRAMES.")
    path, start, frames = found.groups()
    array = _array(located(root, path), located(root, path).stat().st_mtime_ns if located(root, path).exists() else 0)
    if start is None:
        return array.astype(np.float32)
    first, count = int(start), int(frames)
    if first + count > len(array):
        raise InputError(f"{name}: the array has {len(array):,} rows; expected at least {first + count:,}.")
    return array[first : first + count].astype(np.float32)


def members(path: Path) -> list[str]:
    """The paths of the files in a tar archive, in its order. Raises InputError where it is none."""
    return [*tar_archive(path).names]


def _opened(name: str, root: Path) -> BinaryIO:
    """The bytes of a sound file."""
    if name.startswith(DATA):
        return io.BytesIO(_decoded(name))
    if found := ARCHIVE.fullmatch(name):
        return io.BytesIO(_of_archive(name, tar_archive(located(root, found[1])), found[2]))
    return lasting_file(located(root, name)).open("rb")


def _decoded(name: str) -> bytes:
    head, comma, content = name.partition(",")
    if not comma or not head.endswith(";base64"):
        raise InputError(f"{called(name)}: expected data:audio/wav;base64,..; got another kind of data: URL.")
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error as error:
        raise InputError(f"{called(name)}: not base64: {error}.") from None


def _of_archive(name: str, archive: TarArchive, member: str) -> bytes:
    if member in archive.names:
        return archive.read(member)
    named = [key for key in archive.names if key.rpartition("/")[2] == member]
    if len(named) != 1:
        raise InputError(f"{name}: the archive has {len(named) or 'no'} files of this name; expected one.")
    return archive.read(named[0])


@lru_cache(maxsize=4)
def _array(path: Path, changed: int) -> NDArray[np.generic]:
    """An array that stays on disk."""
    packer = path.suffix.lower() if path.suffix.lower() in PACKERS else ""
    with plain_file(existing_file(path), packer) as file:
        try:
            shape, by_columns, kind = _header(file)
            if len(shape) != 2 or kind.kind not in "fiu":
                raise InputError(f"{path}: expected numbers (frames, features); got {kind} of shape {shape}.")
            if 0 in shape:
                return np.zeros(shape, kind)
            return np.memmap(file, kind, "r", file.tell(), shape, "F" if by_columns else "C")
        except (ValueError, EOFError, OSError, OverflowError) as error:
            raise InputError(f"{path}: not a numpy array that can be read: {error}") from None


def _header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """The shape of an .npy, whether it lies column by column, and its numbers; the file is then where these begin."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)


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
