"""Which continuations a beam goes on with (`choice.h`).

Shapes: B sentences, N hypotheses, C continuations of each, M taken.
"""

import math

import torch
from torch import Tensor

from transduce.kernels.native import kernel, kernels


def can_choose() -> bool:
    """Whether there is a kernel; what it is asked about is always on the CPU."""
    return kernels() is not None


def likeliest(
    sentence_N: Tensor, total_N: Tensor, value_NC: Tensor, slots_B: Tensor, prune: float | None
) -> tuple[Tensor, Tensor, Tensor]:
    """As `search.beam_selection.likeliest`, of hypotheses in order: parents, columns, new slots, (M,) each."""
    given = [each.contiguous() for each in (sentence_N, total_N, value_NC, slots_B)]
    room = value_NC.numel()
    taken_3M, count = torch.empty(3, room, dtype=torch.int64), torch.empty((), dtype=torch.int64)
    limit = math.inf if prune is None else prune
    kernel("likeliest")(*given, *value_NC.shape, limit, taken_3M, room, count)
    parent_M, column_M, slot_M = taken_3M[:, : int(count)]
    return parent_M, column_M, slot_M
