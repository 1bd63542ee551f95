"""Tensor files: equal bytes for equal input, every kind of damage noticed."""

import hashlib
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transduce.core.errors import InputError
from transduce.core.tensor_file import DTYPES, HEADER_LIMIT, read_header, read_metadata, read_tensors, write_tensors

METADATA = {"format": "test", "config": '{"kind": "transformer", "name": "Übung"}'}


def some_tensors() -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "embedding.weight": torch.randn(5, 3, generator=generator),
        "flags": torch.tensor([True, False, True]),
        "half": torch.randn(3, generator=generator).bfloat16(),
        "steps": torch.tensor(17),
        "nothing": torch.empty(0, 4),
    }


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "model.safetensors"
    write_tensors(path, some_tensors(), METADATA)
    return path


def by_hand(path: Path, header: object, data: bytes = b"") -> Path:
    """A file with any header at all."""
    encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + data)
    return path


def entry(dtype: object = "F32", shape: object = (2,), offsets: object = (0, 8)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


# ---- there and back


def test_what_was_written_is_read(sound: Path) -> None:
    tensors, metadata = read_tensors(sound)
    assert metadata == METADATA == read_metadata(sound)
    assert tensors.keys() == some_tensors().keys()
    for name, tensor in some_tensors().items():
        assert tensors[name].dtype == tensor.dtype
        assert torch.equal(tensors[name], tensor)


@pytest.mark.parametrize("dtype", [torch_name for torch_name, _ in DTYPES.values()])
def test_every_dtype_survives(tmp_path: Path, dtype: str) -> None:
    tensor = torch.arange(-3, 4).to(getattr(torch, dtype))
    write_tensors(tmp_path / "x", {"x": tensor}, {})
    (read,) = read_tensors(tmp_path / "x")[0].values()
    assert read.dtype == tensor.dtype
    assert torch.equal(read, tensor)


def test_not_a_number_and_infinity_keep_their_bits(tmp_path: Path) -> None:
    tensor = torch.tensor([float("nan"), float("-inf"), -0.0])
    write_tensors(tmp_path / "x", {"x": tensor}, {})
    assert torch.equal(read_tensors(tmp_path / "x")[0]["x"].view(torch.int32), tensor.view(torch.int32))


def test_a_transposed_view_is_written_as_it_looks(tmp_path: Path) -> None:
    tensor = torch.arange(6.0).reshape(2, 3).T
    write_tensors(tmp_path / "x", {"x": tensor}, {})
    assert torch.equal(read_tensors(tmp_path / "x")[0]["x"], tensor)


def test_a_read_tensor_can_be_changed_and_the_file_stays(sound: Path) -> None:
    before = sound.read_bytes()
    read_tensors(sound)[0]["embedding.weight"].zero_()
    assert sound.read_bytes() == before


def test_equal_input_gives_equal_bytes_in_any_order_and_process(tmp_path: Path, sound: Path) -> None:
    backwards = dict(reversed(some_tensors().items()))
    write_tensors(tmp_path / "again", backwards, dict(reversed(METADATA.items())))
    copies = "write_tensors(sys.argv[2], *read_tensors(sys.argv[1]))"
    script = f"import sys, torch; from transduce.core.tensor_file import *; {copies}"
    subprocess.run([sys.executable, "-c", script, str(sound), str(tmp_path / "other")], check=True)
    digests = {
        hashlib.sha256(path.read_bytes()).hexdigest() for path in (sound, tmp_path / "again", tmp_path / "other")
    }
    assert len(digests) == 1


def test_the_safetensors_library_reads_ours(sound: Path) -> None:
    theirs = safetensors.torch.load_file(sound)
    assert all(torch.equal(theirs[name], tensor) for name, tensor in some_tensors().items())
    with safetensors.safe_open(sound, "pt") as file:
        assert file.metadata().items() >= METADATA.items()


def test_the_safetensors_librarys_files_are_read_without_a_checksum(tmp_path: Path) -> None:
    safetensors.torch.save_file(some_tensors(), tmp_path / "x", {"a": "b"})
    tensors, metadata = read_tensors(tmp_path / "x", verify=False)
    assert metadata == {"a": "b"}
    assert all(torch.equal(tensors[name], tensor) for name, tensor in some_tensors().items())
    with pytest.raises(InputError, match="no checksum"):
        read_tensors(tmp_path / "x")


def test_all_wrong_arguments_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        write_tensors(
            tmp_path / "x",
            {"c": torch.zeros(1, dtype=torch.complex64), "__metadata__": torch.zeros(1)},
            {"checksum": "x", "n": 3},  # type: ignore[dict-item]
        )
    assert len(caught.value.problems) == 4
    assert not list(tmp_path.iterdir())


# ---- damage


def test_every_truncation_is_noticed(tmp_path: Path, sound: Path) -> None:
    whole = sound.read_bytes()
    cut = tmp_path / "cut"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"truncated|empty"):
            read_tensors(cut)
        with pytest.raises(InputError, match=r"truncated|empty"):
            read_header(cut)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_every_flipped_bit_is_noticed(tmp_path: Path, sound: Path, data: st.DataObject) -> None:
    damaged = bytearray(sound.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(damaged) - 1))
    damaged[bit // 8] ^= 1 << bit % 8
    (tmp_path / "flipped").write_bytes(damaged)
    with pytest.raises(InputError):
        read_tensors(tmp_path / "flipped")


def test_a_flipped_bit_in_the_numbers_is_called_damage(tmp_path: Path, sound: Path) -> None:
    damaged = bytearray(sound.read_bytes())
    damaged[-1] ^= 1
    (tmp_path / "flipped").write_bytes(damaged)
    with pytest.raises(InputError, match="damaged: its content does not match its checksum"):
        read_tensors(tmp_path / "flipped")
    assert read_tensors(tmp_path / "flipped", verify=False)[0].keys() == some_tensors().keys()


def test_bytes_at_the_end_are_noticed(tmp_path: Path, sound: Path) -> None:
    (tmp_path / "long").write_bytes(sound.read_bytes() + b"more")
    with pytest.raises(InputError, match="4 bytes follow the last tensor"):
        read_tensors(tmp_path / "long")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200), with_length=st.booleans())
def test_rubbish_is_always_an_input_error(tmp_path: Path, content: bytes, with_length: bool) -> None:
    start = len(content).to_bytes(8, "little") if with_length else b""
    (tmp_path / "rubbish").write_bytes(start + content)
    with pytest.raises(InputError):
        read_tensors(tmp_path / "rubbish")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"{not json", "header is not JSON"),
        (b"[" * 100_000, "header is not a JSON object"),
        (b"\xff\xfe", "header is not JSON"),
        (b'{"a": 1, "a": 2}', "appears twice"),
        ([1], "not a JSON object"),
        ({"__metadata__": {"a": 1}}, "metadata"),
        ({"x": 3}, "not described by"),
        ({"x": {**entry(), "more": 1}}, "not described by"),
        ({"x": entry(dtype="F8_E4M3")}, "dtype 'F8_E4M3'; supported: F64"),
        ({"x": entry(dtype=["F32"])}, "dtype"),
        ({"x": entry(shape=[-2])}, "shape"),
        ({"x": entry(shape=[2.0])}, "shape"),
        ({"x": entry(shape=[True, 2])}, "shape"),
        ({"x": entry(shape=[3])}, "does not fill bytes 0 to 8"),
        ({"x": entry(shape=[2**62, 4])}, "does not fill"),
        ({"x": entry(offsets=[0, 8, 8])}, "data_offsets"),
        ({"x": entry(offsets=[8, 0])}, "does not fill"),
        ({"x": entry(), "y": entry(offsets=[4, 12])}, "overlaps"),
        ({"x": entry(), "y": entry(offsets=[0, 8])}, "overlaps"),
        ({"x": entry(), "y": entry(offsets=[12, 20])}, "hole"),
        ({"x": entry(offsets=[8, 16])}, "hole"),
        ({"x": entry(), "y": entry(offsets=[8, 16])}, "truncated: 4 of 16 bytes of data are missing"),
    ],
)
def test_a_wrong_header_is_explained(tmp_path: Path, header: object, said: str) -> None:
    path = by_hand(tmp_path / "wrong", header, b"\0" * 12)
    for read in (read_header, read_tensors):
        with pytest.raises(InputError, match=said) as caught:
            read(path)
        assert str(path) in str(caught.value)


def test_all_problems_of_a_header_come_at_once(tmp_path: Path) -> None:
    path = by_hand(tmp_path / "wrong", {"x": entry(dtype="F9"), "y": entry(shape=[7]), "z": 0})
    with pytest.raises(InputError) as caught:
        read_header(path)
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("text", ["Two dogs run.\n", "\ufeffid\ttext\n", "狗在跑，猫在睡。\n"])
def test_a_text_is_called_one(tmp_path: Path, text: str) -> None:
    """Its first letters would be the length of a header."""
    (tmp_path / "test.en").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"test\.en: this is a text file; expected a safetensors file"):
        read_header(tmp_path / "test.en")


@pytest.mark.parametrize("length", [HEADER_LIMIT + 1, 2**63, 2**64 - 1])
def test_an_absurd_header_length_takes_no_memory(tmp_path: Path, length: int) -> None:
    (tmp_path / "huge").write_bytes(length.to_bytes(8, "little") + b"{}")
    with pytest.raises(InputError, match="the limit is 100000000"):
        read_tensors(tmp_path / "huge")


def test_a_header_beyond_the_limit_is_refused_even_where_the_file_is_that_long(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.write((HEADER_LIMIT + 1).to_bytes(8, "little"))
        file.truncate(HEADER_LIMIT + 100)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="the limit is"):
            read_tensors(tmp_path / "sparse")
        assert tracemalloc.get_traced_memory()[1] < 1_000_000  # at the most, of 100 million that a header may have
    finally:
        tracemalloc.stop()


def test_files_of_torch_save_are_refused_by_name(tmp_path: Path) -> None:
    torch.save({"w": torch.zeros(3)}, tmp_path / "model.pt")
    with pytest.raises(InputError, match=r"torch\.save or pickle"):
        read_tensors(tmp_path / "model.pt")


def test_not_there_empty_or_a_folder(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for name, said in (("absent", "no such file"), ("empty", "is empty"), (".", "is a folder")):
        with pytest.raises(InputError, match=said):
            read_tensors(tmp_path / name)


def test_reading_metadata_imports_no_torch(sound: Path) -> None:
    script = (
        "import sys; from transduce.core.tensor_file import read_metadata; "
        "print(read_metadata(sys.argv[1])['format']); sys.exit('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(sound)], capture_output=True, text=True, check=True)
    assert done.stdout == "test\n"
