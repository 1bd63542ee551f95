"""Edges as models read them, and files of graphs.

Shapes: E edges, N nodes.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.data.files import read_lines, suffix_of
from transduce.data.structures.numbered_names import NumberedNames

Whole = NDArray[np.int64]
WALKS = 256  # nodes from which walks begin at once


@dataclass(frozen=True)
class EdgeReading:
    """How edges are read. undirected: each counts in both directions. self_loops: each node also reads itself."""

    undirected: bool = True
    self_loops: bool = True

    def read(self, pairs: Whole, nodes: int) -> tuple[Whole, Whole]:
        """(E,) sources and targets of pairs (E, 2), by targets, then sources; each edge once."""
        source, target = pairs.reshape(-1, 2).T.astype(np.int64)
        if self.undirected:
            source, target = np.concatenate([source, target]), np.concatenate([target, source])
        if self.self_loops:
            each = np.arange(nodes)
            source, target = np.concatenate([source, each]), np.concatenate([target, each])
        codes = np.unique(target * max(nodes, 1) + source)
        return codes % max(nodes, 1), codes // max(nodes, 1)


def return_probabilities(source: Whole, target: Whole, nodes: int, steps: int) -> NDArray[np.float32]:
    """(N, steps): how likely a random walk from a node is back there after 1, 2, .. steps (Dwivedi et al. 2022, eq. 6).

    A walk follows each edge out of a node equally often, and ends where there is none. Rings of different sizes, which
    look alike to attention over neighbors, differ in this.

    Args:
        source, target: (E,) the ends of the edges.
    """
    out_N = np.bincount(source, minlength=nodes)
    ends_2E, chance_E = torch.from_numpy(np.stack([target, source])), torch.from_numpy(1.0 / out_N[source])
    matrix_NN = torch.sparse_coo_tensor(ends_2E, chance_E, (nodes, nodes), check_invariants=True)
    found = np.zeros((nodes, steps), np.float32)
    for first in range(0, nodes, WALKS):
        own = torch.arange(first, min(first + WALKS, nodes))
        here_NW = torch.zeros(nodes, len(own), dtype=torch.float64)
        here_NW[own, own - first] = 1
        for step in range(steps):
            here_NW = torch.sparse.mm(matrix_NN, here_NW)
            found[own, step] = here_NW[own, own - first]
    return found


class LabelledGraph(NamedTuple):
    """A line of a file of graphs.

    text: a JSON object of nodes, edges and perhaps the nodes' names. name: of the graph, "" = it has none.
    """

    line: int
    text: str
    label: str
    name: str = ""


def read_graphs(path: Path) -> list[LabelledGraph]:
    """Graphs with their labels, from .jsonl, or as texts such as those of the datasets of Xu et al. 2019.

    .jsonl: {"nodes": [..], "edges": [[0, 1], ..], "label": ".."} a line, and perhaps "names": [..] of the nodes and the
    "id" of the graph. Anything else: the number of graphs; for each
    graph a line "nodes label", then a line "tag degree neighbor .." for each node.

    Raises:
        InputError: a line is none such; it is named.
    """
    if suffix_of(path) == ".jsonl":
        return list(_json_graphs(path))
    return list(_text_graphs(path))


def _json_graphs(path: Path) -> Iterator[LabelledGraph]:
    for number, line in enumerate(read_lines(path), 1):
        try:
            found = json.loads(line)
            names = {"names": found["names"]} if "names" in found else {}
            graph = {"nodes": found["nodes"], "edges": found["edges"], **names}
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f'{path}, line {number}: expected {{"nodes": [..], "edges": [[0, 1], ..], "label": ".."}}; got '
                f"{line[:60]}"
            ) from None
        yield LabelledGraph(number, compact(graph), str(found.get("label", "")), str(found.get("id", "")))


def _text_graphs(path: Path) -> Iterator[LabelledGraph]:
    lines = enumerate(read_lines(path), 1)
    number, line = 1, ""
    try:
        number, line = next(lines)
        for _ in range(int(line)):
            number, line = begun, first = next(lines)
            size, label = first.split()
            tags, edges = [], []
            for node in range(int(size)):
                number, line = next(lines)
                tag, degree, *neighbors = map(int, line.split())
                if degree != len(neighbors) or not all(0 <= each < int(size) for each in neighbors):
                    raise ValueError
                tags.append(tag)
                edges += [[node, each] for each in neighbors]
            yield LabelledGraph(begun, compact({"nodes": tags, "edges": edges}), label)
    except (ValueError, StopIteration):
        raise InputError(
            f"{path}, line {number}: expected the number of graphs, and for each a line with its number of nodes and "
            f"its label, and a line with tag, degree and neighbors for each node; got {line[:60]}"
        ) from None


def names_of_graphs(path: Path, graphs: Sequence[LabelledGraph]) -> NumberedNames:
    """What the graphs of a file are called. Raises InputError where two have one name."""
    lines: dict[str, int] = {}
    for each in graphs:
        if each.name and lines.setdefault(each.name, each.line) != each.line:
            raise InputError(f'{path}, line {each.line}: the id "{each.name}" was in line {lines[each.name]} already.')
    return NumberedNames(len(graphs), tuple(each.name for each in graphs) if lines else (), "graph")


def compact(graph: Mapping[str, Any]) -> str:
    """As one line of JSON."""
    return json.dumps(graph, separators=(",", ":"))


def folds_of(labels: Sequence[str], folds: int, seed: int) -> Whole:
    """(number of examples,): the fold of each; every label is spread evenly over the folds, at random by `seed`."""
    random = np.random.Generator(np.random.PCG64([seed]))
    found, dealt = np.zeros(len(labels), np.int64), 0
    for label in sorted(set(labels)):
        places = np.flatnonzero(np.array(labels) == label)
        order = places[np.argsort(random.random(len(places)), kind="stable")]
        found[order] = (dealt + np.arange(len(order))) % folds
        dealt += len(order)
    return found
