"""Two hops of features against dense matrices, and logistic regression against its own condition for a minimum."""

import numpy as np
import pytest
import torch

from transduce.core.graphs import Graphs, SparseRows
from transduce.inference.graph_features import counts, two_hops
from transduce.inference.logistic_regression import STRENGTHS, LogisticRegression

NODES, FEATURES = 7, 5


def graph(directed: bool, sparse: bool) -> tuple[Graphs, np.ndarray, np.ndarray]:
    """A random one with loops at some nodes; its matrix of edges, and its features."""
    draw = np.random.default_rng(3 + directed)
    edges = draw.random((NODES, NODES)) < 0.3
    edges = edges if directed else edges | edges.T
    features = draw.random((NODES, FEATURES)) * (draw.random((NODES, FEATURES)) < 0.5)
    target, source = map(torch.from_numpy, edges.nonzero())
    rows, columns = features.nonzero()
    starts = torch.from_numpy(np.searchsorted(rows, np.arange(NODES + 1)))
    given = torch.from_numpy(features).float()
    values = given[rows, columns]
    held = SparseRows.of(torch.from_numpy(columns), values, starts, FEATURES) if sparse else given
    return Graphs(held, source, target, torch.tensor([NODES])), edges, features


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_two_hops_equal_dense_matrices(directed: bool, sparse: bool) -> None:
    made, edges, features = graph(directed, sparse)
    whole = (edges | np.eye(NODES, dtype=bool)).astype(float)
    hop = np.diag(whole.sum(1) ** -0.5) @ whole @ np.diag(whole.sum(0) ** -0.5)
    np.testing.assert_allclose(two_hops(made).numpy(), hop @ hop @ features, rtol=1e-5)


def test_counts_are_those_of_each_graph() -> None:
    features = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    made = Graphs(features, torch.tensor([1, 0, 1]), torch.tensor([0, 1, 1]), torch.tensor([2, 1]))
    np.testing.assert_allclose(counts(made).exp() - 1, [[1, 1, 2, 3], [1, 0, 1, 0]], rtol=1e-5)


def test_the_regression_is_at_its_minimum_and_validation_chooses() -> None:
    draw = torch.Generator().manual_seed(1)
    read, label = torch.randn(40, 6, generator=draw), torch.randint(0, 3, (40,), generator=draw)
    for strength in (0.1, 1.0):
        weight, bias, _ = LogisticRegression.fit((read, label), 3, strength)
        share = (read @ weight + bias).softmax(1) - torch.nn.functional.one_hot(label, 3)
        slope = read.T @ share / 40 + strength * weight
        assert slope.abs().max() < 1e-4
        assert share.mean(0).abs().max() < 1e-4
    held_out = torch.randn(60, 6, generator=draw), torch.randint(0, 3, (60,), generator=draw)
    chosen = LogisticRegression.chosen((read, label), held_out, 3)
    right = {
        strength: (LogisticRegression.fit((read, label), 3, strength).predict(held_out[0]) == held_out[1]).sum()
        for strength in STRENGTHS
    }
    assert right[chosen.strength] == max(right.values())
