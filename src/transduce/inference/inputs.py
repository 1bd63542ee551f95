"""Ids, or frames, as a model reads them: padded rows on its device, for an ensemble a column of ids a member."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from transduce.core.padded import Padded
from transduce.data.collate import Batch, collate, padded, padded_frames
from transduce.data.columns import Columns
from transduce.data.store import Store


def as_read(rows: Sequence[Any]) -> Padded:
    """Rows of ids, (B, S), or of frames, (B, S, F)."""
    arrays = [row if isinstance(row, np.ndarray) else np.asarray(row, np.int32) for row in rows]
    return padded_frames(arrays) if arrays[0].ndim == 2 else padded(arrays)


def sources(members: Sequence[Sequence[Any]], device: torch.device) -> Padded | None:
    """Ids as a model reads them, (B, S), or an ensemble of M members, (B, S, M); None for a task without sources.

    Frames are (B, S, F), and the same for all members.
    """
    each = [[ids for ids in member if ids is not None] for member in members]
    if not each[0]:
        return None
    first = as_read(each[0])
    if len(each) == 1 or first.values.ndim == 3:
        return first.to(device)
    rows = [first, *map(as_read, each[1:])]
    longest = max(row.values.shape[1] for row in rows)
    columns = [
        F.pad(row.values.masked_fill(~row.mask(), -1), (0, longest - row.values.shape[1]), value=-1) for row in rows
    ]
    lengths = torch.stack([row.lengths for row in rows]).amax(0)
    return Padded(torch.stack(columns, -1), lengths).to(device)


def batches_of(stores: Sequence[Store], columns: Columns, device: torch.device) -> Callable[[Any], Batch]:
    """Rows -> a batch on `device`."""
    return lambda rows: collate(stores, rows, columns).to(device)
