"""What does not say its size is counted while it is read: lines, packed files, pipes, standard input."""

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from transduce.cli.text import read_source
from transduce.core.errors import InputError
from transduce.data import limits
from transduce.data.corpus import read_pairs
from transduce.data.files import fingerprint, read_blocks, read_raw_lines, read_whole
from transduce.data.formats.csv import Csv
from transduce.data.formats.jsonl import Jsonl
from transduce.data.formats.tmx import tmx_languages
from transduce.data.formats.tsv import Tsv
from transduce.data.pairs.pair_files import PairFiles

MEGABYTE = 1_000_000
LINE = b"a" * 99 + b"\n"


def zstd(plain: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(plain)
    return bytes(sink.getvalue())


def in_zip(plain: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.txt", plain)
    return content.getvalue()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "a.gz": gzip.compress,
    "a.xz": lzma.compress,
    "a.bz2": bz2.compress,
    "a.zst": zstd,
    "a.zip": in_zip,
}


def packed(folder: Path, name: str, plain: bytes) -> Path:
    path = folder / name
    path.write_bytes(PACKERS[name](plain))
    return path / "a.txt" if name == "a.zip" else path


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line may have a megabyte, what does not say its size four, of which one may be packed as well as it can."""
    monkeypatch.setenv("TRANSDUCE_MAX_LINE_MB", "1")
    monkeypatch.setenv("TRANSDUCE_MAX_STREAM_GB", "0.004")
    monkeypatch.setattr(limits, "REPETITIVE", MEGABYTE)


@pytest.mark.parametrize("name", PACKERS)
def test_what_unpacks_to_far_more_than_itself_is_refused(name: str, tmp_path: Path, low: None) -> None:
    with pytest.raises(InputError, match=r"a\.\w+.*: unpacks to more than 200 times its size"):
        list(read_blocks(packed(tmp_path, name, bytes(3 * MEGABYTE))))


@pytest.mark.parametrize("name", PACKERS)
def test_what_unpacks_to_more_than_the_limit_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSDUCE_MAX_STREAM_GB", "0.001")
    path = packed(tmp_path, name, os.urandom(MEGABYTE + 100_000))
    wanted = r"more than 1\.0 MB.*unpack it yourself.*TRANSDUCE_MAX_STREAM_GB \(now 0\.001\)"
    with pytest.raises(InputError, match=wanted):
        list(read_blocks(path))


@pytest.mark.parametrize("name", PACKERS)
def test_a_small_file_may_say_one_thing_again_and_again(name: str, tmp_path: Path) -> None:
    path = packed(tmp_path, name, b"again\n" * 100_000)
    assert sum(map(len, read_blocks(path))) == 600_000


def test_a_plain_file_may_be_of_any_size(tmp_path: Path, low: None) -> None:
    (tmp_path / "a.txt").write_bytes(LINE * 60_000)
    assert sum(1 for _ in read_raw_lines(tmp_path / "a.txt")) == 60_000


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("a.txt", read_raw_lines),
        ("a.tsv", lambda path: Tsv().rows(path, [0, 1])),
        ("a.csv", lambda path: Csv().rows(path, [0])),
        ("a.jsonl", lambda path: Jsonl().rows(path, ["x"])),
        ("a.tmx", tmx_languages),
        ("a.tsv", lambda path: read_pairs(PairFiles(tsv=str(path)), Path())),
    ],
)
def test_every_format_has_a_longest_line(name: str, read: Callable[[Path], Any], tmp_path: Path, low: None) -> None:
    path = tmp_path / name
    path.write_bytes(b"<tmx><tu><tuv xml:lang='en'><seg>\n" + b"a" * 3 * MEGABYTE)
    wanted = rf"{name}, line 2: has more than 1\.0 MB.*split the line, or set TRANSDUCE_MAX_LINE_MB \(now 1\)"
    with pytest.raises(InputError, match=wanted):
        list(read(path))


def test_a_line_may_be_as_long_as_the_limit(tmp_path: Path, low: None) -> None:
    (tmp_path / "a.txt").write_bytes((b"a" * MEGABYTE + b"\n") * 3)
    assert [*map(len, read_raw_lines(tmp_path / "a.txt"))] == [MEGABYTE] * 3


@contextmanager
def endless(path: Path, piece: bytes) -> Iterator[Path]:
    """A pipe into which somebody writes without end."""
    os.mkfifo(path)

    def write() -> None:
        try:
            with path.open("wb", buffering=0) as pipe:
                while True:
                    pipe.write(piece)
        except BrokenPipeError:
            pass

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    yield path
    writer.join()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no named pipes in folders")
@pytest.mark.parametrize(("piece", "said"), [(b"a" * 65_536, "line 1: has more than 1.0 MB"), (LINE * 99, "save it")])
def test_a_pipe_that_grows_without_end_is_an_error_and_takes_no_memory(
    piece: bytes, said: str, tmp_path: Path, low: None
) -> None:
    tracemalloc.start()
    try:
        with endless(tmp_path / "pipe", piece) as pipe, pytest.raises(InputError, match=f"pipe.*{said}"):
            for _ in read_raw_lines(pipe):
                pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * MEGABYTE


@pytest.mark.parametrize("piece", [b"a" * 3 * MEGABYTE, LINE * 60_000])
def test_standard_input_has_the_same_limits(piece: bytes, low: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(piece)))
    with pytest.raises(InputError, match=r"standard input.*more than"):
        read_source(None)


def test_a_document_that_is_read_as_a_whole_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transduce.data.files.LARGEST_DOCUMENT", MEGABYTE)
    (tmp_path / "a.json").write_bytes(bytes(MEGABYTE))
    assert len(read_whole(tmp_path / "a.json")) == MEGABYTE
    (tmp_path / "a.json").write_bytes(bytes(MEGABYTE + 1))
    with pytest.raises(InputError, match=r"a\.json: has more than 1\.0 MB.*Divide it"):
        read_whole(tmp_path / "a.json")


def test_the_fingerprint_of_a_member_counts_too(tmp_path: Path, low: None) -> None:
    with pytest.raises(InputError, match="200 times"):
        fingerprint(packed(tmp_path, "a.zip", bytes(3 * MEGABYTE)))


@pytest.mark.parametrize("given", ["0", "-1", "many", "inf", "nan", "0.5"])
def test_a_limit_that_is_none_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSDUCE_MAX_LINE_MB", given)
    with pytest.raises(
        InputError, match=rf"TRANSDUCE_MAX_LINE_MB: expected a number, at least 1, such as 16; got {given}"
    ):
        limits.LINE.bytes()
