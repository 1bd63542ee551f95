"""The nearest of many vectors, exactly, by packed products; or beyond a million of them by faiss.

    d^2(q, x)  =  |q|^2 - 2 q x + |x|^2

A product in fp32 finds candidates: for each query a few more than are asked for. The distances of these are computed
again in float64, by which they are ordered, equal ones by their number. Where rounding of the product could have hidden
a nearer vector, all within the error bound are candidates. So the result does not depend on other queries.

Shapes: Q queries, N vectors, D width, R vectors of a block, C candidates, K nearest.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.core.extras import library
from transduce.kernels.matmul import linear

BLOCK = 4096  # vectors that are multiplied at once
QUERIES = 512  # queries that are multiplied at once
SPARE = 16  # candidates beyond those asked for
KEPT = 2**28  # bytes of vectors that are kept in fp32 as well
EXACT = 1_000_000  # more vectors than this are left to faiss
UNIT = 2.0**-24  # of rounding in fp32
CELLS, LOOKED_AT, SAMPLED = 1, 64, 40  # of faiss: cells a root of N; cells a query; training vectors a cell


class Nearest(NamedTuple):
    """The nearest vectors of each query, nearest first, equal ones by number.

    distance: (Q, K) float64, squared. entry: (Q, K) int64, their numbers.
    """

    distance: Tensor
    entry: Tensor


class ExactNeighbors:
    """All vectors (N, D) fp16 are compared with each query."""

    def __init__(self, keys_ND: Tensor) -> None:
        self.keys_ND = keys_ND
        self._kept = [key_RD.float() for key_RD in torch.split(keys_ND, BLOCK)] if keys_ND.numel() * 4 <= KEPT else None
        self._half_N = torch.cat([block_RD.square().sum(1) / 2 for block_RD in self._blocks()])
        self._longest = float(self._half_N.max()) * 2

    def nearest(self, query_QD: Tensor, count: int) -> Nearest:
        """The `count` nearest vectors of each query, or all where there are fewer."""
        parts = [self._nearest(part_QD, min(count, len(self.keys_ND))) for part_QD in torch.split(query_QD, QUERIES)]
        return Nearest(*(torch.cat(each) for each in zip(*parts, strict=True)))

    def _nearest(self, query_QD: Tensor, count: int) -> Nearest:
        query_QD = query_QD.float()
        score_QC, entry_QC = self._candidates(query_QD, min(count + SPARE, len(self.keys_ND)))
        found = nearest_of(self.keys_ND, query_QD, entry_QC, count)
        if entry_QC.shape[1] == len(self.keys_ND):
            return found
        length_Q = query_QD.double().square().sum(1)
        error_Q = self._error(length_Q)
        sure_Q = found.distance[:, -1] < length_Q - 2 * score_QC[:, -1].double() - error_Q
        for row in (~sure_Q).nonzero()[:, 0].tolist():
            again = self._within(query_QD[row : row + 1], float(found.distance[row, -1] + error_Q[row]), count)
            found.distance[row], found.entry[row] = again.distance[0], again.entry[0]
        return found

    def _error(self, length_Q: Tensor) -> Tensor:
        """The bound on a squared distance's error by fp32 products: (D + 4) u (|q| + |x|)^2."""
        return (self.keys_ND.shape[1] + 4) * 2 * UNIT * (length_Q.sqrt() + self._longest**0.5).square()

    def _candidates(self, query_QD: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """(Q, C) the greatest q x - |x|^2 / 2, and whose they are."""
        best_QC, entry_QC = query_QD[:, :0], torch.empty(len(query_QD), 0, dtype=torch.int64, device=query_QD.device)
        for first, score_QR in self._scores(query_QD):
            block = score_QR.topk(min(count, score_QR.shape[1]), 1)
            both_QC = torch.cat((best_QC, block.values), 1)
            best_QC, order_QC = both_QC.topk(min(count, both_QC.shape[1]), 1)
            entry_QC = torch.cat((entry_QC, block.indices + first), 1).gather(1, order_QC)
        return best_QC, entry_QC

    def _within(self, query_1D: Tensor, distance: float, count: int) -> Nearest:
        """The nearest of one query, all of which are no further than `distance` by the product."""
        least = (float(query_1D.double().square().sum()) - distance) / 2
        near = [(score_1R[0] >= least).nonzero()[:, 0] + first for first, score_1R in self._scores(query_1D)]
        return nearest_of(self.keys_ND, query_1D, torch.cat(near)[None], count)

    def _scores(self, query_QD: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Block by block the number of its first vector, and (Q, R) q x - |x|^2 / 2."""
        first = 0
        for block_RD in self._blocks():
            last = first + len(block_RD)
            yield first, linear(query_QD, block_RD) - self._half_N[first:last]
            first = last

    def _blocks(self) -> Iterator[Tensor]:
        """(R, D) fp32; each may be written over by the next one."""
        if self._kept is not None:
            yield from self._kept
            return
        room_RD = self.keys_ND.new_empty(min(BLOCK, len(self.keys_ND)), self.keys_ND.shape[1], dtype=torch.float32)
        for key_RD in torch.split(self.keys_ND, BLOCK):
            yield room_RD[: len(key_RD)].copy_(key_RD)


class FaissNeighbors:
    """Vectors in cells around centroids, by faiss: only the cells nearest to a query are searched.

    The result is not always that of `ExactNeighbors`. Distances and order are computed in the same way.

    Raises:
        InputError: faiss is not installed.
    """

    def __init__(self, keys_ND: Tensor) -> None:
        faiss = library("faiss", f"a datastore of more than {EXACT:,} entries", "memory", "faiss-cpu")
        self.keys_ND = keys_ND
        cells = max(1, int(CELLS * len(keys_ND) ** 0.5))
        self._coarse = faiss.IndexFlatL2(keys_ND.shape[1])  # the index below does not keep it alive
        half = faiss.ScalarQuantizer.QT_fp16
        self._index: Any = faiss.IndexIVFScalarQuantizer(self._coarse, keys_ND.shape[1], cells, half, faiss.METRIC_L2)
        step = max(1, len(keys_ND) // (cells * SAMPLED))
        self._index.train(keys_ND[::step].float().cpu().numpy())
        for key_RD in torch.split(keys_ND, BLOCK):
            self._index.add(key_RD.float().cpu().numpy())
        self._index.nprobe = LOOKED_AT

    def nearest(self, query_QD: Tensor, count: int) -> Nearest:
        """The nearest vectors of each query that were found, at most `count`."""
        count = min(count, len(self.keys_ND))
        wanted = min(count + SPARE, len(self.keys_ND))
        _, entry_QC = self._index.search(query_QD.float().cpu().numpy(), wanted)
        found_QC = torch.from_numpy(entry_QC).to(query_QD.device)
        # Where its cells held fewer, the first one found stands in their places, too far away to be read.
        missing_QC = found_QC < 0
        filled_QC = torch.where(missing_QC, found_QC[:, :1].clamp(min=0), found_QC)
        return nearest_of(self.keys_ND, query_QD, filled_QC, count, missing_QC)


def neighbors_of(keys_ND: Tensor) -> ExactNeighbors | FaissNeighbors:
    """What finds the nearest of these vectors (N, D). Raises InputError where faiss is needed, and not installed."""
    return ExactNeighbors(keys_ND) if len(keys_ND) <= EXACT else FaissNeighbors(keys_ND)


def nearest_of(
    keys_ND: Tensor, query_QD: Tensor, entry_QC: Tensor, count: int, missing_QC: Tensor | None = None
) -> Nearest:
    """The nearest among candidates (Q, C) of each query, by distances in float64.

    missing_QC: bool, True = no candidate: infinitely far.
    """
    entry_QC, order_QC = entry_QC.sort(1)
    apart_QCD = keys_ND[entry_QC].double() - query_QD.double()[:, None]
    distance_QC = apart_QCD.square().sum(2)
    if missing_QC is not None:
        distance_QC = distance_QC.masked_fill(missing_QC.gather(1, order_QC), torch.inf)
    distance_QC, order_QC = distance_QC.sort(dim=1, stable=True)
    return Nearest(distance_QC[:, :count], entry_QC.gather(1, order_QC)[:, :count])
