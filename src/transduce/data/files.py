"""The one place that opens text: plain, gzip, zstd or xz by suffix, streamed, and only "\\n" ends a line.

A file inside a .zip is named as if the .zip were a folder: `en-sw.txt.zip/Tatoeba.en-sw.en`. A URL may be named instead
of a file (`transduce.data.remote`).

A carriage return, U+2028, U+0085 and every other separator stay in the text, so that line 7 here is line 7
for `wc -l`, for git, and for the other side of a parallel corpus.
"""

import bz2
import gzip
import hashlib
import io
import lzma
import zipfile
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from transduce.core import atomic
from transduce.core.atomic import human_size
from transduce.core.cache import recall, remember, state_of
from transduce.core.errors import InputError
from transduce.core.registry import suggest
from transduce.data.limits import DAMAGED, BoundedStream, Reads, split_lines
from transduce.data.remote import local_copy, url_of, writing_url

BLOCK_BYTES = 1 << 20
LARGEST_DOCUMENT = 1_000_000_000  # bytes
BAD_LINES_NAMED = 10
REMEMBERED = 1 << 20  # bytes of a file from which its fingerprint is remembered
PACKERS = (".gz", ".xz", ".zst")


def open_bytes(path: str | Path) -> BoundedStream:
    """The file's unpacked bytes, as far as they keep to `transduce.data.limits`; how it is packed, its suffix tells.

    Raises:
        InputError: the file is missing (the nearest name in its folder is suggested), is a folder, or
            may not be read.
    """
    path = existing_file(path)
    try:
        return _open_by_suffix(path)
    except PermissionError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from error


def suffix_of(path: Path) -> str:
    """What a file is called behind its last point, without what it is packed with: .csv of a.b.CSV.gz; or ""."""
    return next((each.lower() for each in reversed(path.suffixes) if each.lower() not in PACKERS), "")


def _open_by_suffix(path: Path) -> BoundedStream:
    if archive := archive_of(path):
        return _member(archive, path)
    return unpacking(path, path.suffix.lower())


def unpacking(path: Path, suffix: str) -> BoundedStream:
    """A file that is packed as `suffix` says; a plain one where that is none of a packer."""
    file = _CountedFile(path)
    packed = cast(BinaryIO, io.BufferedReader(file, BLOCK_BYTES))
    match suffix:
        case ".gz" | ".tgz":
            stream = cast(Reads, gzip.GzipFile(fileobj=packed, mode="rb"))
        case ".xz":
            stream = cast(Reads, lzma.open(packed))  # noqa: SIM115 (the caller's)
        case ".bz2":
            stream = cast(Reads, bz2.open(packed))  # noqa: SIM115 (the caller's)
        case ".zst":
            stream = _zstd(path, packed)
        case _:
            return BoundedStream(path, packed, sized=not path.is_fifo())
    return BoundedStream(path, stream, lambda: file.count, beneath=packed)


class _CountedFile(io.FileIO):
    """A file of which `count` bytes were read."""

    count = 0

    def readinto(self, buffer: Any) -> int:
        read = super().readinto(buffer) or 0
        self.count += read
        return read


def _zstd(path: Path, packed: BinaryIO) -> Reads:
    try:
        import pyarrow
    except ModuleNotFoundError:  # the package without torch does not bring it
        raise InputError(f"{path}: .zst needs pyarrow, which is not installed: pip install pyarrow.") from None
    return cast(Reads, pyarrow.CompressedInputStream(pyarrow.PythonFile(packed, mode="r"), "zstd"))


def existing_file(path: str | Path) -> Path:
    """`path` itself when it is a file.

    Raises:
        InputError: it is a folder, or does not exist; the nearest existing name is suggested.
    """
    path = local_copy(url) if (url := url_of(path)) else Path(path)
    if path.is_file() or path.is_fifo():
        return path
    if archive := archive_of(path):
        _member(archive, path).close()
        return path
    if path.is_dir():
        raise InputError(f"{path}: expected a file, but this is a folder.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: no such file; even the folder {path.parent} does not exist.")
    neighbours = sorted(entry.name for entry in path.parent.iterdir() if entry.is_file())
    raise InputError(f"{path}: no such file.{suggest(path.name, neighbours)}")


def lasting_file(path: str | Path) -> Path:
    """As `existing_file`, of what is read more than once.

    Raises:
        InputError: likewise; or it is a pipe.
    """
    path = existing_file(path)
    if path.is_fifo():
        raise InputError(
            f"{path}: this is a pipe, which can be read only once, but files are read several times. Save it as one."
        )
    return path


def archive_of(path: Path) -> Path | None:
    """The .zip that `path` names a file of; None where it names none."""
    return next((above for above in path.parents if above.suffix.lower() == ".zip" and above.is_file()), None)


def archived_names(archive: Path) -> list[str]:
    """The files in a .zip, in its order.

    Raises:
        InputError: it is no .zip, or a damaged one; a name is that of a file elsewhere, such as /etc/passwd.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            names = [each.filename for each in opened.infolist() if not each.is_dir()]
    except DAMAGED as error:
        raise InputError(f"{archive}: expected a .zip, but it cannot be read: {error}.") from error
    if elsewhere := [
        name for name in names if ".." in Path(name).parts or not (archive / name).is_relative_to(archive)
    ]:
        raise InputError(f"{archive}: names files outside of itself ({', '.join(elsewhere[:3])}); unpack it with care.")
    return names


def _member(archive: Path, path: Path) -> BoundedStream:
    name, names = path.relative_to(archive).as_posix(), archived_names(archive)
    if name not in names:
        raise InputError(f"{path}: {archive.name} holds no such file.{suggest(name, names)}")
    return zip_member(archive, name)


def zip_member(archive: Path, name: str) -> BoundedStream:
    """A file in a .zip. Raises InputError where it cannot be read."""
    try:
        with zipfile.ZipFile(archive) as opened:  # the file that it gives keeps it open
            packed = min(opened.getinfo(name).compress_size, archive.stat().st_size)
            return BoundedStream(archive / name, opened.open(name), lambda: packed)
    except (*DAMAGED, KeyError, RuntimeError, NotImplementedError) as error:  # encrypted; packed in an unknown way
        raise InputError(f"{archive / name}: cannot be read: {error}.") from error


def read_blocks(path: str | Path) -> Iterator[bytes]:
    """The unpacked bytes, a block at a time.

    Raises:
        InputError: missing; the packed stream is damaged, cut off, or larger than its limits.
    """
    with open_bytes(path) as stream:
        while block := stream.read(BLOCK_BYTES):
            yield block


def read_whole(path: str | Path) -> bytes:
    """All unpacked bytes of a document that cannot be read in parts. Raises InputError if there are too many."""
    blocks, size = list[bytes](), 0
    for block in read_blocks(path):
        blocks.append(block)
        size += len(block)
        if size > LARGEST_DOCUMENT:
            raise InputError(
                f"{path}: has more than {human_size(LARGEST_DOCUMENT)}, the most that is read at once. Divide it into "
                "several files."
            )
    return b"".join(blocks)


def read_raw_lines(path: str | Path) -> Iterator[bytes]:
    """Every line without its b"\\n", undecoded. A last line without b"\\n" counts. Raises InputError for a long one."""
    return split_lines(read_blocks(path), path)


def read_lines(path: str | Path) -> Iterator[str]:
    """Every line without its "\\n", as text, and without the byte order mark that some editors begin a file with.

    Raises:
        InputError: lines that are not UTF-8. All are counted and the first ten numbered (from 1); raised when
            the first is met, after the rest of the file has been looked through.
    """
    raw_lines = enumerate(read_raw_lines(path), start=1)
    for number, raw in raw_lines:
        try:
            yield (raw.removeprefix(BOM_UTF8) if number == 1 else raw).decode("utf-8")
        except UnicodeDecodeError as error:
            bad = [number] + [later for later, raw in raw_lines if not is_utf8(raw)]
            raise InputError(_not_utf8(path, bad)) from error


def text_lines(path: str | Path) -> Iterator[str]:
    """As `read_lines`, without the carriage return that Windows puts before each line's end: it is no part of a text.

    Raises:
        InputError: as `read_lines`.
    """
    return (line.removesuffix("\r") for line in read_lines(path))


def raw_text_lines(path: str | Path) -> Iterator[bytes]:
    """As `text_lines`, undecoded."""
    for number, raw in enumerate(read_raw_lines(path), start=1):
        yield (raw.removeprefix(BOM_UTF8) if number == 1 else raw).removesuffix(b"\r")


def is_utf8(raw: bytes) -> bool:
    """Whether the bytes are valid UTF-8."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _not_utf8(path: str | Path, bad: list[int]) -> str:
    named = ", ".join(map(str, bad[:BAD_LINES_NAMED])) + (", ..." if len(bad) > BAD_LINES_NAMED else "")
    lines = "1 line is" if len(bad) == 1 else f"{len(bad)} lines are"
    return f"{path}: {lines} not UTF-8 (line {named}). {_conversion(Path(path))}"


def _conversion(path: Path) -> str:
    """How to convert a file; its byte order mark tells UTF-16."""
    begins = next(read_blocks(path), b"") if not path.is_fifo() else b""
    if begins[:2] in (BOM_UTF16_LE, BOM_UTF16_BE):
        return "It is UTF-16: convert it (iconv -f UTF-16 -t UTF-8 OLD > NEW)."
    if b"\0" in begins:
        return "It looks like a binary file (it has null bytes); expected lines of text in UTF-8."
    return (
        "Convert it from its encoding (such as iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW), or write a cleaned copy with "
        "transduce doctor."
    )


def count_lines(path: str | Path) -> int:
    """How many lines `read_raw_lines` would give."""
    ends, last = 0, b"\n"
    for block in read_blocks(path):
        ends, last = ends + block.count(b"\n"), block[-1:]
    return ends + (last != b"\n")


class FileLines(Collection[str]):
    """The lines of a file, read whenever they are gone through, as `text_lines` does. Raises InputError likewise."""

    def __init__(self, path: Path) -> None:
        self._path, self._count = path, count_lines(path)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return text_lines(self._path)

    def __contains__(self, line: object) -> bool:
        return any(each == line for each in self)


def fingerprint(path: str | Path) -> str:
    """SHA-256, in hex, of the bytes on disk (compressed ones where the file is compressed).

    That of a big file is remembered as long as size, inode and times of the file stay as they are.
    """
    path = lasting_file(path)
    if archive_of(path):
        return _digest(read_blocks(path))
    state = state_of(path)
    big = state[0] >= REMEMBERED
    if big and (known := recall("fingerprints", path)):
        return str(known)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if big:
        remember("fingerprints", path, found, state)
    return found


def _digest(blocks: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


@contextmanager
def writing(path: str | Path) -> Iterator[BinaryIO]:
    """A stream that is compressed by `path`'s suffix and becomes `path` only when all was written.

    The bytes depend on the content alone (no time stamp inside). Raises as `transduce.core.atomic.writing` does.
    """
    url, path = url_of(path), Path(path)
    with writing_url(url) if url else atomic.writing(path) as file, _packer(file, path.suffix.lower()) as stream:
        yield stream


@contextmanager
def _packer(file: BinaryIO, suffix: str) -> Iterator[BinaryIO]:
    match suffix:
        case ".gz":
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as stream:
                yield cast(BinaryIO, stream)
        case ".xz":
            with lzma.LZMAFile(file, "wb") as stream:
                yield cast(BinaryIO, stream)
        case ".zst":
            import pyarrow

            with pyarrow.CompressedOutputStream(file, "zstd") as stream:
                yield cast(BinaryIO, stream)
        case _:
            yield file
