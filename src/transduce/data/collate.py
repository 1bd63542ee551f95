"""Rows of stores -> padded tensors.

Shapes: B batch, S source positions, T target positions.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from transduce.core.padded import Padded
from transduce.data.batches import Rows
from transduce.data.store import Ids, Store


class Batch(NamedTuple):
    """What a model trains on.

    source: (B, S), each x ... </s>; None for language modelling.
    target: (B, T), each <s> y ... </s>, or a language model's row as it is. Position t predicts position t +
    1. count: the target tokens to predict: all but the first of each row.
    """

    source: Padded | None
    target: Padded
    count: int  # type: ignore[assignment]  # what every reader of a batch means by it, not tuple.count


def collate(stores: Sequence[Store], rows: Rows, start: int, end: int, pad: int = 0) -> Batch:
    """Read `rows` and pad them, int64. Pairs get `start` and `end` (of the target's vocabulary) and their
    sources `end`.

    With two vocabularies both tokenizers must agree on `end`, as all that are trained here do.
    """
    if "source" not in stores[0].fields:
        target = padded(_read(stores, "target", rows), pad)
        source = None
    else:
        target = padded(_read(stores, "target", rows), pad, start, end)
        source = padded(_read(stores, "source", rows), pad, end=end)
    return Batch(source, target, int(target.lengths.sum()) - len(target.lengths))


def words(target: Padded) -> Padded:
    """What stands between start and end: (B, T) -> (B, T - 2)."""
    return Padded(target.values[:, 1:-1], target.lengths - 2)


def padded(sequences: Sequence[Ids], pad: int = 0, start: int | None = None, end: int | None = None) -> Padded:
    """Sequences as one (B, T) tensor of int64, each with `start` before it and `end` after it, if given."""
    before, after = int(start is not None), int(end is not None)
    inner = np.fromiter(map(len, sequences), dtype=np.int64, count=len(sequences))
    lengths = inner + before + after
    values_BT = np.full((len(sequences), int(lengths.max())), pad, dtype=np.int64)
    place_T = np.arange(values_BT.shape[1])
    values_BT[(place_T >= before) & (place_T < (inner + before)[:, None])] = np.concatenate(sequences)
    if start is not None:
        values_BT[:, 0] = start
    if end is not None:
        values_BT[np.arange(len(sequences)), lengths - 1] = end
    return Padded(torch.from_numpy(values_BT), torch.from_numpy(lengths))


def _read(stores: Sequence[Store], field: str, rows: Rows) -> list[Ids]:
    """The sequences in the order of `rows`, read store by store."""
    if len(stores) == 1:
        return stores[0].read(field, rows.rows)
    found: list[Ids] = [np.empty(0, np.int32)] * len(rows.rows)
    for index in np.unique(rows.stores).tolist():
        places = np.flatnonzero(rows.stores == index)
        for place, sequence in zip(places.tolist(), stores[index].read(field, rows.rows[places]), strict=True):
            found[place] = sequence
    return found
