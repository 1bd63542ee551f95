"""Batches: every row as often as due, budgets kept, order fixed by (seed, epoch), ranks share everything."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from encoded import store_of
from transduce.core.errors import InputError
from transduce.data.batches import BatchConfig, Batches, Rows
from transduce.data.store import Store, write_store

FEW = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
BUDGETS = st.integers(1, 400)
SEEDS = st.integers(0, 1 << 32)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Store]:
    """Three blocks and a bit, and one small store; lengths as skewed as sentences'."""
    folder, random = tmp_path_factory.mktemp("stores"), np.random.default_rng(3)
    drawn = [np.minimum(random.geometric(0.08, (size, 2)), 60).tolist() for size in (13_000, 700)]
    return [store_of(folder / f"{index}.arrow", lengths) for index, lengths in enumerate(drawn)]


def shown(batches: list[Rows]) -> Counter[tuple[int, int]]:
    return Counter((int(s), int(r)) for batch in batches for s, r in zip(batch.stores, batch.rows, strict=True))


def same(some: list[Rows], others: list[Rows]) -> bool:
    return len(some) == len(others) and all(
        np.array_equal(a.rows, b.rows) and np.array_equal(a.stores, b.stores) for a, b in zip(some, others, strict=True)
    )


@given(seed=SEEDS, epoch=st.integers(0, 9), budget=BUDGETS, pool=st.integers(1, 5))
@FEW
def test_every_row_once_and_no_batch_over_budget(
    stores: list[Store], seed: int, epoch: int, budget: int, pool: int
) -> None:
    batches = list(Batches([(stores[1], 1.0)], BatchConfig(tokens=budget, pool=pool), seed).epoch(epoch))
    assert shown(batches) == Counter({(0, row): 1 for row in range(len(stores[1]))})
    source, target = stores[1].all_lengths("source") + 1, stores[1].all_lengths("target") + 1
    for batch in batches:
        longest = max(source[batch.rows].max(), target[batch.rows].max())
        assert len(batch.rows) == 1 or len(batch.rows) * longest <= budget


@pytest.mark.parametrize("pool", [1, 2, 32])
def test_every_row_once_over_several_blocks_and_stores(stores: list[Store], pool: int) -> None:
    batches = Batches([(store, 1.0) for store in stores], BatchConfig(tokens=900, pool=pool), 1)
    rows = {(index, row): 1 for index, store in enumerate(stores) for row in range(len(store))}
    for epoch in (0, 1):
        assert shown(list(batches.epoch(epoch))) == Counter(rows)


def test_order_is_fixed_by_seed_and_epoch(stores: list[Store]) -> None:
    def order(seed: int, epoch: int) -> list[Rows]:
        again = [(Store(store.path), 1.0) for store in stores]
        return list(Batches(again, BatchConfig(tokens=900, pool=2), seed).epoch(epoch))

    assert same(order(1, 0), order(1, 0))
    assert not same(order(1, 0), order(1, 1))
    assert not same(order(1, 0), order(2, 0))
    assert not same(order(0, 1), order(1, 0))


def test_the_order_of_one_seed_stays_what_it_was(tmp_path: Path) -> None:
    """Training resumes across versions only if this never changes."""
    store = store_of(tmp_path / "s.arrow", [(1, 1), (2, 2), (3, 3), (1, 2), (2, 1), (3, 1)])
    batches = Batches([(store, 1.5)], BatchConfig(tokens=8), 1).epoch(2)
    assert [batch.rows.tolist() for batch in batches] == [[1, 3], [5, 1], [4, 5], [2, 2], [0]]


@given(start=st.integers(0, 700))
@FEW
def test_start_skips_exactly_so_many(stores: list[Store], start: int) -> None:
    batches = Batches([(stores[1], 1.5)], BatchConfig(tokens=200, pool=1), 5)
    assert same(list(batches.epoch(2, start)), list(batches.epoch(2))[start:])


def test_skipping_reads_no_tokens(stores: list[Store]) -> None:
    class Lengths(Store):
        def read(self, field: str, rows: Any) -> Any:
            raise AssertionError("planning read tokens")

    batches = Batches([(Lengths(stores[0].path), 1.0)], BatchConfig(tokens=900, pool=1), 5)
    assert len(list(batches.epoch(0, start=100))) == batches.count(0) - 100


@pytest.mark.parametrize("world", [1, 2, 3, 64])
def test_processes_share_every_batch_row_by_row(stores: list[Store], world: int) -> None:
    """64 of them see each pair exactly once an epoch, and no two differ by more than one row."""
    batches = Batches([(stores[1], 1.0)], BatchConfig(tokens=900), 5)
    parts = [[batch.share(rank, world) for batch in batches.epoch(1)] for rank in range(world)]
    counts = shown([batch for rank in parts for batch in rank])
    assert counts == {(0, row): 1 for row in range(len(stores[1]))}
    for step in zip(*parts, strict=True):
        sizes = [len(part.rows) for part in step]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("weight", [0.5, 1.0, 2.0, 2.5, 0.001])
def test_weights_are_kept_exactly(stores: list[Store], weight: float) -> None:
    batches = Batches([(stores[0], weight)], BatchConfig(pool=2), 5)
    counts = [shown(list(batches.epoch(epoch))) for epoch in (0, 1)]
    for count in counts:
        assert count.total() == int(len(stores[0]) * weight)
        assert set(count.values()) <= {int(weight), int(weight) + 1}
    assert (counts[0] == counts[1]) == (weight == int(weight))


@given(seed=SEEDS, cuts=st.integers(1, 5), weight=st.sampled_from([1.0, 2.0, 0.5, 1.25]), pool=st.integers(1, 5))
@settings(FEW, max_examples=8)
def test_of_an_example_that_is_cut_in_several_ways_each_showing_takes_one(
    tmp_path_factory: pytest.TempPathFactory, seed: int, cuts: int, weight: float, pool: int
) -> None:
    folder, size, other = tmp_path_factory.mktemp("cuts"), 4200, 37  # two blocks, and another corpus
    made = [store_of(folder / f"{cut}.arrow", [(1 + cut, 1)] * size) for cut in range(cuts)]
    more = [store_of(folder / f"more {cut}.arrow", [(1, 1)] * other) for cut in range(cuts)]
    corpora = [*((store, weight) for store in made), *((store, 1.0) for store in more)]
    batches = Batches(corpora, BatchConfig(tokens=300, pool=pool), seed, cuts)
    counts = [shown(list(batches.epoch(epoch))) for epoch in (0, 1)]
    for count in counts:
        rows = Counter[tuple[bool, int]]()
        for (store, row), times in count.items():
            rows[store < cuts, row] += times
        assert {row: rows[False, row] for row in range(other)} == dict.fromkeys(range(other), 1)
        first = [rows[True, row] for row in range(size)]
        assert sum(first) == int(size * weight) and max(first) - min(first) <= (weight % 1 > 0)
        of_each = [sum(times for (store, _), times in count.items() if store == cut) for cut in range(cuts)]
        assert max(of_each) - min(of_each) <= 4  # blocks and showings are dealt out one by one
    assert cuts == 1 or counts[0] != counts[1]


def test_a_cut_that_is_too_long_for_a_filter_is_left_out_once(tmp_path: Path) -> None:
    made = [store_of(tmp_path / f"{cut}.arrow", [(1, 1)] * size) for cut, size in enumerate((50, 40))]
    batches = Batches([(store, 1.0) for store in made], BatchConfig(tokens=30), 3, cuts=2)
    every = Counter[int]()
    for epoch in range(12):
        count = shown(list(batches.epoch(epoch)))
        assert set(count.values()) == {1} and all(row < (50, 40)[store] for store, row in count)
        every.update(row for _, row in count)
    assert all(every[row] == 12 for row in range(40)) and all(0 < every[row] < 12 for row in range(40, 50))


def test_weights_by_which_an_epoch_would_be_empty_are_refused(tmp_path: Path) -> None:
    made = [store_of(tmp_path / f"{number}.arrow", [(1, 1)] * 7) for number in range(2)]
    with pytest.raises(InputError, match=r"the weights \(0\.1\) are so small that an epoch shows none of 7 examples"):
        Batches([(made[0], 0.1)], BatchConfig(), 0)
    batches = Batches([(made[0], 0.1), (made[1], 1.0)], BatchConfig(), 0)
    assert shown(list(batches.epoch(0))) == {(1, row): 1 for row in range(7)}


def test_batches_are_random_and_full(stores: list[Store]) -> None:
    batches = list(Batches([(stores[0], 1.0)], BatchConfig(tokens=1000), 5).epoch(0))
    longest = [max(stores[0].all_lengths(f)[batch.rows].max() for f in ("source", "target")) for batch in batches]
    used = [len(batch.rows) * (side + 1) for batch, side in zip(batches, longest, strict=True)]
    assert np.mean(used) > 900
    assert abs(np.corrcoef(longest[:-1], longest[1:])[0, 1]) < 0.2  # lengths do not rise through the epoch
    again = list(Batches([(stores[0], 1.0)], BatchConfig(tokens=1000), 5).epoch(1))
    company = [{frozenset(batch.rows.tolist()) for batch in epoch} for epoch in (batches, again)]
    assert len(company[0] & company[1]) < len(company[0]) / 10


def test_rows_of_a_language_model_count_what_they_predict(tmp_path: Path) -> None:
    write_store(tmp_path / "s.arrow", [{"target": [4] * 65}] * 10, {"target": 9}, {})
    batches = list(Batches([(Store(tmp_path / "s.arrow"), 1.0)], BatchConfig(tokens=256), 0).epoch(0))
    sizes = [len(batch.rows) for batch in batches]
    assert max(sizes) == 4 and sum(sizes) == 10


def test_stores_must_agree_on_their_fields(stores: list[Store], tmp_path: Path) -> None:
    write_store(tmp_path / "s.arrow", [{"target": [4]}], {"target": 9}, {})
    with pytest.raises(InputError, match="same fields"):
        Batches([(stores[0], 1.0), (Store(tmp_path / "s.arrow"), 1.0)], BatchConfig(), 0)
    with pytest.raises(InputError, match="no store"):
        Batches([], BatchConfig(), 0)
