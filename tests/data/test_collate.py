"""Collating equals a slow loop, and what is counted is what is predicted."""

from pathlib import Path

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from text_columns import PAIRS, ROWS
from transduce.data.batches import BatchConfig, Batches, Rows
from transduce.data.collate import collate, padded
from transduce.data.store import Store, write_store

SEQUENCES = st.lists(st.lists(st.integers(4, 99), min_size=1, max_size=9), min_size=1, max_size=8)
ENDS = st.one_of(st.none(), st.integers(1, 3))


@given(sequences=SEQUENCES, start=ENDS, end=ENDS)
@settings(deadline=None)
def test_padding_equals_a_slow_loop(sequences: list[list[int]], start: int | None, end: int | None) -> None:
    full = [[i for i in (start, *ids, end) if i is not None] for ids in sequences]
    longest = max(map(len, full))
    values, lengths = padded([np.array(ids, dtype=np.uint16) for ids in sequences], 0, start, end)
    assert values.dtype == lengths.dtype == torch.int64
    assert values.tolist() == [ids + [0] * (longest - len(ids)) for ids in full]
    assert lengths.tolist() == [len(ids) for ids in full]


def test_pairs_stay_pairs_across_stores(tmp_path: Path) -> None:
    random, examples = np.random.default_rng(0), []
    for index in range(2):
        sizes = random.integers(1, 20, (400, 2)).tolist()
        examples.append(
            [{"source": [10 + index, row] + [4] * s, "target": [20 + index, row] + [5] * t}
             for row, (s, t) in enumerate(sizes)]
        )  # fmt: skip
        write_store(tmp_path / f"{index}", examples[index], {"source": 999, "target": 999}, {})
    batches = Batches([(Store(tmp_path / f"{index}"), 1.0) for index in range(2)], BatchConfig(tokens=300), 1)
    for rows in batches.epoch(0):
        batch = collate(batches.stores, rows, PAIRS)
        wanted = [examples[store][row] for store, row in zip(*map(np.ndarray.tolist, rows[:2]), strict=True)]
        assert batch.inputs is not None
        for place, example in enumerate(wanted):
            source, target = (side.values[place, side.mask()[place]].tolist() for side in batch[:2])
            assert source == [*example["source"], 2]
            assert target == [1, *example["target"], 2]
        assert batch.units == sum(len(example["target"]) + 1 for example in wanted)
        assert batch.inputs.values.numel() <= 300 and batch.targets.values[:, :-1].numel() <= 300


def test_rows_of_a_language_model_get_nothing_added(tmp_path: Path) -> None:
    write_store(tmp_path / "s", [{"target": [2, 7, 8]}, {"target": [8, 9]}], {"target": 99}, {})
    batch = collate([Store(tmp_path / "s")], Rows(np.array([0, 0]), np.array([1, 0])), ROWS)
    assert batch.inputs is None
    assert batch.targets.values.tolist() == [[8, 9, 0], [2, 7, 8]]
    assert batch.targets.lengths.tolist() == [2, 3]
    assert batch.units == 3
