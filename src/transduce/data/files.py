"""The one place that opens text: plain, gzip, zstd or xz by suffix, streamed, and only "\\n" ends a line.

A file inside a .zip is named as if the .zip were a folder: `en-sw.txt.zip/Tatoeba.en-sw.en`. A URL may be named instead
of a file (`transduce.data.remote`).

A carriage return, U+2028, U+0085 and every other separator stay in the text, so that line 7 here is line 7
for `wc -l`, for git, and for the other side of a parallel corpus.
"""

import gzip
import hashlib
import io
import lzma
import zipfile
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from transduce.core import atomic
from transduce.core.cache import recall, remember, state_of
from transduce.core.errors import InputError
from transduce.core.registry import suggest
from transduce.data.remote import local_copy, url_of, writing_url

BLOCK_BYTES = 1 << 20
BAD_LINES_NAMED = 10
REMEMBERED = 1 << 20  # bytes of a file from which its fingerprint is remembered
PACKERS = (".gz", ".xz", ".zst")
TABLES = (".tsv", ".csv", ".jsonl", ".tmx")  # hold both sides of pairs in columns
DAMAGED = (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


def open_bytes(path: str | Path) -> BinaryIO:
    """The file's decompressed bytes as a stream; `.gz`, `.zst` and `.xz` are told by suffix.

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


def _open_by_suffix(path: Path) -> BinaryIO:
    if archive := archive_of(path):
        return _member(archive, path)
    match path.suffix.lower():
        case ".gz":
            return cast(BinaryIO, gzip.open(path, "rb"))
        case ".xz":
            return cast(BinaryIO, lzma.open(path, "rb"))
        case ".zst":
            try:
                import pyarrow
            except ModuleNotFoundError:  # the package without torch does not bring it
                raise InputError(f"{path}: .zst needs pyarrow, which is not installed: pip install pyarrow.") from None

            return cast(BinaryIO, io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd")))
        case _:
            return path.open("rb")


def existing_file(path: str | Path) -> Path:
    """`path` itself when it is a file.

    Raises:
        InputError: it is a folder, or does not exist; the nearest existing name is suggested.
    """
    if url := url_of(path):
        return local_copy(url)
    path = Path(path)
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


def _member(archive: Path, path: Path) -> BinaryIO:
    name, names = path.relative_to(archive).as_posix(), archived_names(archive)
    if name not in names:
        raise InputError(f"{path}: {archive.name} holds no such file.{suggest(name, names)}")
    try:
        with zipfile.ZipFile(archive) as opened:  # the file that it gives keeps it open
            return cast(BinaryIO, opened.open(name))
    except (*DAMAGED, RuntimeError, NotImplementedError) as error:  # encrypted; packed in an unknown way
        raise InputError(f"{path}: cannot be read: {error}.") from error


def read_blocks(path: str | Path) -> Iterator[bytes]:
    """The decompressed bytes, a block at a time.

    Raises:
        InputError: missing, or the compressed stream is damaged or cut off.
    """
    with open_bytes(path) as stream:
        while block := _next_block(stream, path):
            yield block


def _next_block(stream: BinaryIO, path: str | Path) -> bytes:
    try:
        return stream.read(BLOCK_BYTES)
    except DAMAGED as error:
        raise InputError(
            f"{path}: cannot be read to the end: it is damaged or cut off ({error}). Get or compress it again."
        ) from error


def read_raw_lines(path: str | Path) -> Iterator[bytes]:
    """Every line without its b"\\n", undecoded. A last line without b"\\n" counts."""
    pieces: list[bytes] = []
    for block in read_blocks(path):
        head, *rest = block.split(b"\n")
        pieces.append(head)
        if rest:
            yield b"".join(pieces)
            yield from rest[:-1]
            pieces = [rest[-1]]
    if last := b"".join(pieces):
        yield last


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
    begins = next(read_blocks(path), b"")[:2] if not path.is_fifo() else b""
    if begins in (BOM_UTF16_LE, BOM_UTF16_BE):
        return "It is UTF-16: convert it (iconv -f UTF-16 -t UTF-8 OLD > NEW)."
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
    if archive := archive_of(path):
        with _member(archive, path) as stream:
            return hashlib.file_digest(cast(io.BufferedReader, stream), "sha256").hexdigest()
    state = state_of(path)
    big = state[0] >= REMEMBERED
    if big and (known := recall("fingerprints", path)):
        return str(known)
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if big:
        remember("fingerprints", path, found, state)
    return found


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
