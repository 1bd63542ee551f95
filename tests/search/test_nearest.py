"""The nearest vectors, beside all distances by NumPy in float64."""

import importlib.util
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.search import nearest
from transduce.search.nearest import ExactNeighbors, FaissNeighbors


def by_brute_force(keys_ND: Tensor, query_D: Tensor, count: int) -> tuple[list[float], list[int]]:
    keys: NDArray[np.float64] = keys_ND.numpy().astype(np.float64)
    query = query_D.numpy().astype(np.float64)
    distances = [float(((key - query) ** 2).sum()) for key in keys]
    order = sorted(range(len(keys)), key=lambda place: (distances[place], place))[:count]
    return [distances[place] for place in order], order


def drawn(entries: int, width: int, seed: int = 1) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    keys_ND = torch.randn(entries, width, generator=generator).half()
    return keys_ND, torch.randn(7, width, generator=generator)


@pytest.mark.parametrize(("entries", "count", "block"), [(300, 5, 1000), (300, 5, 32), (4, 9, 1000), (50, 50, 16)])
@pytest.mark.parametrize("kept", [0, 2**28])
def test_the_nearest_are_those_of_all_distances(
    entries: int, count: int, block: int, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "BLOCK", block)
    monkeypatch.setattr(nearest, "KEPT", kept)
    monkeypatch.setattr(nearest, "QUERIES", 3)
    keys_ND, query_QD = drawn(entries, 12)
    found = ExactNeighbors(keys_ND).nearest(query_QD, count)
    for row, query_D in enumerate(query_QD):
        distances, order = by_brute_force(keys_ND, query_D, count)
        assert found.entry[row].tolist() == order
        np.testing.assert_allclose(found.distance[row].numpy(), distances, rtol=1e-12)


def test_equal_keys_are_ordered_by_number_however_many_there_are() -> None:
    keys_ND, query_QD = drawn(400, 6)
    keys_ND[50:350] = keys_ND[50]  # more than are candidates at first
    query_QD[0] = keys_ND[50].float() + 1e-3
    found = ExactNeighbors(keys_ND).nearest(query_QD, 8)
    assert found.entry[0].tolist() == list(range(50, 58))
    assert len(set(found.distance[0].tolist())) == 1


def test_keys_that_rounding_of_the_product_hides_are_found() -> None:
    """Far from the origin a product in fp32 cannot tell near keys apart."""
    generator = torch.Generator().manual_seed(2)
    keys_ND = (torch.randint(0, 4, (500, 8), generator=generator) + 4096.0).half()
    query_QD = keys_ND[:5].float() + 0.4
    found = ExactNeighbors(keys_ND).nearest(query_QD, 6)
    for row, query_D in enumerate(query_QD):
        assert found.entry[row].tolist() == by_brute_force(keys_ND, query_D, 6)[1]


def test_alone_and_in_a_batch_the_same() -> None:
    keys_ND, query_QD = drawn(2000, 16)
    index = ExactNeighbors(keys_ND)
    together = index.nearest(query_QD, 8)
    for row in range(len(query_QD)):
        alone = index.nearest(query_QD[row : row + 1], 8)
        assert torch.equal(alone.entry[0], together.entry[row])
        assert torch.equal(alone.distance[0], together.distance[row])


@pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="faiss is an extra")
def test_faiss_finds_nearly_all_and_gives_their_true_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "EXACT", 100)
    keys_ND, query_QD = drawn(3000, 8)
    index = nearest.neighbors_of(keys_ND)
    assert isinstance(index, FaissNeighbors)
    found, hits = index.nearest(query_QD, 8), 0
    for row, query_D in enumerate(query_QD):
        distances, order = by_brute_force(keys_ND, query_D, 3000)
        hits += len(set(order[:8]) & set(found.entry[row].tolist()))
        by_number: dict[Any, float] = dict(zip(order, distances, strict=True))
        wanted = [by_number[entry] for entry in found.entry[row].tolist()]
        np.testing.assert_allclose(found.distance[row].numpy(), wanted, rtol=1e-12)
        assert wanted == sorted(wanted)
    assert hits >= 0.8 * 8 * len(query_QD)


@pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="faiss is an extra")
def test_faiss_tells_where_its_cells_hold_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "LOOKED_AT", 1)
    keys_ND, query_QD = drawn(60, 4)
    found = FaissNeighbors(keys_ND).nearest(query_QD, 20)
    assert bool(found.distance.isinf().any())
    near = found.distance.isfinite()
    assert bool(near[:, 0].all())
    for row in range(len(query_QD)):
        named = found.entry[row][near[row]].tolist()
        assert len(named) == len(set(named))
