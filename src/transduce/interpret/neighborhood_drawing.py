"""A graph around a node, or a whole graph, with what each node reads of its neighbors.

Of a large graph the nodes that count most for the one that was asked for are shown. How much a node counts is the sum
over layers of what is passed on: r_L = 1 at the node asked for, r_{l-1}[s] = sum_t alpha_ts r_l[t], with alpha the mean
of the heads of layer l.

Where the nodes of a graph stand in a picture: as far apart as there are edges between them, as well as that can be.

Stress majorization (Gansner, Koren, North 2004), from a tree drawn in rings; nothing in it is random.

Shapes: N nodes, E edges, H heads.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console, ConsoleOptions
from rich.text import Text

from transduce.core.atomic import write_text
from transduce.core.errors import InputError
from transduce.core.templates import render
from transduce.inference.graph_labels import EdgeTrace, GraphLabelPrediction
from transduce.inference.prediction import Prediction
from transduce.interpret.numbers import packed
from transduce.interpret.terminal import bar_line

if TYPE_CHECKING:
    from transduce.interpret.attention import Attention


STEPS = 200

AROUND, WHOLE = 40, 200  # nodes that are shown at most: around one, of a whole graph
LENGTH, APART, WIDEST = 80.0, 36.0, 1100.0  # pixels: of an edge; between nodes, where the whole is not wider than that
EDGE, RADIUS, THICK = 28, 14, 7.0  # pixels: around the picture; of a node; of an edge with the weight 1
BEND = 0.12  # of an edge, as a share of its length
LISTED = 10  # neighbors in a terminal
NAME = 12  # characters of a name in a picture
TEMPLATE = Path(__file__).with_name("neighborhood_drawing.html.jinja")
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class NeighborhoodDrawing:
    """What is shown of a graph.

    nodes: (N,) their numbers in the graph. node_names: (N,) what they are called. places: (N, 2) in pixels.
    source, target: (E,) indices of `nodes`.
    layers: of each layer (E, H). centre: the index of the node that was asked for, -1 = the graph was.
    left_out: how many nodes that count are not shown. labels, certain: (N,) the likeliest label of each node, and its
    probability; empty where the graph has the label. shares: (N,) of the pooling; empty where it is by no attention.
    """

    nodes: Array
    node_names: tuple[str, ...]
    places: Array
    source: Array
    target: Array
    layers: tuple[Array, ...]
    centre: int
    left_out: int
    labels: tuple[str, ...]
    certain: tuple[float, ...]
    shares: tuple[float, ...]
    probabilities: dict[str, float]
    names: tuple[str, ...]

    @classmethod
    def of(cls, prediction: Prediction, attention: "Attention | None" = None) -> Self:
        """Of the label of a node or of a graph. Raises InputError for another prediction."""
        if not isinstance(prediction, GraphLabelPrediction) or prediction.trace is None:
            raise InputError("this picture is of a node or a graph whose model is at hand: predict it again.")
        trace, names = prediction.trace(), prediction.label_names
        nodes, left_out = chosen_nodes(trace)
        place = np.full(trace.nodes, -1)
        place[nodes] = np.arange(len(nodes))
        source, target = place[trace.source.numpy()], place[trace.target.numpy()]
        inside = (source >= 0) & (target >= 0)
        source, target = source[inside], target[inside]
        centre = -1 if trace.chosen is None else int(place[trace.chosen])
        labels, certain = _labels(trace, nodes, names)
        shares = () if trace.shares is None else tuple(trace.shares[nodes].tolist())
        called = trace.names or tuple(map(str, range(trace.nodes)))
        return cls(
            nodes,
            tuple(called[node] for node in nodes.tolist()),
            _pixels(laid_out(len(nodes), source, target, centre if centre >= 0 else None)),
            source,
            target,
            tuple(layer.numpy()[inside] for layer in trace.layers),
            centre,
            left_out,
            labels,
            certain,
            shares,
            prediction.probabilities,
            names,
        )

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        width, height = np.ceil(self.places.max(0) + EDGE).astype(int).tolist()
        return width, height

    def to_dict(self) -> dict[str, Any]:
        weights = [packed(torch.from_numpy(np.ascontiguousarray(layer))) for layer in self.layers]
        return {
            "nodes": self.nodes.tolist(),
            "node_names": list(self.node_names),
            "places": self.places.round(1).tolist(),
            "size": list(self.size),
            "source": self.source.tolist(),
            "target": self.target.tolist(),
            "layers": weights,
            "centre": self.centre,
            "left_out": self.left_out,
            "labels": list(self.labels),
            "certain": list(self.certain),
            "shares": list(self.shares),
            "names": list(self.names),
            "probabilities": self.probabilities,
        }

    def write_figure(self, folder: Path) -> None:
        """As graph.svg, with the weights of the last layer."""
        write_text(folder / "graph.svg", self.svg())

    def svg(self, layer: int = -1) -> str:
        """The picture of a layer's mean heads; self-contained, without scripts."""
        weights = self.layers[layer].mean(1) if self.layers else np.zeros(len(self.source))
        edges = [
            {"path": _curve(self.places[s], self.places[t]), "width": round(THICK * float(weight), 2),
             "told": f"{self.node_names[t]} reads {self.node_names[s]}: {weight:.3f}"}
            for s, t, weight in zip(self.source, self.target, weights, strict=True) if s != t
        ]  # fmt: skip
        own = {int(t): float(w) for s, t, w in zip(self.source, self.target, weights, strict=True) if s == t}
        nodes = [
            {"name": _short(name), "x": x, "y": y, "own": round(THICK * own.get(index, 0.0), 2),
             "strong": index == self.centre, "told": self.told(index)}
            for index, (name, (x, y)) in enumerate(zip(self.node_names, self.places.round(1).tolist(), strict=True))
        ]  # fmt: skip
        [best] = list(self.probabilities)[:1]
        width, height = self.size
        return render(TEMPLATE, edges=edges, nodes=nodes, width=width, height=height, radius=RADIUS, label=best)

    def told(self, index: int) -> str:
        more = f", {self.labels[index]} {100 * self.certain[index]:.1f} %" if self.labels else ""
        more += f", counts {self.shares[index]:.3f}" if self.shares else ""
        return f"node {self.node_names[index]}{more}"

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>'

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for rank, (label, probability) in enumerate(list(self.probabilities.items())[:LISTED]):
            yield bar_line(label, probability, probability, 1 + max(map(len, self.names)), options, rank == 0)
        for number, layer in enumerate(self.layers, 1):
            rows = self._read(layer.mean(1))
            yield Text(f"layer {number}, mean of heads: {rows[0]}", "bold")
            width = max(16, *(1 + len(name) for name, _ in rows[1][:LISTED])) if rows[1] else 16
            for name, weight in rows[1][:LISTED]:
                yield bar_line(name, weight, weight / max(rows[1][0][1], 1e-9), width, options, strong=False)
            if len(rows[1]) > LISTED:
                yield Text(f"and {len(rows[1]) - LISTED} more", "dim")

    def _read(self, weight_E: Array) -> tuple[str, list[tuple[str, float]]]:
        """What the node in the middle reads, or of a graph the heaviest edges between two nodes."""
        order = np.argsort(-weight_E, kind="stable")
        if self.centre >= 0:
            mine = order[self.target[order] == self.centre]
            found = [(self.node_names[self.source[e]], float(weight_E[e])) for e in mine]
            return f"what node {self.node_names[self.centre]} reads", found
        others = order[self.target[order] != self.source[order]]
        named = [f"{self.node_names[self.target[e]]} reads {self.node_names[self.source[e]]}" for e in others]
        return "the heaviest edges", [(name, float(weight_E[e])) for name, e in zip(named, others, strict=True)]


def chosen_nodes(trace: EdgeTrace) -> tuple[Array, int]:
    """The nodes that are shown, the one asked for first, then those that count most; how many others count."""
    if trace.chosen is None:
        return np.arange(min(trace.nodes, WHOLE)), max(0, trace.nodes - WHOLE)
    total = passed = torch.zeros(trace.nodes, dtype=torch.float64).index_fill(0, torch.tensor([trace.chosen]), 1.0)
    for layer in reversed(trace.layers):
        each = layer.double().mean(1) * passed[trace.target]
        passed = torch.zeros_like(passed).index_add(0, trace.source, each)
        total = total + passed
    total[trace.chosen] = torch.inf
    order = np.argsort(-total.numpy(), kind="stable")
    count = int((total > 0).sum())
    return order[: min(count, AROUND)], max(0, count - AROUND)


def _labels(trace: EdgeTrace, nodes: Array, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    if trace.labels is None:
        return (), ()
    best, which = trace.labels[nodes].max(-1)
    return tuple(names[each] for each in which.tolist()), tuple(best.exp().tolist())


def _short(name: str) -> str:
    return name if len(name) <= NAME else f"{name[: NAME - 1]}…"


def _pixels(places: Array) -> Array:
    """(N, 2) from edges of length 1: to pixels, from the edge of the picture on."""
    gaps = np.linalg.norm(places[:, None] - places[None], axis=-1) + 1e9 * np.eye(len(places))
    span = max(float(np.ptp(places, axis=0).max()), 1e-9)
    scale = max(min(LENGTH, WIDEST / span), min(APART / max(float(gaps.min()), 1e-9), WIDEST / span))
    return (places - places.min(0)) * scale + EDGE


def _curve(source: Array, target: Array) -> str:
    """From one node to another, bent to one side, so that the edge back is another line."""
    across = np.array([source[1] - target[1], target[0] - source[0]]) * BEND
    x, y = (source + target) / 2 + across
    return f"M{source[0]:.1f} {source[1]:.1f}Q{x:.1f} {y:.1f} {target[0]:.1f} {target[1]:.1f}"


def laid_out(nodes: int, source: Array, target: Array, centre: int | None = None) -> Array:
    """(N, 2) places, with edges about 1 long.

    Args:
        centre: the node in the middle; None = the one from which no other is far.
    """
    apart_NN = distances(nodes, source, target)
    known = np.where(np.isinf(apart_NN), -1, apart_NN)
    unreached = known.max() + 1.0
    apart_NN = np.where(np.isinf(apart_NN), unreached, apart_NN)
    middle = int(apart_NN.max(1).argmin()) if centre is None else centre
    places = _rings(apart_NN, middle)
    weight_NN = 1 / np.maximum(apart_NN, 1) ** 2
    np.fill_diagonal(weight_NN, 0)
    total_N1 = np.maximum(weight_NN.sum(1, keepdims=True), 1e-9)
    for _ in range(STEPS):
        toward = places[:, None] - places[None]
        length_NN = np.maximum(np.linalg.norm(toward, axis=-1), 1e-9)
        wanted = places[None] + toward * (apart_NN / length_NN)[..., None]
        moved = (weight_NN[..., None] * wanted).sum(1) / total_N1
        places = places + 0.7 * (moved - places) if nodes > 1 else places
    return places - places[middle]


def distances(nodes: int, source: Array, target: Array) -> Array:
    """(N, N) how many edges are between two nodes, in any direction; infinity where no path is."""
    linked = np.zeros((nodes, nodes), bool)
    linked[source, target] = linked[target, source] = True
    found = np.full((nodes, nodes), np.inf)
    np.fill_diagonal(found, 0)
    reached, steps = np.eye(nodes, dtype=bool), 0
    while True:
        steps += 1
        fresh = ((reached.astype(np.float32) @ linked.astype(np.float32)) > 0) & np.isinf(found)
        if not fresh.any():
            return found
        found[fresh], reached = steps, fresh


def _rings(apart_NN: Array, middle: int) -> Array:
    """(N, 2): a tree from the middle, each node in the ring of its distance, in the sector of the one before it."""
    away = apart_NN[middle]
    order = np.argsort(away, kind="stable")
    above = {int(n): int(np.argmax((apart_NN[n] == 1) & (away == away[n] - 1))) for n in order if away[n] > 0}
    below: dict[int, list[int]] = {int(n): [] for n in order}
    for node, parent in above.items():
        below[parent if apart_NN[node, parent] == 1 else middle].append(node)
    leaves = {int(n): 1.0 for n in order}
    for node in order[::-1].tolist():
        leaves[node] = max(1.0, sum(leaves[each] for each in below[node]))
    places, sector = np.zeros((len(away), 2)), {middle: (0.0, 2 * np.pi)}
    for node in order.tolist():
        begin, end = sector[node]
        angle = (begin + end) / 2
        places[node] = away[node] * np.array([np.cos(angle), np.sin(angle)])
        for each in below[node]:
            width = (end - sector[node][0]) * leaves[each] / leaves[node]
            sector[each] = (begin, begin + width)
            begin += width
    return places
