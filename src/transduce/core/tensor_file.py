"""Tensor files, which cannot contain code, have a checksum and are written atomically.

The format is safetensors: 8 bytes with the header's length, a JSON header, then the numbers, little-endian.
The safetensors library orders a header's metadata at random, so the header is written here: equal input gives
equal bytes, on every run. The library reads these files, and this module reads the library's (with
verify=False, as they carry no checksum). Format: https://github.com/huggingface/safetensors#format
"""

import hashlib
import json
import math
import os
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from transduce.core.atomic import replace, write_json, write_text
from transduce.core.bounded_file import open_regular
from transduce.core.bounded_json import table_of_values, what
from transduce.core.errors import InputError

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

Made = TypeVar("Made")

__all__ = [
    "Header",
    "TensorInfo",
    "canonical_json",
    "may_hold_tensors",
    "read_arrays",
    "read_header",
    "read_metadata",
    "read_tensors",
    "write_json",
    "write_tensors",
    "write_text",
]

HEADER_LIMIT = 100_000_000  # bytes; the safetensors library refuses longer headers too
CHECKSUM = "checksum"
METADATA = "__metadata__"
TOLD = 20  # problems at most
AXES, LARGEST = 16, 2**63 - 1  # of a shape

# safetensors name -> (torch name, bytes an element)
DTYPES = {
    "F64": ("float64", 8),
    "I64": ("int64", 8),
    "F32": ("float32", 4),
    "I32": ("int32", 4),
    "F16": ("float16", 2),
    "BF16": ("bfloat16", 2),
    "I16": ("int16", 2),
    "I8": ("int8", 1),
    "U8": ("uint8", 1),
    "BOOL": ("bool", 1),
}


@dataclass(frozen=True)
class TensorInfo:
    """What a header says of one tensor; `start` and `end` count bytes from the beginning of the data."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@dataclass(frozen=True)
class Header:
    """A header, checked against the size of its file. `checksum` is None where a file has none."""

    tensors: dict[str, TensorInfo]
    metadata: dict[str, str]
    checksum: str | None
    data_start: int


def canonical_json(value: Any) -> str:
    """The one JSON text for `value`: keys sorted, no spaces, NaN refused (ValueError)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def write_tensors(
    path: str | os.PathLike[str], tensors: Mapping[str, "torch.Tensor"], metadata: Mapping[str, str]
) -> None:
    """Writes `tensors` and `metadata` atomically as safetensors with a checksum.

    Equal input gives equal bytes; the order of the two mappings does not matter.

    Raises:
        InputError: a dtype outside `DTYPES`, a reserved name, or metadata that is not text; reports all problems at
            once.
        TransduceError: the system could not write it (disk full, no permission); the old file is unchanged.
    """
    path = Path(path)
    _check_writable(path, tensors, metadata)
    # Widest elements first, as the library does: every tensor then starts at a multiple of its width.
    names = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    on_cpu = {name: tensors[name].detach().cpu().contiguous() for name in names}
    infos = _layout(on_cpu)
    digests = {name: hashlib.sha256(_raw(tensor)).hexdigest() for name, tensor in on_cpu.items()}
    header = _encode_header(infos, {**metadata, CHECKSUM: _checksum(infos, digests, metadata)})
    size = len(header) + sum(info.end - info.start for info in infos.values())
    replace(path, _chunks(header, on_cpu), size)


def _check_writable(path: Path, tensors: Mapping[str, "torch.Tensor"], metadata: Mapping[str, str]) -> None:
    supported = ", ".join(torch_name for torch_name, _ in DTYPES.values())
    problems = [
        f'{path}: tensor "{name}" is {tensor.dtype}; a file holds {supported}.'
        for name, tensor in tensors.items()
        if _dtype_name(tensor) is None
    ]
    if METADATA in tensors:
        problems.append(f'{path}: "{METADATA}" cannot name a tensor: the format reserves this name.')
    if CHECKSUM in metadata:
        problems.append(f'{path}: the metadata key "{CHECKSUM}" is written by Transduce; choose another.')
    problems += [
        f'{path}: metadata "{key}" is {type(value).__name__}; it must be text.'
        for key, value in metadata.items()
        if not isinstance(value, str)
    ]
    if problems:
        raise InputError(problems)


def _dtype_name(tensor: "torch.Tensor") -> str | None:
    torch_name = str(tensor.dtype).removeprefix("torch.")
    return next((name for name, (known, _) in DTYPES.items() if known == torch_name), None)


def _layout(tensors: Mapping[str, "torch.Tensor"]) -> dict[str, TensorInfo]:
    """Where each tensor's bytes go: one after the other, in the order given."""
    infos: dict[str, TensorInfo] = {}
    start = 0
    for name, tensor in tensors.items():
        dtype = _dtype_name(tensor)
        assert dtype is not None
        end = start + tensor.numel() * tensor.element_size()
        infos[name] = TensorInfo(dtype, tuple(tensor.shape), start, end)
        start = end
    return infos


def _raw(tensor: "torch.Tensor") -> memoryview:
    """The bytes of a contiguous tensor on the CPU, not copied."""
    import torch

    return tensor.reshape(-1).view(torch.uint8).numpy().data


def _encode_header(infos: Mapping[str, TensorInfo], metadata: Mapping[str, str]) -> bytes:
    """The length and the JSON, padded with spaces so that the data starts at a multiple of 8."""
    entries: dict[str, Any] = {METADATA: dict(sorted(metadata.items()))}
    for name, info in infos.items():
        entries[name] = {
            "dtype": info.dtype,
            "shape": list(info.shape),
            "data_offsets": [info.start, info.end],
        }
    encoded = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    encoded += b" " * (-len(encoded) % 8)
    return len(encoded).to_bytes(8, "little") + encoded


def _chunks(header: bytes, tensors: Mapping[str, "torch.Tensor"]) -> Iterator[bytes | memoryview]:
    yield header
    for tensor in tensors.values():
        yield _raw(tensor)


def _checksum(infos: Mapping[str, TensorInfo], digests: Mapping[str, str], metadata: Mapping[str, str]) -> str:
    """SHA-256 over what a reader gets: names, dtypes, shapes, each tensor's own SHA-256, and the metadata."""
    content = {
        "metadata": dict(metadata),
        "tensors": {name: [info.dtype, list(info.shape), digests[name]] for name, info in infos.items()},
    }
    return hashlib.sha256(canonical_json(content).encode("utf-8")).hexdigest()


def read_tensors(
    path: str | os.PathLike[str], *, verify: bool = True
) -> tuple[dict[str, "torch.Tensor"], dict[str, str]]:
    """The tensors (on the CPU, each owning its memory) and the metadata of a safetensors file.

    Args:
        path: a file that `write_tensors` wrote; with verify=False, any safetensors file.
        verify: compare the content with its checksum, so that one changed bit is noticed.

    Raises:
        InputError: the file is missing, empty, truncated, damaged, or not a safetensors file; the message says which.
    """
    return _read(Path(path), verify, _as_tensor)


def read_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, "NDArray[Any]"], dict[str, str]]:
    """The same as NumPy's arrays, without torch. Their content is compared with its checksum.

    Raises:
        InputError: as `read_tensors`; a tensor is bfloat16, which NumPy does not have.
    """
    return _read(Path(path), True, _as_array)


def _read(
    path: Path, verify: bool, make: Callable[[bytearray, TensorInfo], Made]
) -> tuple[dict[str, Made], dict[str, str]]:
    tensors: dict[str, Made] = {}
    digests: dict[str, str] = {}
    with _opened(path) as file:
        header = _parse_header(path, file)
        for name, info in sorted(header.tensors.items(), key=lambda item: item[1].start):
            content = _read_exactly(path, file, info.end - info.start)
            if verify:
                digests[name] = hashlib.sha256(content).hexdigest()
            tensors[name] = make(content, info)
    if verify:
        _verify(path, header, digests)
    return tensors, header.metadata


def may_hold_tensors(path: Path) -> bool:
    """Whether a file begins like one of safetensors: a length of 8 bytes, then an object of JSON."""
    with path.open("rb") as file:
        return file.read(9)[8:] == b"{"


def read_header(path: str | os.PathLike[str]) -> Header:
    """Names, dtypes, shapes and metadata, without the numbers.

    Lengths are checked; the checksum is not, since it needs the numbers.

    Raises:
        InputError: the file is missing, empty, truncated, or not a safetensors file.
    """
    with _opened(Path(path)) as file:
        return _parse_header(Path(path), file)


def read_metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    """Only the metadata, which is fast for files of any size. Raises the errors of `read_header`."""
    return read_header(path).metadata


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; expected a safetensors file.")
    try:
        with open_regular(path) as file:
            yield file
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file.") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error


def _read_exactly(path: Path, file: BufferedReader, size: int) -> bytearray:
    content = bytearray(size)
    if file.readinto(content) != size:
        raise InputError(f"{path}: it became shorter while it was read.")
    return content


def _as_tensor(content: bytearray, info: TensorInfo) -> "torch.Tensor":
    import torch

    dtype = getattr(torch, DTYPES[info.dtype][0])
    if not content:
        return torch.empty(info.shape, dtype=dtype)
    return torch.frombuffer(content, dtype=torch.uint8).view(dtype).reshape(info.shape)


def _as_array(content: bytearray, info: TensorInfo) -> "NDArray[Any]":
    import numpy as np

    if info.dtype == "BF16":
        raise InputError("the file holds bfloat16 numbers, which NumPy does not have: load it with torch.")
    return np.frombuffer(content, DTYPES[info.dtype][0]).reshape(info.shape)


def _verify(path: Path, header: Header, digests: Mapping[str, str]) -> None:
    if header.checksum is None:
        raise InputError(f"{path}: it has no checksum, so Transduce did not write it; nothing was loaded.")
    if _checksum(header.tensors, digests, header.metadata) != header.checksum:
        raise InputError(f"{path}: it is damaged: its content does not match its checksum. Copy or download it again.")


def _parse_header(path: Path, file: BufferedReader) -> Header:
    size = os.fstat(file.fileno()).st_size
    length = _header_length(path, file.read(8), size)
    entries = _header_json(path, _read_exactly(path, file, length))
    metadata = entries.pop(METADATA, {})
    problems: list[str] = []
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        problems.append("its metadata is not a table of strings")
        metadata = {}
    tensors: dict[str, TensorInfo] = {}
    for name, entry in entries.items():
        checked = _tensor_info(name, entry)
        if isinstance(checked, str):
            problems.append(checked)
        else:
            tensors[name] = checked
    problems = problems or _offset_problems(tensors, size - 8 - length)
    if problems:
        more = [f"and {len(problems) - TOLD} more problems"] if len(problems) > TOLD else []
        raise InputError(f"{path}: not a sound safetensors file: {each}." for each in [*problems[:TOLD], *more])
    checksum = metadata.pop(CHECKSUM, None)
    return Header(tensors, metadata, checksum, 8 + length)


def _is_text(first: bytes) -> bool:
    """Whether the first bytes are of UTF-8 text, whose last character may be cut off. A length has zeros."""
    try:
        begins = getincrementaldecoder("utf-8")().decode(first)
    except UnicodeDecodeError:
        return False
    return all(each.isprintable() or each in "\t\r\n\ufeff" for each in begins)


def _header_length(path: Path, first: bytes, size: int) -> int:
    if size == 0:
        raise InputError(f"{path}: the file is empty (0 bytes).")
    if len(first) < 8:
        raise InputError(f"{path}: truncated: {size} bytes, and a safetensors file has at least 10.")
    if _is_text(first):
        raise InputError(f"{path}: this is a text file; expected a safetensors file, as a run's model.safetensors.")
    length = int.from_bytes(first, "little")
    if length > size - 8 and first.startswith((b"PK\x03\x04", b"\x80\x02", b"\x80\x04")):
        raise InputError(
            f"{path}: this looks like a file of torch.save or pickle. Opening such a file can run code, so "
            "Transduce never does; save the weights as safetensors."
        )
    if length > HEADER_LIMIT:
        raise InputError(
            f"{path}: not a safetensors file, or damaged: its header would be {length} bytes long "
            f"(the limit is {HEADER_LIMIT})."
        )
    if length > size - 8:
        raise InputError(
            f"{path}: truncated or damaged: the header is {length} bytes long, but only {size - 8} follow."
        )
    return length


def _header_json(path: Path, encoded: bytes | bytearray) -> dict[str, Any]:
    try:
        return table_of_values(encoded.decode("utf-8"), METADATA)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a safetensors file, or damaged: its header {what(error)}.") from error


def _tensor_info(name: str, entry: Any) -> TensorInfo | str:
    """The checked entry, or what is wrong with it."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        return f'tensor "{name}" is not described by dtype, shape and data_offsets'
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        return f'tensor "{name}" has the dtype {dtype!r}; supported: {", ".join(DTYPES)}'
    if not _is_sizes(shape):
        return f'tensor "{name}" has the shape {shape!r}'
    if not _is_sizes(offsets) or len(offsets) != 2:
        return f'tensor "{name}" has the data_offsets {offsets!r}'
    start, end = offsets
    if end - start != math.prod(shape) * DTYPES[dtype][1]:
        return f'tensor "{name}": {dtype} of shape {shape} does not fill bytes {start} to {end}'
    return TensorInfo(dtype, tuple(shape), start, end)


def _is_sizes(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= AXES
        and all(type(size) is int and 0 <= size <= LARGEST for size in value)
    )


def _offset_problems(tensors: Mapping[str, TensorInfo], data_size: int) -> list[str]:
    """Tensors must follow one another and fill the data: no overlap, no hole where bytes could hide."""
    problems = []
    expected = 0
    for name, info in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].end)):
        if info.start != expected:
            kind = "overlaps the tensor before it" if info.start < expected else "leaves a hole before it"
            problems.append(f'tensor "{name}" starts at byte {info.start}, not {expected}: it {kind}')
        expected = info.end
    if expected > data_size:
        problems.append(f"truncated: {expected - data_size} of {expected} bytes of data are missing")
    if expected < data_size:
        problems.append(f"{data_size - expected} bytes follow the last tensor and belong to none")
    return problems
