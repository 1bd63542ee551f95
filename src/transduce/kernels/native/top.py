"""Logits to log-probabilities, and the greatest of each row (`top.h`).

Shapes: N rows, V columns, C columns kept.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.kernels.native import kernel
from transduce.kernels.native.tensors import serves


def can_rank(x_NV: Tensor) -> bool:
    """Whether `log_softmax_` and `top` take these."""
    return serves(x_NV) and x_NV.dtype is torch.float32 and x_NV.is_contiguous() and x_NV.numel() > 0


def log_softmax_(x_NV: Tensor) -> Tensor:
    """x less its rows' log-sum-exp; x itself is changed."""
    kernel("log_softmax")(x_NV, *x_NV.shape)
    return x_NV


def top(x_NV: Tensor, count: int, without: Sequence[int]) -> tuple[Tensor, Tensor]:
    """As `transduce.search.topk`: (N, C) float64 and (N, C) int64, greatest first, of equal ones the lower column."""
    rows, count = len(x_NV), min(count, x_NV.shape[1])
    value_NC = torch.empty(rows, count, dtype=torch.float64)
    column_NC = torch.empty(rows, count, dtype=torch.int64)
    barred = torch.tensor(without, dtype=torch.int64)
    kernel("top")(x_NV, *x_NV.shape, barred, len(without), count, value_NC, column_NC)
    return value_NC, column_NC
