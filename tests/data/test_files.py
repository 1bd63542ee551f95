"""Text is read the same way whatever its compression, and only "\\n" ends a line."""

import gzip
import hashlib
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.core.errors import InputError
from transduce.data import files

Packer = Callable[[bytes], bytes]


def zstd(plain: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(plain)
    return bytes(sink.getvalue())


PACKERS: dict[str, Packer] = {".txt": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd}
packed = pytest.mark.parametrize("suffix", PACKERS)

ODD = "a\rb\u2028c\u2029d\u0085e\x0bf\x0cg\x1ch\tz\ufeff"


@packed
def test_only_newline_ends_a_line(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](f"{ODD}\n\n{ODD}\r\nlast".encode()))
    assert list(files.read_lines(path)) == [ODD, "", ODD + "\r", "last"]
    assert files.count_lines(path) == 4


@packed
def test_a_byte_order_mark_at_the_beginning_is_no_text(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix]("\ufeffone\n\ufefftwo\n".encode()))
    assert list(files.read_lines(path)) == ["one", "\ufefftwo"]


@packed
@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "a\n\n", "\n\na"])
def test_final_line_with_or_without_newline(tmp_path: Path, suffix: str, text: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKERS[suffix](text.encode()))
    expected = text.split("\n")[:-1] if text.endswith("\n") or not text else text.split("\n")
    assert list(files.read_lines(path)) == expected
    assert files.count_lines(path) == len(expected)


@given(plain=st.binary(max_size=60).map(lambda b: b.replace(b"x", b"\n")), block=st.integers(1, 7))
def test_lines_do_not_depend_on_where_blocks_end(
    tmp_path_factory: pytest.TempPathFactory, plain: bytes, block: int
) -> None:
    path = tmp_path_factory.mktemp("blocks") / "text"
    path.write_bytes(plain)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", block)
        lines = list(files.read_raw_lines(path))
        assert files.count_lines(path) == len(lines)
    assert lines == [line.removesuffix(b"\n") for line in path.open("rb")]


def test_compressed_parts_joined_end_to_end_are_one_file(tmp_path: Path) -> None:
    for suffix, pack in PACKERS.items():
        path = tmp_path / f"joined{suffix}"
        path.write_bytes(pack(b"one\ntw") + pack(b"o\nthree\n"))
        assert list(files.read_lines(path)) == ["one", "two", "three"], suffix


def test_all_bad_lines_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"".join(b"caf\xe9\n" if n % 2 else b"tea\n" for n in range(1, 31)))
    with pytest.raises(InputError, match=r"latin1.txt: 15 lines .* \(line 1, 3, 5, .*19, \.\.\.\)"):
        list(files.read_lines(path))


def test_lines_before_the_first_bad_one_are_given(tmp_path: Path) -> None:
    path = tmp_path / "latin1.txt"
    path.write_bytes(b"fine\n\xff\n")
    lines = files.read_lines(path)
    assert next(lines) == "fine"
    with pytest.raises(InputError, match=r"1 line is not UTF-8 \(line 2\)"):
        next(lines)


def numbered_text() -> bytes:
    return b"".join(b"line %d %d\n" % (n, n * n % 977) for n in range(5_000))


def cut(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


def flipped(whole: bytes) -> bytes:
    middle = len(whole) // 2
    return whole[:middle] + bytes(255 - byte for byte in whole[middle : middle + 40]) + whole[middle + 40 :]


def garbage(whole: bytes) -> bytes:
    return b"this was never compressed\n" * 9


# pyarrow writes zstd frames without a checksum, so a flipped byte cannot always be seen there.
DAMAGES = [(suffix, spoil) for suffix in (".gz", ".xz", ".zst") for spoil in (cut, flipped, garbage)]
DAMAGES.remove((".zst", flipped))


@pytest.mark.parametrize(("suffix", "spoil"), DAMAGES)
def test_damage_names_the_file(tmp_path: Path, suffix: str, spoil: Packer) -> None:
    broken = spoil(PACKERS[suffix](numbered_text()))
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(broken)
    with pytest.raises(InputError, match=f"broken{suffix}.*damaged or cut off"):
        list(files.read_raw_lines(path))
    with pytest.raises(InputError, match=f"broken{suffix}.*damaged or cut off"):
        files.count_lines(path)


def test_missing_file_suggests_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "train.de.gz").touch()
    with pytest.raises(InputError, match=r'trian\.de\.gz: no such file\. Did you mean "train\.de\.gz"\?'):
        list(files.read_lines(tmp_path / "trian.de.gz"))
    with pytest.raises(InputError, match=r"even the folder .*nowhere does not exist"):
        files.fingerprint(tmp_path / "nowhere" / "train.de")
    with pytest.raises(InputError, match="this is a folder"):
        files.count_lines(tmp_path)


def test_fingerprint_is_of_the_bytes_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"hello\n"))
    assert files.fingerprint(path) == hashlib.sha256(path.read_bytes()).hexdigest()


@packed
def test_written_text_reads_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    for _ in range(2):
        with files.writing(path) as stream:
            stream.write(b"one\n")
            stream.write(ODD.encode() + b"\n")
            assert not path.exists() or files.count_lines(path) == 2
    assert list(files.read_lines(path)) == ["one", ODD]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@packed
def test_failed_writing_leaves_what_was_there(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_bytes(PACKERS[suffix](b"before\n"))
    with pytest.raises(RuntimeError), files.writing(path) as stream:
        stream.write(b"half")
        raise RuntimeError
    assert list(files.read_lines(path)) == ["before"]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_writing_into_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"there is no folder .*nowhere"),
        files.writing(tmp_path / "nowhere" / "x.gz"),
    ):
        pass


@pytest.mark.parametrize(("encoding", "told"), [("utf-16", "-f UTF-16"), ("windows-1252", "-f WINDOWS-1252")])
def test_the_command_that_converts_a_file_names_its_encoding(encoding: str, told: str, tmp_path: Path) -> None:
    """iconv takes a file for what the terminal has, else, which is UTF-8."""
    (tmp_path / "a").write_bytes("é\n".encode(encoding))
    with pytest.raises(InputError, match=f"iconv {told} -t UTF-8"):
        list(files.read_lines(tmp_path / "a"))


def test_a_binary_file_needs_no_conversion(tmp_path: Path) -> None:
    (tmp_path / "a.pkl").write_bytes(b"\x80\x04\x95\x00\n")
    with pytest.raises(InputError, match="looks like a binary file"):
        list(files.read_lines(tmp_path / "a.pkl"))
