"""A graph a row: the features of its nodes, and its edges.

Shapes: N nodes, E edges, F features, B graphs, W width of a stored row.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.core.graphs import Graphs
from transduce.core.printable import PROBLEMS
from transduce.data.columns.protocols import Column, ColumnSpec
from transduce.data.store import FloatRows, Ids
from transduce.data.structures.graphs import EdgeReading, return_probabilities

MOST = 1 << 24  # nodes of a graph: float32 holds whole numbers up to here
SHOWN = 60  # characters of a wrong text in a message
FORM = '{"nodes": [..], "edges": [[0, 1], ..]}'  # and perhaps "names": [..], which only pictures show

NO_TOKENS = (
    'reads tokens, and the task gives it graphs; expected a model that attends along edges, such as "graph_attention"'
)
NO_WORDS = "this model attends along the edges of a graph, not between words: see the explorer, or `predict --draw`."


@dataclass(frozen=True)
class Graph(Column):
    """A graph a row, from a line of JSON. A stored row is one (1 + N + E, W) array: sizes, features, ends of edges.

    tags: how many different tags nodes have, where each has one, which becomes as many features; 0 = nodes are lists of
        numbers. width: how many numbers these are. degrees: the degree of a node becomes so many features besides; a
        greater degree counts as the greatest. walks: how likely a random walk is back after 1 .. walks steps, as so
        many features. edges: how edges are read.
    """

    kind: ClassVar[str] = "graph"
    length_unit: ClassVar[str] = "node"
    without_tokens: ClassVar[str] = NO_TOKENS
    without_words: ClassVar[str] = NO_WORDS
    tags: int
    width: int
    degrees: int = 0
    edges: EdgeReading = field(default_factory=EdgeReading)
    walks: int = 0

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: object = None) -> Self:
        """What `to_dict` gave. Raises InputError for anything else."""
        numbers = [*(table.get(name) for name in ("tags", "width", "degrees")), table.get("walks", 0)]
        if not all(type(each) is int and 0 <= each < 1 << 20 for each in numbers):
            raise InputError("the model file's column of graphs: expected numbers of tags, features, degrees, walks.")
        edges = EdgeReading(bool(table.get("undirected")), bool(table.get("self_loops")))
        tags, width, degrees, walks = (int(str(each)) for each in numbers)
        return cls(tags, width, degrees, edges, walks)

    @property
    def spec(self) -> ColumnSpec:
        """How many features a node has."""
        return ColumnSpec(self.kind, (self.tags or self.width) + self.degrees + self.walks)

    @property
    def stored(self) -> FloatRows:
        """Rows of as many floats as a node has features; an edge is two numbers."""
        return FloatRows(max(self.spec.size, 2))

    @classmethod
    def drawn(cls, length: int, size: int, generator: torch.Generator) -> Graphs:
        """A ring of nodes."""
        return ring(length, size, generator)

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """The stored row of each. Raises InputError for what is no graph; all of them are named."""
        found, problems = [], []
        for text in texts:
            try:
                found.append(self._row(text))
            except (ValueError, TypeError, KeyError, OverflowError) as error:
                said = f": {error.args[0]}" if isinstance(error, _Misfit) else ""
                problems.append(f"expected a graph as {FORM}{said}; got {text[:SHOWN]}")
        if problems:
            raise InputError(problems[:PROBLEMS])
        return found

    def decode(self, ids: Sequence[int]) -> str:
        return ""

    def tokens(self, ids: Any) -> list[str]:
        """The number of each node of a stored row."""
        return [str(node) for node in range(int(ids[0, 0]))] if len(ids) else []

    def names_in(self, text: str) -> tuple[str, ...]:
        """(N,) what each node of a graph is called: its name where the graph has names, else its number."""
        given = json.loads(text)
        names = given.get("names") or [""] * len(given["nodes"])
        return tuple(name.strip() or str(node) for node, name in enumerate(names))

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """Raises InputError: no token is a graph."""
        raise InputError("graphs cannot be given as tokens.")

    def collate(self, rows: Sequence[Ids]) -> Graphs:
        size, features, sources, targets = self.spec.size, [], [], []
        sizes = [int(row[0, 0]) for row in rows]
        before = 0
        for row, nodes in zip(rows, sizes, strict=True):
            features.append(row[1 : 1 + nodes, :size])
            sources.append(row[1 + nodes :, 0].astype(np.int64) + before)
            targets.append(row[1 + nodes :, 1].astype(np.int64) + before)
            before += nodes
        x, source, target = (torch.from_numpy(np.concatenate(each)) for each in (features, sources, targets))
        return Graphs(x, source, target, torch.tensor(sizes))

    collate_texts = collate

    def to_dict(self) -> dict[str, Any]:
        """How nodes and edges are read."""
        numbers = {"tags": self.tags, "width": self.width, "degrees": self.degrees, "walks": self.walks}
        return {**numbers, "undirected": self.edges.undirected, "self_loops": self.edges.self_loops}

    def _row(self, text: str) -> NDArray[np.float32]:
        given = json.loads(text)
        nodes, pairs = given["nodes"], np.array(given["edges"], np.int64).reshape(-1, 2)
        count, size = len(nodes), self.spec.size
        if not 0 < count <= MOST:
            raise _Misfit(f"it has {count:,} nodes; from 1 to {MOST:,} are possible")
        if len(pairs) and not (pairs.min() >= 0 and pairs.max() < count):
            raise _Misfit(f"edges are between nodes from 0 to {count - 1}")
        if not all(type(each) is int for pair in given["edges"] for each in pair):
            raise _Misfit("edges are pairs of whole numbers")
        names = given.get("names")
        if names is not None and not (
            isinstance(names, list) and len(names) == count and all(isinstance(each, str) for each in names)
        ):
            raise _Misfit(f"names are a list of {count} texts, one for each node")
        plain = EdgeReading(self.edges.undirected, self_loops=False).read(pairs, count)
        source, target = self.edges.read(pairs, count)
        row = np.zeros((1 + count + len(source), max(size, 2)), np.float32)
        row[0, :2] = count, len(source)
        row[1 : 1 + count, :size] = self._features(nodes, *plain)
        row[1 + count :, 0], row[1 + count :, 1] = source, target
        return row

    def _features(self, nodes: list[Any], source: NDArray[Any], target: NDArray[Any]) -> NDArray[np.float32]:
        """(N, F), from edges (E,) without self-loops."""
        found = np.zeros((len(nodes), self.spec.size), np.float32)
        own = self.tags or self.width
        if self.tags:
            if not all(type(tag) is int and 0 <= tag < self.tags for tag in nodes):
                raise _Misfit(f"nodes are tags from 0 to {self.tags - 1}")
            found[np.arange(len(nodes)), nodes] = 1
        elif any(not isinstance(node, list) or len(node) != own for node in nodes):
            raise _Misfit(f"each node is a list of {own} numbers")
        elif own:
            found[:, :own] = np.array(nodes, np.float32)
            if not np.isfinite(found).all():
                raise _Misfit("features are finite numbers")
        if self.degrees:
            degree_N = np.bincount(target, minlength=len(nodes))
            found[np.arange(len(nodes)), own + np.minimum(degree_N, self.degrees - 1)] = 1
        if self.walks:
            found[:, own + self.degrees :] = return_probabilities(source, target, len(nodes), self.walks)
        return found


class _Misfit(ValueError):
    """What a graph should have, in words."""


def ring(length: int, size: int, generator: torch.Generator) -> Graphs:
    """N nodes in a ring, each of which reads itself and the next ones."""
    each = np.arange(length)
    edges = EdgeReading().read(np.stack([each, (each + 1) % length], 1), length)
    source, target = (torch.from_numpy(ends) for ends in edges)
    return Graphs(torch.randn(length, size, generator=generator), source, target, torch.tensor([length]))
