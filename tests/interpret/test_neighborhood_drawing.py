"""Graphs as pictures: every node and edge once, weights as captured, and places as far apart as edges say."""

import itertools
import json
import pickle
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from rich.console import Console

from drawn_models import GRAPH, graphs, nodes
from transduce.attention.capture import capture
from transduce.core.errors import InputError
from transduce.inference.prediction import Prediction
from transduce.interpret.drawings import drawn
from transduce.interpret.neighborhood_drawing import AROUND, NeighborhoodDrawing, distances, laid_out
from transduce.pipeline.pipeline import Pipeline

SVG = "{http://www.w3.org/2000/svg}"


def drawing_of(pipeline: Pipeline, text: str) -> NeighborhoodDrawing:
    found = drawn(pipeline.model, pipeline.task, pipeline.predict(text))
    assert isinstance(found, NeighborhoodDrawing)
    return found


def test_a_whole_graph_has_the_weights_of_its_pass() -> None:
    pipeline = graphs()
    found = drawing_of(pipeline, GRAPH)
    assert found.nodes.tolist() == [0, 1, 2, 3, 4]
    pairs = {(int(s), int(t)) for s, t in zip(found.source, found.target, strict=True)}
    linked = {(0, 1), (1, 2), (2, 0), (2, 3)}
    assert pairs == linked | {(t, s) for s, t in linked} | {(each, each) for each in range(5)}
    with capture(pipeline) as record:
        pipeline.predict(GRAPH)
    for name, layer in zip(record.of("edge"), found.layers, strict=True):
        assert np.allclose(layer, record[name][0].numpy())
        sums = np.zeros((5, 2))
        np.add.at(sums, found.target, layer)
        assert sums == pytest.approx(np.ones((5, 2)), abs=1e-5)
    assert sum(found.shares) == pytest.approx(1, abs=1e-5)
    assert drawing_of(graphs(pooling="mean"), GRAPH).shares == ()


def test_the_nodes_that_count_most_are_shown_around_one() -> None:
    pipeline = nodes()
    found = drawing_of(pipeline, "7")
    assert len(found.nodes) == AROUND and found.nodes[0] == 7 and found.left_out == 20
    trace = pipeline.predict("7").trace()  # type: ignore[attr-defined]
    alpha = [torch.zeros(60, 60).index_put((trace.target, trace.source), each.mean(1)) for each in trace.layers]
    one = torch.eye(60)[7]
    counts = one + one @ alpha[1] + one @ alpha[1] @ alpha[0]
    hidden = sorted(set(range(60)) - set(found.nodes.tolist()))
    assert counts[hidden].max() <= counts[found.nodes].min() + 1e-6
    for name, label, certain in zip(found.nodes, found.labels, found.certain, strict=True):
        said = pipeline.predict(str(name))
        assert said.text == label
        assert said.probabilities[label] == pytest.approx(certain, abs=1e-5)  # type: ignore[attr-defined]


def test_the_svg_holds_every_node_and_edge_once() -> None:
    found = drawing_of(graphs(), GRAPH)
    root = ElementTree.fromstring(found.svg())  # our own
    assert [each.text for each in root.iter(f"{SVG}text")] == ["0", "1", "2", "3", "4"]
    assert len(list(root.iter(f"{SVG}path"))) == 8
    for each in root.iter(f"{SVG}circle"):
        assert 0 < float(each.attrib["cx"]) < float(root.attrib["width"])
        assert 0 < float(each.attrib["cy"]) < float(root.attrib["height"])


def test_the_terminal_names_what_a_node_reads() -> None:
    console = Console(width=80, record=True, force_terminal=False)
    console.print(drawing_of(nodes(), "7"))
    told = console.export_text()
    assert "layer 2, mean of heads: what node 7 reads" in told
    assert {"0 ", "6 ", "7 ", "8 "} <= {line[:2] for line in told.splitlines()}
    console.print(drawing_of(graphs(), GRAPH))
    assert "3 reads 2" in console.export_text()


def test_names_stand_in_the_place_of_numbers() -> None:
    """In the JSON of a graph; long ones are cut in the picture, and whole where one points at them."""
    names = ["C1", "C2", "O", "N", "a very long name"]
    named = json.dumps({**json.loads(GRAPH), "names": names})
    found = drawing_of(graphs(), named)
    assert list(found.node_names) == found.to_dict()["node_names"] == names
    root = ElementTree.fromstring(found.svg())  # our own
    assert [each.text for each in root.iter(f"{SVG}text")] == [*names[:4], "a very long…"]
    titles = {each.text or "" for each in root.iter(f"{SVG}title")}
    assert any(title.startswith("node a very long name") for title in titles)
    assert any(title.startswith("N reads O: ") for title in titles)
    console = Console(width=80, record=True, force_terminal=False)
    console.print(found)
    assert "N reads O" in console.export_text()
    plain = graphs().predict(GRAPH)
    assert graphs().predict(named).probabilities == plain.probabilities  # type: ignore[attr-defined]
    for wrong in (names[:4], [*names[:4], 5], "C1"):
        with pytest.raises(InputError, match="names are a list of 5 texts"):
            graphs().predict(json.dumps({**json.loads(GRAPH), "names": wrong}))


def test_a_prediction_without_its_model_has_no_picture() -> None:
    prediction = graphs().predict(GRAPH)
    copied = pickle.loads(pickle.dumps(prediction))  # noqa: S301 (our own, as other processes get it)
    assert copied == prediction
    for other in (copied, Prediction("a", "b", 0.0, 0.0, (), ())):
        with pytest.raises(InputError, match="predict it again"):
            NeighborhoodDrawing.of(other)


def test_distances_are_those_of_shortest_paths() -> None:
    random = np.random.default_rng(0)
    source, target = random.integers(0, 12, (2, 13))
    found = distances(12, source, target)
    slow = np.full((12, 12), np.inf)
    slow[source, target] = slow[target, source] = 1
    np.fill_diagonal(slow, 0)
    for middle, one, other in itertools.product(range(12), repeat=3):
        slow[one, other] = min(slow[one, other], slow[one, middle] + slow[middle, other])
    assert np.array_equal(found, slow)


def test_a_ring_becomes_a_ring_and_a_chain_a_line() -> None:
    each = np.arange(6)
    ring = laid_out(6, each, (each + 1) % 6)
    away = np.linalg.norm(ring - ring.mean(0), axis=1)
    assert away == pytest.approx(np.full(6, away.mean()), rel=0.02)
    chain = laid_out(5, np.arange(4), np.arange(1, 5))
    gaps = np.linalg.norm(chain[:, None] - chain[None], axis=-1)
    assert gaps == pytest.approx(np.abs(np.subtract.outer(np.arange(5), np.arange(5))), abs=0.05)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_nodes_without_edges_stand_apart(count: int) -> None:
    places = laid_out(count, np.zeros(0, int), np.zeros(0, int))
    assert np.isfinite(places).all()
    gaps = np.linalg.norm(places[:, None] - places[None], axis=-1) + np.eye(count)
    assert gaps.min() > 0.3
