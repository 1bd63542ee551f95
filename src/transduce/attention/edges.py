"""Attention along the edges of a graph: each node reads its neighbors alone, and no other pair is ever computed.

    alpha_ts = exp e_ts / sum_{s' -> t} exp e_ts',   o_t = sum_{s -> t} alpha_ts v_s

The softmax is over the edges that end at a node. A node at which no edge ends reads nothing, which is 0.

Shapes: N nodes, E edges, H heads, K width of queries and keys of a head, D width of its values, F features.
"""

from typing import Any, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention.capture import Role, Side, active_record
from transduce.attention.dropout import Dropout
from transduce.attention.dropout import dropout as dropped
from transduce.core.graphs import SparseRows

WHOLE = (torch.float32, torch.float64)


class Edges(NamedTuple):
    """source, target: (E,) int64: the node target[e] reads source[e]; in the order of the targets. starts: (N + 1,)."""

    source: Tensor
    target: Tensor
    starts: Tensor

    @classmethod
    def of(cls, source: Tensor, target: Tensor, nodes: int) -> Self:
        """Edges that are in the order of their targets, between so many nodes."""
        return cls(source, target, torch.searchsorted(target, torch.arange(nodes + 1, device=target.device)))

    @property
    def nodes(self) -> int:
        """N."""
        return len(self.starts) - 1


def edge_softmax(score_EH: Tensor, edges: Edges) -> Tensor:
    """Weights (E, H) that add up to 1 over the edges of each target; fp32, or fp64 where the scores are."""
    score_EH = score_EH if score_EH.dtype in WHOLE else score_EH.float()
    with torch.no_grad():  # what is subtracted from all scores of a node changes none of its weights
        most_NH = torch.segment_reduce(score_EH.detach(), "max", offsets=edges.starts, axis=0)
        most_EH = most_NH.index_select(0, edges.target)
    exp_EH = (score_EH - most_EH).exp()
    sum_NH = exp_EH.new_zeros(edges.nodes, exp_EH.shape[1]).index_add(0, edges.target, exp_EH)
    return exp_EH / sum_NH.index_select(0, edges.target)


def read_edges(alpha_EH: Tensor, value_NHD: Tensor, edges: Edges) -> Tensor:
    """(N, H, D): what each node reads of the nodes at the other ends of its edges."""
    read_EHD = value_NHD.index_select(0, edges.source) * alpha_EH[..., None].to(value_NHD.dtype)
    out_NX = value_NHD.new_zeros(edges.nodes, read_EHD[0].numel() if len(read_EHD) else value_NHD[0].numel())
    return out_NX.index_add(0, edges.target, read_EHD.flatten(1)).view(-1, *value_NHD.shape[1:])


class AdditiveEdgeScore(nn.Module):
    """e_ts = LeakyReLU(a . [q_t ; k_s]) (Velickovic et al. 2018, equation 3): a sum of two numbers, one a node each."""

    def __init__(self, heads: int, width: int, slope: float = 0.2) -> None:
        super().__init__()
        self.slope = slope
        self.query_HK = nn.Parameter(torch.empty(heads, width))
        self.key_HK = nn.Parameter(torch.empty(heads, width))
        for weight in (self.query_HK, self.key_HK):
            nn.init.uniform_(weight, -((6 / (2 * width + 1)) ** 0.5), (6 / (2 * width + 1)) ** 0.5)

    def forward(self, query_NHK: Tensor, key_NHK: Tensor, edges: Edges) -> Tensor:
        """(E, H)."""
        query_NH, key_NH = (query_NHK * self.query_HK).sum(-1), (key_NHK * self.key_HK).sum(-1)
        score_EH = query_NH.index_select(0, edges.target) + key_NH.index_select(0, edges.source)
        return F.leaky_relu(score_EH, self.slope)


class DotEdgeScore(nn.Module):
    """e_ts = q_t . k_s / sqrt(K), the Transformer's."""

    def forward(self, query_NHK: Tensor, key_NHK: Tensor, edges: Edges) -> Tensor:
        """(E, H)."""
        query_EHK, key_EHK = query_NHK.index_select(0, edges.target), key_NHK.index_select(0, edges.source)
        return (query_EHK * key_EHK).sum(-1) * query_NHK.shape[-1] ** -0.5


class EdgeAttention(nn.Module):
    """Scores, the softmax over the edges of each node, dropout of single edges, and what is read.

    A capture records the weights (E, H), before dropout, in the order of the edges.
    """

    role: Role = "edge"

    def __init__(self, score: nn.Module, dropout: float = 0.0, side: Side = "encoder") -> None:
        super().__init__()
        self.score, self.dropout, self.side = score, Dropout(dropout), side

    def forward(self, query_NHK: Tensor, key_NHK: Tensor, value_NHD: Tensor, edges: Edges) -> Tensor:
        """(N, H, D)."""
        alpha_EH = edge_softmax(self.score(query_NHK, key_NHK, edges), edges)
        if (record := active_record()) is not None:
            record.take(self, alpha_EH)
        return read_edges(self.dropout(alpha_EH), value_NHD, edges)


def times_weight(features: Tensor | SparseRows, weight_FD: Tensor, rate: float = 0.0) -> Tensor:
    """(N, D): features (N, F) @ weight, with dropout of single features; zeros of sparse features cost nothing."""
    if isinstance(features, Tensor):
        return dropped(features, rate) @ weight_FD
    values_K = dropped(features.values, rate).to(weight_FD.dtype)
    product: Tensor = _SparseProduct.apply(features, values_K, weight_FD)  # type: ignore[no-untyped-call]
    return product


class _SparseProduct(torch.autograd.Function):
    """Rows of sparse numbers times a matrix; the gradient is the transposed numbers times the gradient."""

    @staticmethod
    def forward(ctx: Any, features: SparseRows, values_K: Tensor, weight_FD: Tensor) -> Tensor:
        ctx.features = features
        ctx.save_for_backward(values_K)
        return _bags(features.columns, values_K, features.row_starts, weight_FD)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        (values_K,), features = ctx.saved_tensors, ctx.features
        turned_K = values_K.index_select(0, features.order)
        return None, None, _bags(features.rows, turned_K, features.column_starts, gradients[0].contiguous())


def _bags(index_K: Tensor, value_K: Tensor, starts: Tensor, table: Tensor) -> Tensor:
    return F.embedding_bag(index_K, table, starts, mode="sum", per_sample_weights=value_K, include_last_offset=True)
