"""Graphs, the input of models that attend along edges.

Shapes: N nodes of all graphs together, E edges of all, F features of a node, B graphs, or chosen nodes of one graph,
K features that are not 0.
"""

from typing import NamedTuple, Self

import torch
from torch import Tensor


class SparseRows(NamedTuple):
    """A matrix (N, F) of which most numbers are 0, both by its rows and by its columns.

    columns, values: (K,) of each number that is not 0, row by row. row_starts: (N + 1,) where each row begins.
    rows, order: (K,) the row of each number and its place in `values`, column by column. column_starts: (F + 1,).
    """

    columns: Tensor
    values: Tensor
    row_starts: Tensor
    rows: Tensor
    order: Tensor
    column_starts: Tensor

    @classmethod
    def of(cls, columns: Tensor, values: Tensor, row_starts: Tensor, width: int) -> Self:
        """From the numbers row by row."""
        count = row_starts.diff()
        row = torch.repeat_interleave(torch.arange(len(count), device=count.device), count)
        order = torch.argsort(columns, stable=True)
        bounds = torch.arange(width + 1, device=columns.device)
        return cls(columns, values, row_starts, row[order], order, torch.searchsorted(columns[order], bounds))

    def __len__(self) -> int:
        return len(self.row_starts) - 1

    @property
    def width(self) -> int:
        """F."""
        return len(self.column_starts) - 1

    def to(self, device: torch.device) -> Self:
        return type(self)(*(each.to(device) for each in self))


class Graphs(NamedTuple):
    """Graphs side by side: one graph whose parts no edge joins. Or one graph of which some nodes are asked for.

    features: (N, F) of each node.
    source, target: (E,) int64: edge e lets the node target[e] read the node source[e]; in the order of the targets.
    sizes: (B,) int64, the nodes of each graph.
    chosen: (B,) int64, the nodes that are asked for, of the one graph that there is then; None = whole graphs are.
    """

    features: Tensor | SparseRows
    source: Tensor
    target: Tensor
    sizes: Tensor
    chosen: Tensor | None = None

    @property
    def nodes(self) -> int:
        """N."""
        return len(self.features) if isinstance(self.features, SparseRows) else self.features.shape[0]

    @property
    def examples(self) -> int:
        """B."""
        return len(self.sizes) if self.chosen is None else len(self.chosen)

    def graph_of_each(self) -> Tensor:
        """(N,) int64: the number of the graph that each node belongs to."""
        return torch.repeat_interleave(torch.arange(len(self.sizes), device=self.sizes.device), self.sizes)

    def rows(self, place: slice) -> Self:
        """These graphs alone; of chosen nodes, these nodes in the whole graph."""
        if self.chosen is not None:
            return self._replace(chosen=self.chosen[place])
        assert isinstance(self.features, Tensor)
        ends = self.sizes.cumsum(0)
        first, last, _ = place.indices(len(self.sizes))
        begin = int(ends[first - 1]) if first else 0
        end = max(begin, int(ends[last - 1])) if last else 0
        low, high = torch.searchsorted(self.target, self.target.new_tensor([begin, end])).tolist()
        edges = self.source[low:high] - begin, self.target[low:high] - begin
        return type(self)(self.features[begin:end], *edges, self.sizes[place])

    def to(self, device: torch.device) -> Self:
        features, chosen = self.features.to(device), None if self.chosen is None else self.chosen.to(device)
        source, target, sizes = (each.to(device) for each in (self.source, self.target, self.sizes))
        return self._replace(features=features, source=source, target=target, sizes=sizes, chosen=chosen)
