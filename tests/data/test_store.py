"""Stores: what was written is read; what is unfinished or damaged is never taken for finished."""

import json
import signal
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transduce.core.errors import InputError
from transduce.data.store import BLOCK, Store, cache_key, cached_store, write_store

FIELDS = {"source": 1000, "target": 100_000}
SMALL = [{"source": [i % 1000, 7], "target": list(range(i % 5))} for i in range(50)]
SHARED_FOLDER = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def everything(store: Store) -> list[dict[str, list[int]]]:
    rows = np.arange(len(store))
    columns = {field: [ids.tolist() for ids in store.read(field, rows)] for field in store.fields}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@given(
    pairs=st.lists(
        st.tuples(st.lists(st.integers(0, 999), max_size=4), st.lists(st.integers(0, 99_999), max_size=4)),
        max_size=20,
    )
)
@SHARED_FOLDER
def test_the_nth_pair_stays_the_nth_pair(pairs: list[tuple[list[int], list[int]]], tmp_path: Path) -> None:
    examples = [{"source": source, "target": target} for source, target in pairs]
    write_store(tmp_path / "s.arrow", examples, FIELDS, {})
    assert everything(Store(tmp_path / "s.arrow")) == examples


def test_blocks_lengths_types_and_metadata(tmp_path: Path) -> None:
    examples = [{"source": [i % 7] * (i % 4), "target": [i]} for i in range(2 * BLOCK + 5)]
    metadata = {"note": "ü"}

    def filling() -> object:
        yield from examples
        metadata["dropped"] = 3

    write_store(tmp_path / "s.arrow", filling(), FIELDS, metadata)
    store = Store(tmp_path / "s.arrow")
    assert (len(store), store.blocks, store.fields) == (2 * BLOCK + 5, 3, ("source", "target"))
    assert store.metadata["note"] == "ü" and store.metadata["dropped"] == 3
    assert store.metadata["tokens"] == {
        "source": sum(len(e["source"]) for e in examples),
        "target": len(examples),
    }
    lengths = store.all_lengths("source")
    assert lengths.tolist() == [len(e["source"]) for e in examples]
    rows = np.array([2 * BLOCK + 4, 0, BLOCK, BLOCK - 1, 0])
    source, target = store.read("source", rows), store.read("target", rows)
    assert [ids.tolist() for ids in target] == [[int(row)] for row in rows]
    assert [ids.tolist() for ids in source] == [examples[row]["source"] for row in rows]
    assert source[0].dtype == np.uint16 and target[0].dtype == np.int32


def test_reading_copies_nothing_and_views_outlive_release(tmp_path: Path) -> None:
    write_store(tmp_path / "s.arrow", SMALL, FIELDS, {})
    store = Store(tmp_path / "s.arrow")
    first, again = (store.read("source", np.array([3]))[0] for _ in range(2))
    assert np.shares_memory(first, again) and not first.flags.writeable
    store.release()
    assert first.tolist() == [3, 7]


@pytest.mark.parametrize("size, fits", [(1 << 16, (1 << 16) - 1), ((1 << 16) + 1, 1 << 16)])
def test_ids_never_wrap_around(size: int, fits: int, tmp_path: Path) -> None:
    write_store(tmp_path / "s.arrow", [{"target": [fits]}], {"target": size}, {})
    assert everything(Store(tmp_path / "s.arrow")) == [{"target": [fits]}]
    with pytest.raises(OverflowError):
        write_store(tmp_path / "t.arrow", [{"target": [1 << 31]}], {"target": size}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["s.arrow"]


def test_every_cut_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.arrow"
    write_store(path, SMALL, FIELDS, {})
    whole = path.read_bytes()
    for size in [*range(0, len(whole), 37), len(whole) - 1]:
        path.write_bytes(whole[:size])
        with pytest.raises(InputError, match=r"s\.arrow"):
            Store(path)
    with pytest.raises(InputError, match="no such store"):
        Store(tmp_path / "absent.arrow")


@given(data=st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_byte_is_refused_or_changes_nothing(data: st.DataObject, tmp_path: Path) -> None:
    path = tmp_path / "s.arrow"
    write_store(path, SMALL, FIELDS, {"note": 1})
    damaged = bytearray(path.read_bytes())
    damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(damaged))
    try:
        store = Store(path)
        store.verify()
    except InputError:
        return
    assert everything(store) == SMALL and store.metadata["note"] == 1


def test_changed_metadata_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.arrow"
    write_store(path, SMALL, FIELDS, {"note": 1})
    whole = path.read_bytes()
    assert whole.count(b'"note": 1') == 1
    path.write_bytes(whole.replace(b'"note": 1', b'"note": 2'))
    with pytest.raises(InputError, match="damaged"):
        Store(path)


@pytest.mark.parametrize("wrong", ["blocks", "rows", "fields"])
def test_metadata_that_is_not_of_its_blocks_is_refused(wrong: str, tmp_path: Path) -> None:
    told = {"format": 1, "fields": ["a" if wrong == "fields" else "b"], "examples": 1, "tokens": {"b": 1}}
    noted = json.dumps({**told, "checksums": [1, 2] if wrong == "blocks" else [1]}).encode()
    schema = pyarrow.schema([("b", pyarrow.list_(pyarrow.uint16()))])
    one, none = (pyarrow.RecordBatch.from_pylist(rows, schema=schema) for rows in ([{"b": [7]}], []))
    with pyarrow.ipc.new_file(tmp_path / "s.arrow", schema) as writer:
        writer.write_batch(one)
        notes = {b"metadata": noted, b"checksum": str(zlib.crc32(noted)).encode()}
        writer.write_batch(one if wrong == "rows" else none, custom_metadata=notes)
    with pytest.raises(InputError, match="not a store of this version"):
        Store(tmp_path / "s.arrow")


WRITE_FOREVER = """
import itertools, sys
from transduce.data.store import write_store
rows = ({"target": [1, 2, 3]} for _ in itertools.count())
write_store(sys.argv[1], rows, {"target": 9}, {})
"""


def test_a_killed_writer_leaves_nothing_that_looks_finished(tmp_path: Path) -> None:
    path = tmp_path / "key.arrow"
    with subprocess.Popen([sys.executable, "-c", WRITE_FOREVER, str(path)]) as writer:
        try:
            while not any(part.stat().st_size > 100_000 for part in tmp_path.glob(".*.tmp")):
                assert writer.poll() is None
                time.sleep(0.01)
        finally:
            writer.send_signal(signal.SIGKILL)
    assert not path.exists()
    store = cached_store(tmp_path, "key", lambda to: write_store(to, SMALL, FIELDS, {}))
    assert everything(store) == SMALL


def test_a_failing_writer_cleans_up(tmp_path: Path) -> None:
    def failing() -> object:
        yield from SMALL
        raise InputError("line 51")

    with pytest.raises(InputError, match="line 51"):
        write_store(tmp_path / "s.arrow", failing(), FIELDS, {})
    assert list(tmp_path.iterdir()) == []


def test_the_cache_builds_once_and_again_when_damaged(tmp_path: Path) -> None:
    built = []

    def build(path: Path) -> None:
        built.append(path)
        write_store(path, SMALL, FIELDS, {})

    for _ in range(3):
        assert everything(cached_store(tmp_path / "cache", "k", build)) == SMALL
    assert len(built) == 1
    whole = built[0].read_bytes()
    place = whole.index(np.array([7, 1, 7, 2, 7], np.uint16).tobytes())
    built[0].write_bytes(whole[:place] + b"\x09" + whole[place + 1 :])
    assert everything(cached_store(tmp_path / "cache", "k", build)) == SMALL
    assert len(built) == 2


def test_writers_of_one_key_do_not_disturb_each_other(tmp_path: Path) -> None:
    together = threading.Barrier(4)

    def write() -> None:
        def rows() -> object:
            together.wait()
            yield from SMALL

        write_store(tmp_path / "k.arrow", rows(), FIELDS, {})
        assert everything(Store(tmp_path / "k.arrow")) == SMALL

    with ThreadPoolExecutor(4) as writers:
        for written in [writers.submit(write) for _ in range(4)]:
            written.result()
    assert [path.name for path in tmp_path.iterdir()] == ["k.arrow"]
    assert everything(Store(tmp_path / "k.arrow")) == SMALL


def test_keys_depend_on_content_and_not_on_order() -> None:
    assert cache_key({"a": 1, "b": [2]}) == cache_key({"b": [2], "a": 1})
    assert len({cache_key({"a": 1}), cache_key({"a": 2}), cache_key({"b": 1}), cache_key({"a": "1"})}) == 4
