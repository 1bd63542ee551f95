"""Pooling: the nodes of each graph become one vector.

Shapes: N nodes of all graphs, B graphs, X width.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from transduce.attention.capture import Role, Side, active_record
from transduce.attention.edges import Edges, edge_softmax
from transduce.core.graphs import Graphs

GraphPoolingKind = Literal["mean", "sum", "max", "attention"]


class GraphPooling(nn.Module):
    """Mean, sum or maximum of a graph's nodes; or their mean by the weights softmax_n(q . tanh(W x_n)).

    A capture records the weights of attention pooling, (N, 1).
    """

    role: Role = "other"
    side: Side = "encoder"

    def __init__(self, width: int, kind: GraphPoolingKind) -> None:
        super().__init__()
        self.kind = kind
        self.key = nn.Linear(width, width) if kind == "attention" else None
        self.query = nn.Linear(width, 1, bias=False) if kind == "attention" else None

    def forward(self, x_NX: Tensor, graphs: Graphs) -> Tensor:
        """(B, X)."""
        starts = torch.cat([graphs.sizes.new_zeros(1), graphs.sizes.cumsum(0)])
        if self.kind == "max":
            return torch.segment_reduce(x_NX, "max", offsets=starts, axis=0)
        graph_N = graphs.graph_of_each()
        if self.key is not None and self.query is not None:
            edges = Edges(torch.arange(len(x_NX), device=x_NX.device), graph_N, starts)
            alpha_N1 = edge_softmax(self.query(self.key(x_NX).tanh()), edges)
            if (record := active_record()) is not None:
                record.take(self, alpha_N1)
            x_NX = x_NX * alpha_N1.to(x_NX.dtype)
        sum_BX = x_NX.new_zeros(len(graphs.sizes), x_NX.shape[1]).index_add(0, graph_N, x_NX)
        return sum_BX / graphs.sizes[:, None] if self.kind == "mean" else sum_BX
