"""Top-k of each row, with the same result on any device and in any batch.

Shapes: N rows, V columns, C columns kept, L columns considered.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.kernels.native import top as native

BLOCK = 64  # columns whose maximum is found at once: 2 to 6 times faster than one search through 8,000 columns


def top(values_NV: Tensor, count: int, without: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
    """The `count` greatest values of each row (or all, if there are fewer) in descending order, and their columns.

    Ties go to the lower column, which `torch.topk` does not guarantee. Which columns are returned for values of -inf is
    unspecified.

    Args:
        values_NV: the values.
        count: number of values.
        without: columns that count as -inf. No modified copy is made.

    Returns:
        Values (N, C) in float64 and columns (N, C) in int64, both on the CPU.
    """
    if native.can_rank(values_NV):
        return native.top(values_NV, count, without)
    value_NC, column_NC = _top(values_NV, count + len(without))
    if not without:
        return value_NC, column_NC
    barred_NC = torch.isin(column_NC, torch.tensor(without))
    place_NC = barred_NC.byte().sort(dim=1, stable=True).indices[:, :count]
    return value_NC.masked_fill(barred_NC, -torch.inf).gather(1, place_NC), column_NC.gather(1, place_NC)


def _top(values_NV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    columns = values_NV.shape[1]
    count = min(count, columns)
    found_NC, place_NC = _greatest(values_NV, min(count + 1, columns))  # one more shows whether the cut separates a tie
    value_NC, column_NC = found_NC.cpu().double(), place_NC.cpu()
    if count < columns:
        value_NC, column_NC = _without_cut_ties(values_NV, value_NC, column_NC)
    return _ordered(value_NC, column_NC)


def _greatest(values_NV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`topk` with arbitrary order of ties. The result lies in the `count` blocks with the greatest maxima."""
    blocks = values_NV.shape[1] // BLOCK
    if blocks <= 4 * count:
        found = values_NV.topk(count, dim=1)
        return found.values, found.indices
    rest = values_NV.shape[1] - blocks * BLOCK
    block_NXL = torch.unflatten(values_NV[:, : blocks * BLOCK], 1, (blocks, BLOCK))
    best_NC = block_NXL.amax(2).topk(count, dim=1, sorted=False).indices
    column_NCL = best_NC[:, :, None] * BLOCK + torch.arange(BLOCK, device=values_NV.device)
    tail_NL = torch.arange(blocks * BLOCK, values_NV.shape[1], device=values_NV.device).expand(len(values_NV), rest)
    column_NL = torch.cat((column_NCL.flatten(1), tail_NL), 1)
    found_NC, place_NC = values_NV.gather(1, column_NL).topk(count, dim=1)
    return found_NC, column_NL.gather(1, place_NC)


def _without_cut_ties(values_NV: Tensor, value_NC: Tensor, column_NC: Tensor) -> tuple[Tensor, Tensor]:
    """Drop the last column. If its value equals the one before, take the lowest of the equal columns."""
    least_N, next_N = value_NC[:, -2], value_NC[:, -1]
    tied_N = (least_N == next_N) & (least_N > -torch.inf)
    value_NC, column_NC = value_NC[:, :-1], column_NC[:, :-1]
    if bool(tied_N.any()):
        tied_MV = values_NV[tied_N.to(values_NV.device)]
        lowest_MC = _lowest_columns(tied_MV, column_NC.shape[1])
        column_NC[tied_N] = lowest_MC.cpu()
        value_NC[tied_N] = tied_MV.gather(1, lowest_MC).cpu().double()
    return value_NC, column_NC


def _lowest_columns(values_MV: Tensor, count: int) -> Tensor:
    """The columns of the `count` greatest values of each row, in any order; ties go to the lower columns."""
    least_M1 = values_MV.topk(count, dim=1).values[:, -1:]
    columns = values_MV.shape[1]
    leftness_V = torch.arange(columns, 0, -1, device=values_MV.device)
    worth_MV = leftness_V * (values_MV >= least_M1) + columns * (values_MV > least_M1)
    return worth_MV.topk(count, dim=1).indices


def _ordered(value_NC: Tensor, column_NC: Tensor) -> tuple[Tensor, Tensor]:
    column_NC, by_column_NC = column_NC.sort(dim=1)
    value_NC, by_value_NC = value_NC.gather(1, by_column_NC).sort(dim=1, descending=True, stable=True)
    return value_NC, column_NC.gather(1, by_value_NC)
