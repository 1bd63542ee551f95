"""Features of nodes and of graphs in which nothing is learnt, for the baselines of graph models.

Shapes: N nodes, F features, E edges, B graphs.
"""

import torch
from torch import Tensor

from transduce.core.graphs import Graphs, SparseRows


def two_hops(graph: Graphs) -> Tensor:
    """S S X (N, F) of the nodes of one graph, S = D^-1/2 (A + I) D^-1/2: simple graph convolution (Wu et al. 2019).

    Where edges are directed, D counts those from a node and those to it.
    """
    count = graph.nodes
    own = torch.arange(count)
    target, source = (torch.cat([ends.cpu(), own]) for ends in (graph.target, graph.source))
    edge_E = (target * count + source).unique()  # type: ignore[no-untyped-call]  # a loop that is there counts once
    target, source = edge_E // count, edge_E % count
    reached_N, left_N = (torch.bincount(ends, minlength=count).double() for ends in (target, source))
    share_E = (reached_N[target] * left_N[source]).rsqrt().float()
    hop_NN = torch.sparse_coo_tensor(torch.stack([target, source]), share_E, (count, count), check_invariants=True)
    hop_NN = hop_NN.coalesce()
    return torch.sparse.mm(hop_NN, torch.sparse.mm(hop_NN, _dense(graph.features)))


def counts(graphs: Graphs) -> Tensor:
    """log(1 + x) (B, F + 2) of what each graph has: the sums of its nodes' features, its nodes and its edges."""
    graph_N, features_NF = graphs.graph_of_each().cpu(), _dense(graphs.features)
    number = len(graphs.sizes)
    sum_BF = torch.zeros(number, features_NF.shape[1]).index_add(0, graph_N, features_NF)
    edges_B = torch.bincount(graph_N[graphs.target.cpu()], minlength=number)
    return torch.cat([sum_BF, graphs.sizes.cpu()[:, None], edges_B[:, None]], dim=1).clamp(min=0).log1p()


def _dense(features: Tensor | SparseRows) -> Tensor:
    """(N, F)."""
    if isinstance(features, Tensor):
        return features.cpu().float()
    row_K = torch.repeat_interleave(torch.arange(len(features)), features.row_starts.diff().cpu())
    dense_NF = torch.zeros(len(features), features.width)
    dense_NF[row_K, features.columns.cpu().long()] = features.values.cpu()
    return dense_NF
