"""A graph around a node, or a whole graph, with what each node reads of its neighbors.

Of a large graph the nodes that count most for the one that was asked for are shown. How much a node counts is the sum
over layers of what is passed on: r_L = 1 at the node asked for, r_{l-1}[s] = sum_t alpha_ts r_l[t], with alpha the mean
of the heads of layer l.

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
from transduce.interpret.graph_layout import laid_out
from transduce.interpret.numbers import packed
from transduce.interpret.terminal import bar_line

if TYPE_CHECKING:
    from transduce.interpret.attention import Attention

AROUND, WHOLE = 40, 200  # nodes that are shown at most: around one, of a whole graph
LENGTH, APART, WIDEST = 80.0, 36.0, 1100.0  # pixels: of an edge; between nodes, where the whole is not wider than that
EDGE, RADIUS, THICK = 28, 14, 7.0  # pixels: around the picture; of a node; of an edge with the weight 1
BEND = 0.12  # of an edge, as a share of its length
LISTED = 10  # neighbors in a terminal
TEMPLATE = Path(__file__).with_name("neighborhood_drawing.html.jinja")
Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class NeighborhoodDrawing:
    """What is shown of a graph.

    nodes: (N,) their numbers in the graph. places: (N, 2) in pixels. source, target: (E,) indices of `nodes`.
    layers: of each layer (E, H). centre: the index of the node that was asked for, -1 = the graph was.
    left_out: how many nodes that count are not shown. labels, certain: (N,) the likeliest label of each node, and its
    probability; empty where the graph has the label. shares: (N,) of the pooling; empty where it is by no attention.
    """

    nodes: Array
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
        return cls(
            nodes,
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
             "told": f"{self.nodes[t]} reads {self.nodes[s]}: {weight:.3f}"}
            for s, t, weight in zip(self.source, self.target, weights, strict=True) if s != t
        ]  # fmt: skip
        own = {int(t): float(w) for s, t, w in zip(self.source, self.target, weights, strict=True) if s == t}
        nodes = [
            {"name": int(number), "x": x, "y": y, "own": round(THICK * own.get(index, 0.0), 2),
             "strong": index == self.centre, "told": self.told(index)}
            for index, (number, (x, y)) in enumerate(zip(self.nodes, self.places.round(1).tolist(), strict=True))
        ]  # fmt: skip
        [best] = list(self.probabilities)[:1]
        width, height = self.size
        return render(TEMPLATE, edges=edges, nodes=nodes, width=width, height=height, radius=RADIUS, label=best)

    def told(self, index: int) -> str:
        more = f", {self.labels[index]} {100 * self.certain[index]:.1f} %" if self.labels else ""
        more += f", counts {self.shares[index]:.3f}" if self.shares else ""
        return f"node {self.nodes[index]}{more}"

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.svg()}</div>'

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        for rank, (label, probability) in enumerate(list(self.probabilities.items())[:LISTED]):
            yield bar_line(label, probability, probability, 1 + max(map(len, self.names)), options, rank == 0)
        for number, layer in enumerate(self.layers, 1):
            rows = self._read(layer.mean(1))
            yield Text(f"layer {number}, mean of heads: {rows[0]}", "bold")
            for name, weight in rows[1][:LISTED]:
                yield bar_line(name, weight, weight / max(rows[1][0][1], 1e-9), 16, options, strong=False)
            if len(rows[1]) > LISTED:
                yield Text(f"and {len(rows[1]) - LISTED} more", "dim")

    def _read(self, weight_E: Array) -> tuple[str, list[tuple[str, float]]]:
        """What the node in the middle reads, or of a graph the heaviest edges between two nodes."""
        order = np.argsort(-weight_E, kind="stable")
        if self.centre >= 0:
            mine = order[self.target[order] == self.centre]
            found = [(str(self.nodes[self.source[e]]), float(weight_E[e])) for e in mine]
            return f"what node {self.nodes[self.centre]} reads", found
        others = order[self.target[order] != self.source[order]]
        named = [f"{self.nodes[self.target[e]]} reads {self.nodes[self.source[e]]}" for e in others]
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
