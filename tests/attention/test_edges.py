"""Attention along edges against dense attention under a mask, by values, gradients and permutations."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.attention import capture
from transduce.attention.edges import (
    AdditiveEdgeScore,
    DotEdgeScore,
    EdgeAttention,
    Edges,
    edge_softmax,
    read_edges,
    times_weight,
)
from transduce.core.graphs import Graphs, SparseRows
from transduce.data.structures.graphs import EdgeReading

N, H, D = 9, 3, 4


def drawn_edges(nodes: int = N, count: int = 20, seed: int = 0) -> Edges:
    """Random edges; nobody's edge ends at the last node, which has no edge to itself either."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(0, nodes - 1, (count, 2), generator=generator).numpy()
    source, target = EdgeReading(undirected=False, self_loops=False).read(pairs, nodes)
    return Edges.of(torch.from_numpy(source), torch.from_numpy(target), nodes)


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64, requires_grad=True)


def dense_loop(score: torch.nn.Module, query: Tensor, key: Tensor, value: Tensor, edges: Edges) -> Tensor:
    """The same from all pairs and a mask, head by head and node by node, as the papers write it."""
    mask = torch.zeros(edges.nodes, edges.nodes, dtype=torch.bool)
    mask[edges.target, edges.source] = True
    rows = []
    for t in range(edges.nodes):
        heads = []
        for h in range(query.shape[1]):
            if not mask[t].any():
                heads.append(torch.zeros(value.shape[2], dtype=value.dtype))
                continue
            if isinstance(score, AdditiveEdgeScore):
                a = torch.cat([score.query_HK[h], score.key_HK[h]])
                pairs = torch.stack([torch.cat([query[t, h], key[s, h]]) for s in range(edges.nodes)])
                scores = F.leaky_relu(pairs @ a, score.slope)
            else:
                scores = key[:, h] @ query[t, h] / query.shape[2] ** 0.5
            heads.append(scores.masked_fill(~mask[t], -torch.inf).softmax(0) @ value[:, h])
        rows.append(torch.stack(heads))
    return torch.stack(rows)


@pytest.mark.parametrize("kind", ["additive", "dot"])
def test_it_is_dense_attention_under_a_mask(kind: str) -> None:
    torch.manual_seed(0)
    score = (AdditiveEdgeScore(H, D) if kind == "additive" else DotEdgeScore()).double()
    attention, edges = EdgeAttention(score).double(), drawn_edges()
    query, key, value = drawn(N, H, D, seed=1), drawn(N, H, D, seed=2), drawn(N, H, D, seed=3)
    weighed = drawn(N, H, D, seed=4).detach()
    ours, theirs = attention(query, key, value, edges), dense_loop(score, query, key, value, edges)
    torch.testing.assert_close(ours, theirs)
    inputs = [query, key, value, *score.parameters()]
    for got, expected in zip(
        torch.autograd.grad((ours * weighed).sum(), inputs),
        torch.autograd.grad((theirs * weighed).sum(), inputs),
        strict=True,
    ):
        torch.testing.assert_close(got, expected)


def test_gradients_are_those_of_finite_differences() -> None:
    edges = drawn_edges(count=12)
    score, value = drawn(len(edges.source), 2, seed=5), drawn(N, 2, 3, seed=6)
    assert torch.autograd.gradcheck(lambda s, v: read_edges(edge_softmax(s, edges), v, edges), (score, value))


def test_great_scores_do_not_overflow() -> None:
    edges = drawn_edges()
    score = drawn(len(edges.source), 1).detach() * 1e4
    alpha = edge_softmax(score, edges)
    assert alpha.isfinite().all()
    total = torch.zeros(N, 1, dtype=alpha.dtype).index_add(0, edges.target, alpha)
    torch.testing.assert_close(total, (edges.starts.diff() > 0).double()[:, None])


def test_renumbered_nodes_read_the_same() -> None:
    torch.manual_seed(0)
    attention, edges = EdgeAttention(AdditiveEdgeScore(H, D)).double(), drawn_edges()
    x, order = drawn(N, H, D).detach(), torch.randperm(N)
    place = torch.argsort(order)
    pairs = torch.stack([place[edges.source], place[edges.target]], 1).numpy()
    source, target = EdgeReading(undirected=False, self_loops=False).read(pairs, N)
    turned = Edges.of(torch.from_numpy(source), torch.from_numpy(target), N)
    torch.testing.assert_close(attention(x[order], x[order], x[order], turned), attention(x, x, x, edges)[order])


def test_a_capture_holds_the_weights_of_each_edge() -> None:
    attention, edges = EdgeAttention(DotEdgeScore(), dropout=0.5), drawn_edges()
    x = drawn(N, H, D).detach().float()
    with capture(attention) as record:
        attention(x, x, x, edges)
    [name] = record.of("edge", "encoder")
    [alpha_EH] = record[name]
    torch.testing.assert_close(alpha_EH, edge_softmax(DotEdgeScore()(x, x, edges), edges))


def test_training_drops_single_edges_of_single_heads() -> None:
    attention, edges = EdgeAttention(DotEdgeScore(), dropout=0.5), drawn_edges()
    x = drawn(N, H, D).detach().float()
    alpha_EH = edge_softmax(DotEdgeScore()(x, x, edges), edges)
    names_NHN = torch.eye(N)[:, None].expand(N, H, N)  # what is read tells which edges were
    torch.manual_seed(0)
    read_EH = attention(x, x, names_NHN, edges)[edges.target, :, edges.source]
    dropped_EH = read_EH == 0
    torch.testing.assert_close(read_EH, 2 * alpha_EH * ~dropped_EH)
    assert 0.3 < dropped_EH.float().mean() < 0.7
    assert (dropped_EH.any(1) & ~dropped_EH.all(1)).any()
    torch.testing.assert_close(attention.eval()(x, x, names_NHN, edges)[edges.target, :, edges.source], alpha_EH)


@pytest.mark.parametrize("sparse", [False, True])
def test_training_drops_single_features(sparse: bool) -> None:
    dense = drawn(40, 11).detach() * (drawn(40, 11, seed=2).detach() > 0.5)
    rows, columns = dense.nonzero(as_tuple=True)
    known = SparseRows.of(columns, dense[rows, columns], torch.searchsorted(rows, torch.arange(41)), 11)
    weight = torch.eye(11, dtype=torch.float64, requires_grad=True)
    torch.manual_seed(0)
    product = times_weight(known if sparse else dense, weight, 0.5)
    kept = product.detach() != 0
    torch.testing.assert_close(product.detach(), 2 * dense * kept)
    assert 0.3 < kept[dense != 0].double().mean() < 0.7
    gradient = drawn(40, 11, seed=3).detach()
    (found,) = torch.autograd.grad(product, weight, gradient)
    torch.testing.assert_close(found, product.detach().mT @ gradient)  # of what was read, not of what was dropped


def test_bfloat16_is_weighed_in_whole_precision() -> None:
    edges, x = drawn_edges(), drawn(N, H, D).detach().bfloat16()
    attention = EdgeAttention(DotEdgeScore())
    with capture(attention) as record:
        read = attention(x, x, x, edges)
    [alpha_EH] = record[record.of("edge", "encoder")[0]]
    assert (alpha_EH.dtype, read.dtype) == (torch.float32, torch.bfloat16)
    assert alpha_EH.ne(alpha_EH.bfloat16()).any()
    known = SparseRows.of(torch.tensor([0, 1]), torch.tensor([1.0, 2.0]), torch.tensor([0, 1, 2]), 2)
    assert times_weight(known, torch.eye(2, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_additive_scores_begin_as_in_the_paper() -> None:
    """GAT's: Glorot's bounds of a vector of 2 K numbers and one output, and a slope of 0.2."""
    torch.manual_seed(0)
    score, bound = AdditiveEdgeScore(50, 40), (6 / 81) ** 0.5
    for weight in score.parameters():
        assert 0.99 * bound < weight.max() <= bound
        assert -0.99 * bound > weight.min() >= -bound
    edge = Edges.of(torch.tensor([0]), torch.tensor([0]), 1)
    below = -torch.ones(1, 50, 40) * score.query_HK.sign()
    nothing = torch.zeros(1, 50, 40)
    torch.testing.assert_close(score(below, nothing, edge)[0], -0.2 * score.query_HK.abs().sum(1))


def test_an_empty_graph_reads_nothing() -> None:
    none = torch.zeros(0, dtype=torch.int64)
    x = torch.randn(3, H, D)
    read = EdgeAttention(AdditiveEdgeScore(H, D))(x, x, x, Edges.of(none, none, 3))
    assert torch.equal(read, torch.zeros(3, H, D))


def test_sparse_features_are_dense_ones() -> None:
    dense = drawn(7, 11).detach() * (drawn(7, 11, seed=2).detach() > 0.8)
    dense[3] = 0  # a node without features
    rows, columns = dense.nonzero(as_tuple=True)
    starts = torch.searchsorted(rows, torch.arange(8))
    sparse = SparseRows.of(columns, dense[rows, columns], starts, 11)
    weight = drawn(11, 5, seed=3)
    torch.testing.assert_close(times_weight(sparse, weight), dense @ weight)
    assert torch.autograd.gradcheck(lambda w: times_weight(sparse, w), (weight,))
    assert (len(sparse), sparse.width) == (7, 11)


def test_graphs_are_cut_out_of_a_batch() -> None:
    source, target = torch.tensor([1, 0, 1, 3, 2, 4]), torch.tensor([0, 1, 1, 2, 3, 4])
    both = Graphs(torch.arange(10.0).view(5, 2), source, target, torch.tensor([2, 2, 1]))
    part = both.rows(slice(1, 3))
    assert (part.source.tolist(), part.target.tolist(), part.sizes.tolist()) == ([1, 0, 2], [0, 1, 2], [2, 1])
    assert torch.equal(part.features, both.features[2:])
    assert part.graph_of_each().tolist() == [0, 0, 1]
    chosen = both._replace(sizes=torch.tensor([5]), chosen=torch.tensor([4, 0, 2]))
    assert chosen.rows(slice(1, None)).chosen.tolist() == [0, 2]
    assert (chosen.examples, both.examples) == (3, 3)
