"""Rows of stores -> batches.

Shapes: B batch, S source positions, T target positions.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from transduce.core.padded import Padded, leaves, map_tree, nodes, rows_of
from transduce.data.batches import Rows
from transduce.data.store import Ids, Store

if TYPE_CHECKING:
    from transduce.data.columns import Column


class NodeTargets(NamedTuple):
    """The labels (B, N) of nodes; -1 = this node has none, and counts nowhere."""

    ids: Padded

    def known(self) -> Tensor:
        """(B, N) bool: which nodes have one."""
        return (self.ids.values >= 0) & self.ids.mask()


class Batch(NamedTuple):
    """What a model trains on. Both sides are trees (None, tuples, dicts) of `Padded` or tensors, batch on axis 0.

    inputs: of text (B, S), each x ... </s>; None for language modelling.
    targets: of text (B, T), each <s> y ... </s>, or a language model's row as it is: position t predicts position
        t + 1. Of labels (B,); of nodes `NodeTargets`.
    units: what the loss is a mean over: the target tokens to predict, the examples, or the nodes that have labels.
    follows: whether each row goes on where the same row of the batch before stopped.
    state: what a model carried over from there, a tree; None = nothing.
    """

    inputs: Any
    targets: Any
    units: int
    follows: bool = False
    state: Any = None

    @property
    def examples(self) -> int:
        """B."""
        return len(leaves(self.targets)[0])

    @property
    def device(self) -> torch.device:
        return leaves(self.targets)[0].device

    def sequences(self) -> list[Padded]:
        """All that is padded, inputs first."""
        return [each for side in (self.inputs, self.targets) for each in nodes(side) if isinstance(each, Padded)]

    def rows(self, place: slice) -> "Batch":
        """These examples alone, no wider than the longest of them."""
        sides = (self.inputs, self.targets, self.state)
        inputs, targets, state = (map_tree(lambda each: rows_of(each, place), side) for side in sides)
        return Batch(inputs, targets, int(units_of_each(targets).sum()), self.follows, state)

    def to(self, device: torch.device) -> "Batch":
        sides = (self.inputs, self.targets, self.state)
        inputs, targets, state = (map_tree(lambda each: each.to(device), side) for side in sides)
        return Batch(inputs, targets, self.units, self.follows, state)

    def after(self, state: Any) -> "Batch":
        """The same, which goes on from `state` if it follows the batch that left it; its rows may be fewer."""
        if not self.follows or state is None:
            return self
        return self._replace(state=map_tree(lambda each: rows_of(each, slice(self.examples)), state))


def collate(stores: Sequence[Store], rows: Rows, columns: "Mapping[str, Column]") -> Batch:
    """Read `rows` of the stores, whose fields are the columns' names, as a model reads them."""
    sides = {field: columns[field].collate(_read(stores, field, rows)) for field in stores[0].fields}
    units = int(units_of_each(sides["target"]).sum())
    return Batch(sides.get("source"), sides["target"], units, rows.follows)


def units_of_each(targets: Any) -> Tensor:
    """(B,) int64: of tokens all but the first; of nodes those with labels; of vectors every number; else one."""
    if isinstance(targets, NodeTargets):
        return targets.known().sum(1)
    first = nodes(targets)[0]
    if not isinstance(first, Padded):
        return torch.ones(len(first), dtype=torch.int64)
    return first.lengths * first.values.shape[2] if first.values.ndim == 3 else first.lengths - 1


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


def padded_frames(rows: Sequence[Ids]) -> Padded:
    """Rows of (S, F) floats as one (B, S, F) tensor of float32, padded with 0."""
    lengths = torch.tensor([len(row) for row in rows])
    values_BSF = torch.zeros(len(rows), int(lengths.max()), rows[0].shape[1])
    for place, row in enumerate(rows):
        values_BSF[place, : len(row)] = torch.from_numpy(np.array(row, np.float32))
    return Padded(values_BSF, lengths)


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
