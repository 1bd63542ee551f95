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
import tarfile
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.extras import library
from transduce.data.files import existing_file, read_blocks
from transduce.data.remote import located

ARCHIVE = re.compile(r"(.+\.(?:tar|tar\.gz|tgz|tar\.xz|tar\.bz2)):(.+)")
ARRAY = re.compile(r"(.+\.npy(?:\.gz|\.zst|\.xz)?)(?::(\d+):(\d+))?")
DATA = "data:"
JOIN = " + "  # between the names of recordings that are one utterance
SHOWN = 80  # characters of a name in a message
MOST_RATE = 384_000  # samples a second of an upload: no recorder takes more
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
    content = _bytes(name, root)
    try:
        with soundfile.SoundFile(io.BytesIO(content)) as sound:
            rate = int(sound.samplerate)
            if seconds is not None:
                _check(sound.frames, rate, name, seconds)
            parts = sound.blocks(max(1, BLOCK // sound.channels), dtype="float32", always_2d=True)
            blocks = [torch.from_numpy(part).mean(1) for part in parts]
    except (soundfile.LibsndfileError, TypeError) as error:
        raise InputError(f"{name[:SHOWN]}: not a sound file that can be read: {error}") from None
    return torch.cat(blocks) if blocks else torch.zeros(0), rate


def _check(samples: int, rate: int, name: str, seconds: float) -> None:
    """Raises InputError for an upload that is too long, by its header, before memory is taken for it."""
    if not 1 <= rate <= MOST_RATE:
        raise InputError(f"{name[:SHOWN]}: {rate:,} samples a second; expected at most {MOST_RATE:,}.")
    if samples > seconds * rate:
        raise InputError(f"{name[:SHOWN]}: longer than the {seconds:g} seconds that this server hears.")


def read_features(name: str, root: Path) -> NDArray[np.float32]:
    """(S, F) rows of an array.

    Raises:
        InputError: no such file, no array of two dimensions, or not so many rows.
    """
    found = ARRAY.fullmatch(name)
    if found is None:
        raise InputError(f"{name[:SHOWN]}: expected an array as FILE.npy or FILE.npy:START:FRAMES.")
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
    return list(_archive(path, existing_file(path).stat().st_mtime_ns))


def _bytes(name: str, root: Path) -> bytes:
    if name.startswith(DATA):
        return _decoded(name)
    if found := ARCHIVE.fullmatch(name):
        path, member = existing_file(located(root, found[1])), found[2]
        files = _archive(path, path.stat().st_mtime_ns)
        if member in files:
            return files[member]
        named = [content for key, content in files.items() if key.rpartition("/")[2] == member]
        if len(named) != 1:
            raise InputError(f"{name}: the archive has {len(named) or 'no'} files of this name; expected one.")
        return named[0]
    return existing_file(located(root, name)).read_bytes()


def _decoded(name: str) -> bytes:
    head, comma, content = name.partition(",")
    if not comma or not head.endswith(";base64"):
        raise InputError(f"{name[:SHOWN]}: expected data:audio/wav;base64,..; got another kind of data: URL.")
    try:
        return base64.b64decode(content, validate=True)
    except binascii.Error as error:
        raise InputError(f"{name[:SHOWN]}: not base64: {error}.") from None


@lru_cache(maxsize=2)
def _archive(path: Path, changed: int) -> dict[str, bytes]:
    """The files in it by path; a member of a compressed archive alone cannot be reached faster."""
    try:
        with tarfile.open(path) as archive:
            files = [each for each in archive if each.isfile()]
            return {each.name: archive.extractfile(each).read() for each in files}  # type: ignore[union-attr]
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InputError(f"{path}: not a tar archive that can be read: {error}") from None


@lru_cache(maxsize=4)
def _array(path: Path, changed: int) -> NDArray[np.generic]:
    existing_file(path)
    try:
        if path.suffix == ".npy":
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        else:
            array = np.load(io.BytesIO(b"".join(read_blocks(path))), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise InputError(f"{path}: not a numpy array that can be read: {error}") from None
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(f"{path}: expected numbers (frames, features); got {array.dtype} of shape {array.shape}.")
    return array
