"""Relative positions on a grid, with which attention can express a convolution (Cordonnier et al. 2020).

Shapes: B batch, H heads, T queries, S keys, E width of a head. T and S count cells row by row. For cells at any
position: N queries, K keys, R = 3 coordinates of r.
"""

import torch
from torch import Tensor, nn

from transduce.attention.relative import Relative


class Quadratic(Relative):
    """Each head attends to the cells around its centre D, which is a shift relative to the query.

        e_ts = .. + v . r,   v = -a (1, -2 D_1, -2 D_2),   r = (|d|^2, d_1, d_2)        (equation 9)

    d is the position of the key relative to the query, in rows and columns. Up to a constant, which the softmax
    ignores, v . r is -a |d - D|^2. With a large a, all weight is on one cell, and H heads are a convolution over H
    cells (theorem 1). If the projections of queries are 0, content has no effect.

    Args:
        heads: H.
        columns: the width of the grid, which may have any number of rows.
    """

    def __init__(self, heads: int, columns: int) -> None:
        super().__init__(heads, head_width=0, causal=False)
        self.columns = columns
        self.centre_H2 = nn.Parameter(torch.randn(heads, 2))
        self.sharpness_H = nn.Parameter(torch.ones(heads))
        """a: 1 / (2 variance) of the Gaussian window."""

    def bias(self, query_BHTE: Tensor, keys: int, offset: int) -> Tensor:
        """(H, T, S)."""
        return self.scores(query_BHTE.shape[2], keys, offset)

    def scores(self, queries: int, keys: int, offset: int = 0) -> Tensor:
        """(H, T, S): v . r for the cells offset .. offset + T - 1 as queries and 0 .. S - 1 as keys."""
        return quadratic_scores(self.centre_H2, self.sharpness_H, self._cells(offset, queries), self._cells(0, keys))

    def weights(self, queries: int, keys: int) -> Tensor:
        """Weights alpha (H, T, S) from positions only, without content."""
        return self.scores(queries, keys).softmax(-1)

    def _cells(self, first: int, count: int) -> Tensor:
        """(N, 2): row and column."""
        cell_N = torch.arange(first, first + count, device=self.centre_H2.device)
        return torch.stack((cell_N // self.columns, cell_N % self.columns), -1).to(self.centre_H2.dtype)


def quadratic_scores(centre_H2: Tensor, alpha_H: Tensor, query_N2: Tensor, key_K2: Tensor) -> Tensor:
    """e_h = v_h . r(key - query), (H, N, K), for queries and keys at these rows and columns (equation 8).

    v = -a (1, -2 D_1, -2 D_2),   r(d) = (|d|^2, d_1, d_2)
    """
    offset_NK2 = key_K2 - query_N2[:, None]
    relative_NK3 = torch.cat((offset_NK2.square().sum(-1, keepdim=True), offset_NK2), -1)
    vector_H3 = -alpha_H[:, None] * torch.cat((torch.ones_like(alpha_H)[:, None], -2 * centre_H2), -1)
    return torch.einsum("hr,nkr->hnk", vector_H3, relative_NK3)
