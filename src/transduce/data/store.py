"""Token ids and frames on disk: one Arrow IPC file, memory-mapped, read without copies; and a cache of such files.

A store holds one column a field ("source", "target"), in blocks of 4,096 examples. A row of a column is a list of ids,
or of vectors of floats that are all equally wide. The last block is empty:
it carries the metadata, which is known only when everything is written, and its presence says that the writer
finished.
"""

import hashlib
import json
import mmap
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.core.atomic import writing
from transduce.core.cache import recall, remember, state_of
from transduce.core.errors import InputError

FORMAT = 1
BLOCK = 4096
REMEMBERED = 1 << 20  # bytes of a store from which it is remembered that it was verified
Ids = NDArray[np.uint16] | NDArray[np.int32] | NDArray[np.float32]  # (T,), of floats (S, F)
Example = Mapping[str, Sequence[int] | NDArray[np.float32]]


class FloatRows(NamedTuple):
    """A column whose rows are vectors of `width` floats."""

    width: int


Field = int | FloatRows  # a column of ids: the size of their vocabulary


class Store:
    """The examples of one store file, which is open from its first reading until `release`.

    fields: the columns. blocks: how many; every block but the last holds `BLOCK` examples.
    metadata: what the writer noted, with "examples" and "tokens" by field.
    check_when_read: whether a block is compared with its checksum when its rows are first read.

    Raises:
        InputError: the file is missing, cut off, or not a store of this format.
    """

    _held: "tuple[mmap.mmap, Any] | None" = None

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        reader = self._mapped()
        self.metadata = _closing_metadata(self.path, reader)
        self.fields: tuple[str, ...] = tuple(self.metadata["fields"])
        self.blocks: int = reader.num_record_batches - 1
        self.check_when_read = False
        self._checked: set[int] = set()
        self.release()

    def __len__(self) -> int:
        return int(self.metadata["examples"])

    def lengths(self, field: str, block: int) -> NDArray[np.int64]:
        """How many tokens or frames each example of the block has in `field`; reads none of them."""
        return np.diff(self._view(field, block)[0]).astype(np.int64)

    def all_lengths(self, field: str) -> NDArray[np.int64]:
        return np.concatenate([np.zeros(0, np.int64), *(self.lengths(field, block) for block in range(self.blocks))])

    def read(self, field: str, rows: NDArray[np.int64]) -> list[Ids]:
        """The ids of each row, as views of the map: nothing is copied."""
        if self.check_when_read:
            self._check(set((rows // BLOCK).tolist()) - self._checked)
        found = []
        for row in rows.tolist():
            offsets, values = self._view(field, row // BLOCK)
            place = row % BLOCK
            found.append(values[offsets[place] : offsets[place + 1]])
        return found

    def release(self) -> None:
        """Give the pages read so far back to the system, and the open file; views stay valid, and are read again when
        touched."""
        if self._held and hasattr(mmap, "MADV_DONTNEED"):
            self._held[0].madvise(mmap.MADV_DONTNEED)
        self._held = None
        self._views: dict[tuple[str, int], tuple[NDArray[np.int32], Ids]] = {}

    def _mapped(self) -> Any:
        held = self._held = self._held or _open(self.path)
        return held[1]

    def _check(self, blocks: set[int]) -> None:
        if bad := sorted(block for block in blocks if not self._is_as_written(block)):
            raise InputError(
                f"{self.path}: damaged: block {bad[0]} differs from what was written. Delete the file; it is built "
                "again from the text."
            )
        self._checked |= blocks

    def verify(self) -> None:
        """Read everything and compare checksums.

        Raises:
            InputError: a block is not as it was written.
        """
        bad = [block for block in range(self.blocks) if not self._is_as_written(block)]
        self.release()
        if bad:
            raise InputError(
                f"{self.path}: damaged: {len(bad)} of {self.blocks} blocks differ from what was written "
                f"(first: {bad[0]}). Delete the file; it is built again from the text."
            )

    def _is_as_written(self, block: int) -> bool:
        try:
            found = _checksum(self._view(field, block) for field in self.fields)
        except _flaws():
            return False
        return bool(found == self.metadata["checksums"][block])

    def _view(self, field: str, block: int) -> tuple[NDArray[np.int32], Ids]:
        views = self._views  # another thread may release them
        if (field, block) not in views:
            batch = self._mapped().get_batch(block)
            batch.validate()
            column = batch.column(field)
            views[field, block] = (column.offsets.to_numpy(), _numbers(column.values))
        return views[field, block]


def write_store(
    path: str | Path,
    examples: Iterable[Example],
    fields: Mapping[str, Field],
    metadata: Mapping[str, Any],
) -> None:
    """Write `examples` in their order. `fields` names the columns with the size of each one's vocabulary, or its width.

    Memory holds one block. `metadata` is read after the last example, so whoever yields them may still fill
    it in. The file gets its name when it is complete and on disk; two writers of the same path do not disturb
    each other.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as file:
        _write(file, examples, fields, metadata)


def cache_key(parts: Mapping[str, Any]) -> str:
    """SHA-256, in hex, of everything that decides a store's content, and of the format itself."""
    canonical = json.dumps({"format": FORMAT, **parts}, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def cached_store(folder: str | Path, key: str, build: Callable[[Path], None]) -> Store:
    """The store of this key: opened and verified if it is there, else built by `build(path)` (see
    `write_store`).

    One that was damaged since it was written is built again. A big one that was verified, and whose file has not
    changed since, is not verified as a whole again, but block by block when it is read.
    """
    path = Path(folder) / f"{key}.arrow"
    try:
        return _verified(Store(path))
    except InputError:
        build(path)
        return Store(path)


def is_cached(folder: str | Path, key: str) -> bool:
    """Whether there is a file for this key, which may be damaged."""
    return (Path(folder) / f"{key}.arrow").is_file()


def _verified(store: Store) -> Store:
    state = state_of(store.path)
    big = state[0] >= REMEMBERED
    if big and recall("verified", store.path):
        store.check_when_read = True
        return store
    store.verify()
    if big:
        remember("verified", store.path, True, state)
    return store


def _flaws() -> tuple[type[Exception], ...]:
    """What a damaged file makes of Arrow, numpy and json."""
    import pyarrow

    return (pyarrow.ArrowException, OSError, ValueError, KeyError, TypeError, IndexError)


def _open(path: Path) -> tuple[mmap.mmap, Any]:
    import pyarrow

    if not path.is_file():
        raise InputError(f"{path}: no such store.")
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return mapped, pyarrow.ipc.open_file(pyarrow.py_buffer(mapped))
    except _flaws() as error:
        raise InputError(
            f"{path}: not a complete store ({error}). Delete it; it is built again from the text."
        ) from error


def _closing_metadata(path: Path, reader: Any) -> dict[str, Any]:
    try:
        closing, notes = reader.get_batch_with_custom_metadata(reader.num_record_batches - 1)
        noted = notes[b"metadata"]
        metadata: dict[str, Any] = json.loads(noted)
        if metadata["format"] != FORMAT:
            raise ValueError(f"format {metadata['format']}, expected {FORMAT}")
        blocks_fit = closing.num_rows == 0 and len(metadata["checksums"]) == reader.num_record_batches - 1
        is_as_written = int(notes[b"checksum"]) == zlib.crc32(noted)
        if not (blocks_fit and is_as_written and reader.schema.names == metadata["fields"]):
            raise ValueError("damaged")
        return metadata
    except _flaws() as error:
        raise InputError(f"{path}: not a store of this version ({error}). Delete it; it is built again.") from error


def _write(
    file: BinaryIO, examples: Iterable[Example], fields: Mapping[str, Field], metadata: Mapping[str, Any]
) -> None:
    import pyarrow

    schema = pyarrow.schema([(name, pyarrow.list_(_type(size))) for name, size in fields.items()])
    checksums, tokens, count = [], dict.fromkeys(fields, 0), 0
    with pyarrow.ipc.new_file(file, schema) as writer:
        for block in _blocks(examples):
            columns = {name: _column([example[name] for example in block], size) for name, size in fields.items()}
            arrays = [_listed(*columns[name], size) for name, size in fields.items()]
            writer.write_batch(pyarrow.record_batch(arrays, schema=schema))
            checksums.append(_checksum(columns.values()))
            count += len(block)
            tokens = {field: tokens[field] + len(columns[field][1]) for field in fields}
        written = {"fields": list(fields), "examples": count, "tokens": tokens, "checksums": checksums}
        noted = json.dumps({**metadata, "format": FORMAT, **written}, ensure_ascii=False).encode()
        notes = {b"metadata": noted, b"checksum": str(zlib.crc32(noted)).encode()}
        writer.write_batch(pyarrow.RecordBatch.from_pylist([], schema=schema), custom_metadata=notes)


def _blocks(examples: Iterable[Example]) -> Iterator[list[Example]]:
    remaining = iter(examples)
    while block := list(islice(remaining, BLOCK)):
        yield block


def _column(rows: list[Any], field: Field) -> tuple[NDArray[np.int32], Ids]:
    """Offsets (rows + 1,) and all ids, or frames, in one; an id too large is an OverflowError, not another id."""
    offsets = np.zeros(len(rows) + 1, dtype=np.int32)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    if isinstance(field, FloatRows):
        empty = np.empty((0, field.width), np.float32)
        return offsets, np.concatenate([empty, *rows]).astype(np.float32, copy=False)
    return offsets, np.fromiter(chain.from_iterable(rows), dtype=_id_type(field), count=int(offsets[-1]))


def _id_type(size: int) -> np.dtype[Any]:
    return np.dtype(np.uint16 if size <= 1 << 16 else np.int32)


def _type(field: Field) -> Any:
    """What Arrow calls an id, or a frame."""
    import pyarrow

    if isinstance(field, FloatRows):
        return pyarrow.list_(pyarrow.float32(), field.width)
    return pyarrow.from_numpy_dtype(_id_type(field))


def _listed(offsets: NDArray[np.int32], values: Ids, field: Field) -> Any:
    """A column as Arrow holds it."""
    import pyarrow

    if isinstance(field, FloatRows):
        flat = pyarrow.array(values.reshape(-1))
        return pyarrow.ListArray.from_arrays(offsets, pyarrow.FixedSizeListArray.from_arrays(flat, field.width))
    return pyarrow.ListArray.from_arrays(offsets, values)


def _numbers(values: Any) -> Ids:
    """The ids, or frames, of a column: a view."""
    import pyarrow

    if isinstance(values, pyarrow.FixedSizeListArray):
        return values.flatten().to_numpy().reshape(-1, values.type.list_size)
    return values.to_numpy()


def _checksum(columns: Iterable[tuple[NDArray[np.int32], Ids]]) -> int:
    checksum = 0
    for offsets, values in columns:
        checksum = zlib.crc32(values.data, zlib.crc32(offsets.data, checksum))
    return checksum
