"""Ids as a model reads them: padded rows on its device, for an ensemble a column a member."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import Batch, collate, padded
from transduce.data.columns import Columns
from transduce.data.store import Store


def sources(members: Sequence[Sequence[Sequence[int] | None]], device: torch.device) -> Padded | None:
    """Ids as a model reads them, (B, S), or an ensemble of M members, (B, S, M); None for a task without sources."""
    each = [[np.asarray(ids, np.int32) for ids in member if ids is not None] for member in members]
    if not each[0]:
        return None
    if len(each) == 1:
        return padded(each[0]).to(device)
    rows = [padded(ids) for ids in each]
    longest = max(row.values.shape[1] for row in rows)
    columns = [
        F.pad(row.values.masked_fill(~row.mask(), -1), (0, longest - row.values.shape[1]), value=-1) for row in rows
    ]
    lengths = torch.stack([row.lengths for row in rows]).amax(0)
    return Padded(torch.stack(columns, -1), lengths).to(device)


def check_batch_size(size: int) -> None:
    """Raises InputError where a batch would hold nothing."""
    if size < 1:
        raise InputError(f"batch_size = {size}: expected at least 1.")


def batches_of(stores: Sequence[Store], columns: Columns, device: torch.device) -> Callable[[Any], Batch]:
    """Rows -> a batch on `device`."""
    return lambda rows: collate(stores, rows, columns).to(device)
