"""The greatest of each row, the same whatever the device and the rows beside it.

Shapes: N rows, V columns, C columns kept.
"""

import torch
from torch import Tensor


def top(values_NV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` greatest of each row (all, where there are fewer), greatest first, and their columns.

    Of equal values the lower column comes first, which `torch.topk` does not promise. Which columns stand for
    -inf is left open. Returns (N, C) float64 and (N, C) int64, both on the CPU.
    """
    columns = values_NV.shape[1]
    count = min(count, columns)
    found = values_NV.topk(min(count + 1, columns), dim=1)  # one more shows whether the cut runs through a tie
    value_NC, column_NC = found.values.cpu().double(), found.indices.cpu()
    if count < columns:
        value_NC, column_NC = _without_cut_ties(values_NV, value_NC, column_NC)
    return _ordered(value_NC, column_NC)


def _without_cut_ties(values_NV: Tensor, value_NC: Tensor, column_NC: Tensor) -> tuple[Tensor, Tensor]:
    """Drops the last column; where it equalled the one before, takes the lower of the equal columns."""
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
    """The columns of the `count` greatest of each row, in any order, of equal values the lower columns."""
    least_M1 = values_MV.topk(count, dim=1).values[:, -1:]
    columns = values_MV.shape[1]
    leftness_V = torch.arange(columns, 0, -1, device=values_MV.device)
    worth_MV = leftness_V * (values_MV >= least_M1) + columns * (values_MV > least_M1)
    return worth_MV.topk(count, dim=1).indices


def _ordered(value_NC: Tensor, column_NC: Tensor) -> tuple[Tensor, Tensor]:
    column_NC, by_column_NC = column_NC.sort(dim=1)
    value_NC, by_value_NC = value_NC.gather(1, by_column_NC).sort(dim=1, descending=True, stable=True)
    return value_NC, column_NC.gather(1, by_value_NC)
