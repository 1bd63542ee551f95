"""Padded sequences, the input and output of models; and trees of them, of graphs and of tensors."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from transduce.core.graphs import Graphs


class Padded(NamedTuple):
    """Sequences of different lengths in one tensor.

    values: (B, S) token ids or (B, S, F) features. Values after the end of a sequence are arbitrary.
    lengths: (B,) int64, at least 1.
    """

    values: Tensor
    lengths: Tensor

    def mask(self) -> Tensor:
        """(B, S) bool, True = a real position."""
        return torch.arange(self.values.shape[1], device=self.lengths.device) < self.lengths[:, None]

    def to(self, device: torch.device) -> Self:
        return self._replace(values=self.values.to(device), lengths=self.lengths.to(device))


def nodes(tree: Any) -> list[Any]:
    """The `Padded`, `Graphs` and tensors of a tree of tuples, lists and dicts, in its order; None holds nothing."""
    if tree is None:
        return []
    if isinstance(tree, Padded | Graphs | Tensor):
        return [tree]
    return [leaf for branch in (tree.values() if isinstance(tree, dict) else tree) for leaf in nodes(branch)]


def leaves(tree: Any) -> list[Tensor]:
    """The tensors of a tree; of what is padded, its values; of graphs, their sizes."""
    return [_values(each) for each in nodes(tree)]


def _values(node: Padded | Graphs | Tensor) -> Tensor:
    if isinstance(node, Padded):
        return node.values
    return node.sizes if isinstance(node, Graphs) else node


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    """`tree` with `function` of each `Padded`, `Graphs` or tensor in its place."""
    if tree is None:
        return None
    if isinstance(tree, Padded | Graphs | Tensor):
        return function(tree)
    if isinstance(tree, dict):
        return {key: map_tree(function, branch) for key, branch in tree.items()}
    branches = [map_tree(function, branch) for branch in tree]
    return type(tree)(*branches) if hasattr(tree, "_fields") else type(tree)(branches)


def joined(trees: Sequence[Any]) -> Any:
    """Trees of tensors of one structure as one tree: along axis 0, one behind the other."""
    if len(trees) == 1:
        return trees[0]
    others = [iter(leaves(tree)) for tree in trees[1:]]
    return map_tree(lambda first: torch.cat([first, *map(next, others)]), trees[0])


def rows_of(given: Padded | Graphs | Tensor, place: slice) -> Padded | Graphs | Tensor:
    """These rows; of what is padded, no wider than the longest of them."""
    if isinstance(given, Tensor):
        return given[place]
    if isinstance(given, Graphs):
        return given.rows(place)
    lengths = given.lengths[place]
    return Padded(given.values[place, : int(lengths.max())], lengths)
