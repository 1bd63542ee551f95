"""Labels of nodes and of graphs: files, columns, models against dense loops; trained, resumed, predicted, evaluated."""

import itertools
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from pydantic import ValidationError
from torch import Tensor

import transduce
from forked import transduce as command
from served import serving
from toy_trainings import resumed_to_the_same_bytes, trained_beside
from transduce.core.errors import InputError
from transduce.core.graphs import Graphs, SparseRows
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.columns.graph import Graph
from transduce.data.columns.node import Node
from transduce.data.structures.graphs import EdgeReading, folds_of, read_graphs, return_probabilities
from transduce.data.structures.node_tables import read_edges_file, read_nodes
from transduce.data.structures.numbered_names import NumberedNames
from transduce.models.graph_attention import GraphAttention, GraphAttentionConfig, GraphAttentionLayer
from transduce.models.graph_transformer import GraphTransformer, GraphTransformerBlock, GraphTransformerConfig
from transduce.recipe.recipe import load_recipe
from transduce.tasks.graph_classification import GraphClassificationData
from transduce.training.plots import write_figures

TRAINING = """
[training]
threads = 1
learning_rate = 1e-2
warmup = 0
average = 0.0
label_smoothing = 0.0
precision = "fp32"
best = "accuracy"
checkpoint_every = 15
"""


@pytest.fixture(scope="module")
def community(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two groups, each linked within itself; words say little, and nodes 58 and 59 have none."""
    folder, random_ = tmp_path_factory.mktemp("community"), random.Random(0)
    edges = {tuple(sorted(random_.sample(range(group, 60, 2), 2))) for group in (0, 1) for _ in range(60)}
    (folder / "edges.tsv").write_text("".join(f"{u}\t{v}\n" for u, v in sorted(edges)))
    lines = ["node\tsplit\tlabel\tfeature_indices"]
    for node in range(58):
        split = "train" if node < 16 else "val" if node < 30 else "test"
        words = random_.sample(range(12), 3) + ([12 + node % 2] if random_.random() < 0.5 else [])
        lines.append(f"{node}\t{split}\t{'even' if node % 2 == 0 else 'odd'}\t{' '.join(map(str, sorted(words)))}")
    lines.append("59\tunused\t\t")
    (folder / "nodes.tsv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def molecules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rings and chains of 4 to 7 atoms: only edges tell them apart."""
    folder, random_ = tmp_path_factory.mktemp("molecules"), random.Random(0)
    lines = []
    for number in range(60):
        size, ring = random_.randrange(4, 8), number % 2 == 0
        edges = [[each, each + 1] for each in range(size - 1)] + ([[size - 1, 0]] if ring else [])
        nodes = [random_.randrange(3) for _ in range(size)]
        lines.append(json.dumps({"nodes": nodes, "edges": edges, "label": "ring" if ring else "chain"}))
    (folder / "graphs.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def node_recipe(data: Path, path: Path) -> Path:
    path.write_text(f"""
[task]
kind = "node_classification"
[data]
root = "{data}"
nodes = "nodes.tsv"
edges = "edges.tsv"
[model]
kind = "graph_attention"
heads = 2
d_head = 4
dropout = 0.2
attention_dropout = 0.2
{TRAINING}updates = 60
validate_every = 10
""")
    return path


def graph_recipe(data: Path, path: Path) -> Path:
    path.write_text(f"""
[task]
kind = "graph_classification"
[data]
root = "{data}"
file = "graphs.jsonl"
folds = 5
fold = 2
degrees = 4
[batch]
tokens = 400
[model]
kind = "graph_attention"
heads = 2
d_head = 4
dropout = 0.0
attention_dropout = 0.0
pooling = "attention"
{TRAINING}updates = 120
validate_every = 20
""")
    return path


@pytest.fixture(scope="module", params=["nodes", "graphs"])
def trained(
    request: pytest.FixtureRequest, community: Path, molecules: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path]:
    folder = tmp_path_factory.mktemp("trained")
    path = folder / "recipe.toml"
    recipe = node_recipe(community, path) if request.param == "nodes" else graph_recipe(molecules, path)
    done = trained_beside(recipe, tmp_path_factory)
    assert "true \\ predicted" in done.out
    return request.param, folder / "run"


def inputs_of(kind: str) -> list[str]:
    if kind == "nodes":
        return [str(node) for node in range(30, 60)]
    ring = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0]]
    return [json.dumps({"nodes": [0, 1, 2, 0, 1], "edges": edges}) for edges in (ring, ring[:-1])]


def test_it_learns_from_edges(trained: tuple[str, Path]) -> None:
    _, run = trained
    report = json.loads((run / "report.json").read_text())
    accuracy = report["tests"]["test"]["scores"]["accuracy"]
    assert accuracy["value"] >= 85
    assert accuracy["interval"][0] <= accuracy["value"] <= accuracy["interval"][1]


def test_the_same_alone_and_in_any_batch(trained: tuple[str, Path]) -> None:
    kind, run = trained
    model, texts = transduce.load(run), inputs_of(kind)
    together: Any = model.predict(texts)
    for text, each in zip(texts, together, strict=True):
        alone: Any = model.predict(text)
        assert alone.label == each.label
        assert alone.probabilities == pytest.approx(each.probabilities, abs=1e-5)
        assert alone.log_probability == pytest.approx(model.score([(text, alone.label)])[0].log_probability, abs=1e-5)


def test_a_killed_training_ends_in_the_same_bytes(community: Path, tmp_path: Path) -> None:
    recipe = node_recipe(community, tmp_path / "recipe.toml")
    resumed_to_the_same_bytes(recipe)


def test_predict_and_evaluate_read_its_files(trained: tuple[str, Path], community: Path, molecules: Path) -> None:
    kind, run = trained
    source = community / "nodes.tsv" if kind == "nodes" else molecules / "graphs.jsonl"
    done = command(run.parent, "evaluate", run, "--source", source)
    assert done.code == 0, done.shown
    assert "accuracy" in done.out
    done = command(run.parent, "predict", run, given="\n".join(inputs_of(kind)).encode() + b"\n")
    assert done.code == 0, done.shown
    assert set(done.out.split()) <= {"even", "odd", "ring", "chain"}


def test_a_run_has_its_figures(trained: tuple[str, Path], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    _, run = trained
    pipeline, recipe, told = transduce.load(run), load_recipe(run / "recipe.toml"), list[str]()
    task: Any = type(pipeline.task)
    (tmp_path / "log.jsonl").write_bytes((run / "log.jsonl").read_bytes())
    (tmp_path / "figures").mkdir()
    data = task(recipe.task, recipe.data, pipeline.task.columns).open(tmp_path / "cache", told.append)
    tests = json.loads((run / "report.json").read_text())["tests"]
    left_out = list[str]()
    write_figures(tmp_path, pipeline.model, pipeline.task, data, tests, left_out.append)
    assert not left_out
    assert {each.name for each in (tmp_path / "figures").iterdir()} == {"training.png", "confusion.png", "graph.svg"}


def test_it_is_served(trained: tuple[str, Path]) -> None:
    kind, run = trained
    texts, model = inputs_of(kind), transduce.load(run)
    with serving([run]) as server:
        answer = server.post("/v1/predict", texts=texts, scores=True)
        assert answer.status_code == 200, answer.text
        found: Any = model.predict(texts)
        for said, each in zip(answer.json()["predictions"], found, strict=True):
            assert said["text"] == each.label
            assert said["probabilities"] == pytest.approx(each.probabilities, abs=1e-5)
        drawn = server.post("/v1/explore/predict", text=texts[0]).json()
        assert drawn["nbest"][0]["text"] == found[0].label
        assert drawn["drawing"]["kind"] == "neighborhood_drawing"
        for wrong in ("60", "x", ""):
            answer = server.post("/v1/predict", texts=[wrong])
            assert (answer.status_code, "expected" in answer.json()["error"]) == (400, True)
        for path, asked in [
            ("predict", {"texts": texts[:1], "attention": True}),
            ("explore/heads", {"text": texts[0]}),
        ]:
            answer = server.post(f"/v1/{path}", **asked)
            assert answer.status_code == 400
            assert "attention" in answer.json()["error"] or "attends" in answer.json()["error"]
        said = server.post("/v1/stream", text=texts[0])
        assert "event: error" in said.text and "writes no text" in said.text


def test_what_is_no_input_is_refused(trained: tuple[str, Path]) -> None:
    kind, run = trained
    model = transduce.load(run)
    said = "expected the number of a node, from 0 to 59" if kind == "nodes" else "expected a graph as"
    for wrong in ("60", "-1", "x", '{"nodes": []}', '{"nodes": [0], "edges": [[0, 1]]}'):
        with pytest.raises(InputError, match=said):
            model.predict(wrong)


# ---- models against dense loops ------------------------------------------------------------------------------


def dense_layer(layer: GraphAttentionLayer, x: Tensor, mask: Tensor) -> Tensor:
    """Equations 1 to 6 of the paper, head by head, from all pairs of nodes."""
    score: Any = layer.attention.score
    heads = []
    for head, weight in enumerate(layer.weight_XX.chunk(layer.heads, 1)):
        h = x @ weight
        e = F.leaky_relu((h @ score.query_HK[head])[:, None] + (h @ score.key_HK[head])[None], 0.2)
        heads.append(e.masked_fill(~mask, -torch.inf).softmax(1) @ h)
    return (torch.cat(heads, 1) if layer.joined else torch.stack(heads).mean(0)) + layer.bias_X


def test_the_network_is_the_papers() -> None:
    torch.manual_seed(0)
    specs = Specs(ColumnSpec("node", 6), ColumnSpec("label", 3))
    model = GraphAttention(GraphAttentionConfig(heads=3, d_head=4, output_heads=2), specs).double().eval()
    pairs = np.random.default_rng(0).integers(0, 10, (15, 2))
    source, target = map(torch.from_numpy, EdgeReading().read(pairs, 10))
    x = torch.randn(10, 6, dtype=torch.float64) * (torch.rand(10, 6) > 0.6)
    mask = torch.zeros(10, 10, dtype=torch.bool)
    mask[target, source] = True
    assert mask.equal(mask.T)
    assert mask.diagonal().all()
    hidden: Any = model.layers[0]
    assert model.last is not None
    expected = dense_layer(model.last, F.elu(dense_layer(hidden, x, mask)), mask)
    rows, columns = x.nonzero(as_tuple=True)
    sparse = SparseRows.of(columns, x[rows, columns], torch.searchsorted(rows, torch.arange(11)), 6)
    chosen = torch.tensor([7, 0, 3])
    for features in (x, sparse):
        graphs = Graphs(features, source, target, torch.tensor([10]), chosen)
        got = model.classify(graphs)
        torch.testing.assert_close(got, expected[chosen])
        ours = torch.autograd.grad(got.square().sum(), [*model.parameters()])
        theirs = torch.autograd.grad(expected[chosen].square().sum(), [*model.parameters()], retain_graph=True)
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("jumping", ["last", "concat", "max"])
@pytest.mark.parametrize("virtual", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_what_is_read_behind_the_hidden_layers(jumping: str, virtual: bool, whole: bool) -> None:
    """Jumping knowledge, and a node more in each graph, against dense loops over the nodes of one graph."""
    torch.manual_seed(2)
    specs = Specs(ColumnSpec("graph" if whole else "node", 6), ColumnSpec("label", 3))
    settings = {"layers": 3, "heads": 2, "d_head": 4, "jumping": jumping, "virtual_node": virtual, "pooling": "sum"}
    model = GraphAttention(GraphAttentionConfig.model_validate(settings), specs).double().eval()
    source, target = map(torch.from_numpy, EdgeReading().read(np.random.default_rng(3).integers(0, 7, (9, 2)), 7))
    mask = torch.zeros(7, 7, dtype=torch.bool)
    mask[target, source] = True
    x, before, hidden = torch.randn(7, 6, dtype=torch.float64), torch.zeros(8, dtype=torch.float64), list[Tensor]()
    graphs = Graphs(x, source, target, torch.tensor([7]), None if whole else torch.arange(7))
    layers: Any = model.layers
    assert len(model.virtual) == (2 if virtual else 0)
    for place, layer in enumerate(layers):
        x = F.elu(dense_layer(layer, x, mask))
        hidden.append(x)
        if place < len(model.virtual):
            update: Any = model.virtual[place]
            before = F.elu(update.update.weight @ torch.cat((before, x.mean(0))) + update.update.bias)
            x = x + before
    read = {"last": x, "concat": torch.cat(hidden, 1), "max": torch.stack(hidden).max(0).values}[jumping]
    if whole:
        assert model.output is not None
        expected = model.output(read.sum(0)[None])
    else:
        assert model.last is not None
        expected = dense_layer(model.last, read, mask)
    torch.testing.assert_close(model.classify(graphs), expected)


@pytest.mark.parametrize("pooling", ["mean", "sum", "max", "attention"])
@pytest.mark.parametrize("score", ["additive", "dot"])
def test_graphs_do_not_see_each_other_nor_their_numbering(pooling: str, score: str) -> None:
    torch.manual_seed(0)
    column, random_ = Graph(3, 0, degrees=2), random.Random(1)
    settings = {"heads": 2, "d_head": 4, "residual": True, "pooling": pooling, "score": score, "virtual_node": True}
    config = GraphAttentionConfig.model_validate(settings)
    model = GraphAttention(config, Specs(column.spec, ColumnSpec("label", 2))).double().eval()

    def classified(graphs: list[dict[str, Any]]) -> Tensor:
        batch = column.collate(column.encode([json.dumps(each) for each in graphs]))
        assert isinstance(batch.features, Tensor)
        return model.classify(batch._replace(features=batch.features.double()))

    graphs, turned = [], []
    for size in (1, 4, 7):
        edges = [list(each) for each in itertools.combinations(range(size), 2) if random_.random() < 0.5]
        nodes, place = [random_.randrange(3) for _ in range(size)], random_.sample(range(size), size)
        graphs.append({"nodes": nodes, "edges": edges})
        moved = [nodes[place.index(each)] for each in range(size)]
        turned.append({"nodes": moved, "edges": [[place[u], place[v]] for u, v in edges]})
    together = classified(graphs)
    torch.testing.assert_close(together, torch.cat([classified([each]) for each in graphs]))
    torch.testing.assert_close(together, classified(turned))


# ---- columns and files ---------------------------------------------------------------------------------------


def test_edges_are_read_once_in_order() -> None:
    pairs = np.array([[0, 2], [2, 0], [0, 2], [1, 1]])
    both = EdgeReading().read(pairs, 3)
    assert list(zip(*map(np.ndarray.tolist, both), strict=True)) == [(0, 0), (2, 0), (1, 1), (0, 2), (2, 2)]
    one = EdgeReading(undirected=False, self_loops=False).read(pairs, 3)
    assert list(zip(*map(np.ndarray.tolist, one), strict=True)) == [(2, 0), (1, 1), (0, 2)]


def test_walks_that_are_back_after_so_many_steps() -> None:
    """Against the powers of the transition matrix; a ring of five, a ring of six and a dead end are told apart."""
    rings = [*((each, (each + 1) % 5) for each in range(5)), *((5 + each, 5 + (each + 1) % 6) for each in range(6))]
    source, target = EdgeReading(self_loops=False).read(np.array([*rings, (0, 5), (3, 11)]), 300)
    adjacent = np.zeros((300, 300))
    adjacent[target, source] = 1
    step = adjacent / np.maximum(adjacent.sum(0), 1)
    wanted = np.stack([np.diag(np.linalg.matrix_power(step, power)) for power in range(1, 7)], 1)
    np.testing.assert_allclose(return_probabilities(source, target, 300, 6), wanted, atol=1e-6)
    column = Graph(0, 0, degrees=2, walks=3)
    [row] = column.encode([json.dumps({"nodes": [[], [], []], "edges": [[0, 1], [1, 2], [2, 0]]})])
    np.testing.assert_allclose(row[1:4, 2:5], [[0, 0.5, 0.25]] * 3)
    assert Graph.from_dict(json.loads(json.dumps(column.to_dict()))) == column


def test_a_model_file_keeps_the_graph(community: Path) -> None:
    from transduce.data.tokenizers.tokenizer import TokenizerConfig
    from transduce.tasks.node_classification import NodeClassification, NodeClassificationData

    data = NodeClassificationData(root=str(community), nodes="nodes.tsv", edges="edges.tsv")
    column = NodeClassification.learn_columns(TokenizerConfig(), data)["source"]
    assert isinstance(column, Node)
    back = Node.from_dict(json.loads(json.dumps(column.to_dict())))
    for name in ("source", "target", "columns", "values", "row_starts"):
        assert np.array_equal(getattr(back, name), getattr(column, name))
    graph = column.collate([np.array([3])])
    assert (graph.nodes, graph.examples) == (60, 1)
    sums = np.add.reduceat(np.append(column.values, 0), column.row_starts[:-1])[:58]
    assert sums == pytest.approx(1)
    assert (column.row_starts[58:] == len(column.values)).all()  # neither 58, which is in no line, nor 59 has a word
    table = column.to_dict()
    for wrong in ({"width": 3}, {"target": table["values"]}, {"source": "?"}, {"row_starts": table["columns"]}):
        with pytest.raises(InputError, match="the model file's graph"):
            Node.from_dict({**table, **wrong})


def test_folds_spread_each_label() -> None:
    labels = ["a"] * 63 + ["b"] * 125
    folds = folds_of(labels, 10, seed=0)
    assert np.array_equal(folds, folds_of(labels, 10, seed=0))
    assert not np.array_equal(folds, folds_of(labels, 10, seed=1))
    for of in (folds[:63], folds[63:], folds):
        counts = np.bincount(of, minlength=10)
        assert counts.max() - counts.min() <= 1
    data = GraphClassificationData(file="x", fold=9)
    assert [data.role(fold, 10) for fold in range(10)] == ["validation", *["train"] * 8, "test"]
    other = GraphClassificationData(file="x", folds=3, fold=2, validation_fold=1)
    assert [other.role(fold, 3) for fold in range(3)] == ["train", "validation", "test"]
    none = GraphClassificationData(file="x", folds=3, validation_fold="none")
    assert [none.role(fold, 3) for fold in range(3)] == ["test", "train", "train"]
    for wrong in ({"fold": 10}, {"validation_fold": 0}, {"validation_fold": 10}, {"folds": 2}):
        with pytest.raises(ValidationError):
            GraphClassificationData.model_validate({"file": "x", **wrong})


def test_text_and_json_are_the_same_graphs(tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text("2\n2 yes\n0 1 1\n1 1 0\n1 no\n4 0\n")
    first, second = read_graphs(tmp_path / "two.txt")
    assert json.loads(first.text) == {"nodes": [0, 1], "edges": [[0, 1], [1, 0]]}
    assert (first.label, second.label, second.line) == ("yes", "no", 5)
    (tmp_path / "two.jsonl").write_text(
        "".join(f'{each.text[:-1]},"label":"{each.label}"}}\n' for each in (first, second))
    )
    assert [each[1:] for each in read_graphs(tmp_path / "two.jsonl")] == [first[1:], second[1:]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2\n1 yes\n0 0\n", "line 3: expected the number of graphs"),
        ("1\n1 yes\n0 1 1\n", "line 3"),
        ("x\n", "line 1"),
    ],
)
def test_a_wrong_file_of_graphs_is_named(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "graphs.txt").write_text(text)
    with pytest.raises(InputError, match=said):
        read_graphs(tmp_path / "graphs.txt")


def test_all_wrong_lines_of_nodes_and_edges_are_named(tmp_path: Path) -> None:
    (tmp_path / "nodes.tsv").write_text("node\tfeature_indices\n0\t1\n0\t2\nx\t1\n1\t-2\n")
    with pytest.raises(InputError) as caught:
        read_nodes(tmp_path / "nodes.tsv")
    assert [problem.partition("line ")[2][0] for problem in caught.value.problems] == ["3", "4", "5"]
    (tmp_path / "edges").write_text("0 1\n0\n0 9\n")
    with pytest.raises(InputError) as caught:
        read_edges_file(tmp_path / "edges", NumberedNames(2))
    assert [problem.partition("line ")[2][0] for problem in caught.value.problems] == ["2", "3"]
    (tmp_path / "bare").write_text("0\t1\n")
    with pytest.raises(InputError, match="line 1: expected a header"):
        read_nodes(tmp_path / "bare")


def test_models_of_other_inputs_are_refused() -> None:
    with pytest.raises(InputError, match="expected a task with graphs"):
        GraphAttention(GraphAttentionConfig(), Specs.of_tokens(5, 5))
    with pytest.raises(InputError, match="gives it graphs"):
        _ = Specs(ColumnSpec("graph", 4), ColumnSpec("label", 2)).sizes


def test_a_transformer_on_the_complete_graph_is_torchs() -> None:
    torch.manual_seed(0)
    config = GraphTransformerConfig(layers=2, heads=2, d_model=8, feed_forward=12)
    model = GraphTransformer(config, Specs(ColumnSpec("node", 5), ColumnSpec("label", 3))).eval()
    x, pairs = torch.randn(6, 5), np.array(list(itertools.product(range(6), repeat=2)))
    source, target = map(torch.from_numpy, EdgeReading().read(pairs, 6))
    chosen = torch.arange(6)
    got = model.classify(Graphs(x, source, target, torch.tensor([6]), chosen))
    states = (x @ model.embedding_FX)[None]
    for block in model.blocks:
        assert isinstance(block, GraphTransformerBlock)
        layer = torch.nn.TransformerEncoderLayer(8, 2, 12, 0.0, "gelu", batch_first=True, norm_first=True).eval()
        names = {"self_attn.in_proj_": "project.", "self_attn.out_proj.": "join.", "linear1.": "widen."}
        names |= {"linear2.": "narrow.", "norm1.": "norm.", "norm2.": "feed_norm."}
        ours = block.state_dict()
        layer.load_state_dict(
            {f"{theirs}{each}": ours[f"{name}{each}"] for theirs, name in names.items() for each in ("weight", "bias")}
        )
        states = layer(states)
    torch.testing.assert_close(got, model.output(model.norm(states[0])), atol=1e-5, rtol=1e-5)


def test_a_transformer_sees_no_other_graph() -> None:
    column = Graph(3, 0)
    model = GraphTransformer(GraphTransformerConfig(), Specs(column.spec, ColumnSpec("label", 2))).eval()
    rows = column.encode(['{"nodes":[0,1],"edges":[[0,1]]}', '{"nodes":[2,1,1],"edges":[[0,2]]}'])
    together = model.classify(column.collate(rows))
    torch.testing.assert_close(together, torch.cat([model.classify(column.collate([row])) for row in rows]))
