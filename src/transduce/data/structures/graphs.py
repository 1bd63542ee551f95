"""Edges as models read them, and files of nodes, of edges and of graphs.

Shapes: E edges, N nodes, F features.
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
from transduce.core.printable import PROBLEMS
from transduce.data.files import read_lines, suffix_of
from transduce.data.formats.base import check_once

Whole = NDArray[np.int64]
COLUMNS = ("node", "split", "label", "feature_indices", "features")
MOST_NODES = 10_000_000
MOST_FEATURES = 1_000_000
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


class NodeLine(NamedTuple):
    """A line of a file of nodes. split, label: "" where the file has none. entries: feature -> value, not 0."""

    line: int
    node: int
    split: str
    label: str
    entries: dict[int, float]


def read_nodes(path: Path) -> list[NodeLine]:
    """A file of nodes, separated by tabs, whose header names the columns.

    node: its number. split, label: any texts; an empty label, or -1, is not given. feature_indices: the numbers of the
    features that are 1, separated by spaces; or features: all of their values, as many as on every other line.

    Raises:
        InputError: columns are missing, or there twice; a line cannot be read, names a node again, or has more cells
            than the header; all such lines are named.
    """
    lines = enumerate(read_lines(path), 1)
    header = next(lines, (1, ""))[1].split("\t")
    check_once(path, header, COLUMNS)
    if "node" not in header or not {"feature_indices", "features"} & set(header):
        raise InputError(
            f"{path}, line 1: expected a header with node, feature_indices or features, and perhaps split and label, "
            f"separated by tabs; got {', '.join(header)[:80]}."
        )
    found: dict[int, NodeLine] = {}
    problems, width = [], 0
    for number, line in lines:
        try:
            cells = _cells(header, line)
            each, width = _node_line(number, cells), _width(cells, width)
            if each.node in found:
                raise _Misfit(f"node {each.node} was in line {found[each.node].line} already")
            found[each.node] = each
        except _Misfit as error:
            problems.append(f"{path}, line {number}: {error}.")
        except ValueError:
            problems.append(f"{path}, line {number}: expected a node's number and its features; got {line[:60]}")
    if not found and not problems:
        problems.append(f"{path}: expected nodes; there are none.")
    _refuse(problems, str(path))
    return [found[node] for node in sorted(found)]


class _Misfit(ValueError):
    """What is wrong with a line, in words."""


def _cells(header: Sequence[str], line: str) -> dict[str, str]:
    cells = line.split("\t")
    if len(cells) > len(header):
        raise _Misfit(f"expected {len(header)} cells, as in the header; got {len(cells)}")
    return dict(zip(header, cells, strict=False))


def _width(cells: Mapping[str, str], width: int) -> int:
    """How many features the nodes have up to this one; 0 = none had any, which is no error."""
    count = len(cells.get("features", "").split()) if "feature_indices" not in cells else 0
    if count and width and count != width:
        raise _Misfit(f"expected {width} features, as in the lines before; got {count}")
    return width or count


def _node_line(number: int, cells: Mapping[str, str]) -> NodeLine:
    node, label = int(cells["node"]), cells.get("label", "").strip()
    if "feature_indices" in cells:
        entries = dict.fromkeys(map(int, cells["feature_indices"].split()), 1.0)
    else:
        entries = dict(enumerate(map(float, cells.get("features", "").split())))
    if node < 0 or min(entries, default=0) < 0 or not all(np.isfinite(value) for value in entries.values()):
        raise ValueError
    if node >= MOST_NODES:
        raise _Misfit(f"expected nodes numbered from 0 to {MOST_NODES - 1:,}; got {node}")
    if (last := max(entries, default=0)) >= MOST_FEATURES:
        raise _Misfit(f"expected features numbered from 0 to {MOST_FEATURES - 1:,}; got {last}")
    known = "" if label == "-1" else label
    return NodeLine(number, node, cells.get("split", "").strip(), known, {k: v for k, v in entries.items() if v})


def read_edges_file(path: Path, nodes: int) -> Whole:
    """(E, 2): the two nodes of each line, separated by white space.

    Raises:
        InputError: a line is none such, or names a node that there is not; all such lines are named.
    """
    pairs, problems = [], []
    for number, line in enumerate(read_lines(path), 1):
        try:
            source, target = map(int, line.split())
        except ValueError:
            problems.append(f"{path}, line {number}: expected the numbers of two nodes; got {line[:60]}")
            continue
        if not (0 <= source < nodes and 0 <= target < nodes):
            problems.append(f"{path}, line {number}: expected nodes from 0 to {nodes - 1}; got {line[:60]}")
        pairs.append((source, target))
    _refuse(problems, str(path))
    return np.array(pairs, np.int64).reshape(-1, 2)


class LabelledGraph(NamedTuple):
    """A line of a file of graphs: text is a JSON object of nodes and edges."""

    line: int
    text: str
    label: str


def read_graphs(path: Path) -> list[LabelledGraph]:
    """Graphs with their labels, from .jsonl, or as texts such as those of the datasets of Xu et al. 2019.

    .jsonl: {"nodes": [..], "edges": [[0, 1], ..], "label": ".."} a line. Anything else: the number of graphs; for each
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
            graph = {"nodes": found["nodes"], "edges": found["edges"]}
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f'{path}, line {number}: expected {{"nodes": [..], "edges": [[0, 1], ..], "label": ".."}}; got '
                f"{line[:60]}"
            ) from None
        yield LabelledGraph(number, compact(graph), str(found.get("label", "")))


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


def _refuse(problems: list[str], named: str) -> None:
    if problems:
        more = [f"{named}: {len(problems) - PROBLEMS:,} more lines like these."] if len(problems) > PROBLEMS else []
        raise InputError([*problems[:PROBLEMS], *more])
