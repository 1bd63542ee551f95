"""Files in tar archives, and packed files as plain ones: read where they lie, so that memory holds none of it.

What is packed cannot be read from the middle. It is unpacked once into a file without a name in the cache folder, which
goes when nothing reads it any more.
"""

import mmap
import tarfile
import tempfile
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO, cast

from transduce.core.cache import cache_folder
from transduce.core.errors import InputError, TransduceError
from transduce.data.files import BLOCK_BYTES, existing_file, unpacking
from transduce.data.limits import BoundedStream

MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\x00": ".xz", b"BZh": ".bz2", b"\x28\xb5\x2f\xfd": ".zst"}


class TarArchive:
    """The files in a tar archive by their paths there, in its order.

    Other threads, and processes forked from this one, may read them, too.
    """

    def __init__(self, path: Path) -> None:
        file = plain_file(path, _packer_of(path))
        try:
            with file, tarfile.open(fileobj=file, mode="r:") as archive:
                files = [each for each in archive if each.isreg() and not each.issparse()]
                self._places = {each.name: (each.offset_data, each.size) for each in files}
                self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (tarfile.TarError, OSError, EOFError, ValueError) as error:
            raise InputError(f"{path}: not a tar archive that can be read: {error}") from None
        if short := [name for name, (start, size) in self._places.items() if start + size > len(self._content)]:
            raise InputError(f"{path}: not a tar archive that can be read: it is cut off within {short[0]}.")

    @property
    def names(self) -> Collection[str]:
        return self._places.keys()

    def read(self, name: str) -> bytes:
        start, size = self._places[name]
        return self._content[start : start + size]


def tar_archive(path: Path) -> TarArchive:
    """The archive that lies at a path; opened once while it stays as it is.

    Raises:
        InputError: it is none, or unpacks to more than the limits.
        TransduceError: the disk is full.
    """
    path = existing_file(path)
    return _opened(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=2)
def _opened(path: Path, changed: int) -> TarArchive:
    return TarArchive(path)


def plain_file(path: Path, packer: str) -> BinaryIO:
    """A file, or what it unpacks to in a file without a name; packer: the suffix that says how it is packed, or "".

    Raises: as `tar_archive`.
    """
    if not packer:
        return path.open("rb")
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    file = cast(BinaryIO, tempfile.TemporaryFile(dir=folder, prefix="unpacked-"))  # noqa: SIM115 (the caller's)
    with unpacking(path, packer) as stream:
        _copy(stream, file, path, folder)
    file.seek(0)
    return file


def _copy(stream: BoundedStream, file: BinaryIO, path: Path, folder: Path) -> None:
    while block := stream.read(BLOCK_BYTES):
        try:
            file.write(block)
            file.flush()
        except OSError as error:
            raise TransduceError(
                f"{path}: cannot be unpacked in {folder}: {error.strerror}. Set TRANSDUCE_CACHE to a folder with more "
                "room."
            ) from error


def _packer_of(path: Path) -> str:
    with path.open("rb") as file:
        begins = file.read(max(map(len, MAGIC)))
    return next((suffix for magic, suffix in MAGIC.items() if begins.startswith(magic)), "")
