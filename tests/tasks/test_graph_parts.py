"""Parts of a graph's nodes, and of graphs, that files state: lists, folds, draws; and what is wrong in them."""

import json
from collections import Counter
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import transduce
from forked import transduce as command
from transduce.core.errors import InputError
from transduce.data.structures.graphs import read_graphs
from transduce.data.structures.node_tables import read_nodes
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.recipe.recipe import load_recipe
from transduce.tasks.graph_classification import GraphClassification, GraphClassificationData
from transduce.tasks.node_classification import NodeClassification, NodeClassificationData

NAMES = ["oak", "elm", "ash", "fir", "yew", "box", "bay", "fig", "gum", "ivy", "sal", "tea"]


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    """Twelve nodes in a ring, with names and two labels; the last has none."""
    rows = [f"{name},{'ab'[n % 2] if n < 11 else ''},{n % 3} {n % 5}" for n, name in enumerate(NAMES)]
    (tmp_path / "nodes.csv").write_text("name,label,feature_indices\n" + "\n".join(rows) + "\n")
    ends = zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True)
    (tmp_path / "edges.csv").write_text("source,target\n" + "".join(f"{one},{other}\n" for one, other in ends))
    return tmp_path


def data_of(folder: Path, **more: Any) -> NodeClassificationData:
    return NodeClassificationData.model_validate(
        {"root": str(folder), "nodes": "nodes.csv", "edges": "edges.csv", **more}
    )


def written(folder: Path, **lists: str) -> dict[str, Any]:
    """Lists with a name a line; as keys of [data]."""
    for part, names in lists.items():
        (folder / f"{part}.txt").write_text("".join(f"{name}\n" for name in names.split()))
    return {part: {"file": f"{part}.txt"} for part in lists}


def named(data: NodeClassificationData) -> dict[str, set[str]]:
    parts, _ = data.parts(read_nodes(Path(data.root, data.nodes)))
    return {part: {each.name for each in nodes} for part, nodes in parts.items()}


def test_nodes_are_in_the_lists_that_name_them(trees: Path) -> None:
    lists = written(trees, train="oak elm 2 fir", validation="yew box", test="fig bay")
    found = named(data_of(trees, **lists))
    wanted = {"train": {"oak", "elm", "ash", "fir"}, "validation": {"yew", "box"}, "test": {"fig", "bay"}}
    assert found == wanted
    del lists["train"]
    rest = {*NAMES[:-1]} - wanted["validation"] - wanted["test"]
    assert named(data_of(trees, **lists)) == {**wanted, "train": rest}


def test_a_list_is_any_table(trees: Path) -> None:
    (trees / "a.csv").write_text("year,tree\n1,oak\n2,elm\n")
    (trees / "b.jsonl").write_text('{"node": "fir"}\n{"node": 4}\n')
    lists = {"train": {"file": "a.csv", "column": "tree"}, "test": {"one": {"file": "b.jsonl"}}}
    assert named(data_of(trees, **lists)) == {"train": {"oak", "elm"}, "one": {"fir", "yew"}}


@pytest.mark.parametrize(
    ("train", "test", "said"),
    [
        ("oak elm oak", "fig", r'train.txt, line 3: node "oak" was in line 1 already'),
        ("oak elm 0", "fig", r'train.txt, line 3: node "oak" was in line 1 already'),
        ("oak elm", "fig elm", r'test.txt, line 2: node "elm" is for test, and for train in .*train.txt, line 2'),
        (
            "oak elm",
            "figg",
            r'test.txt, line 1: expected the name of a node, or its number from 0 to 11; got "figg".*fig',
        ),
        ("oak elm", "12", r'test.txt, line 1: expected .*got "12"'),
        ("oak elm", "", r"test.txt: expected nodes; there are none"),
        ("oak tea", "fig", r'train.txt, line 2: node "tea" has no label'),
    ],
)
def test_what_is_wrong_in_a_list_is_named(trees: Path, train: str, test: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        named(data_of(trees, **written(trees, train=train, test=test)))


def test_a_list_that_meets_a_split_is_refused(trees: Path) -> None:
    rows = [f"{name},{'ab'[n % 2]},{n % 3},{'train' if n < 6 else 'test'}" for n, name in enumerate(NAMES)]
    (trees / "nodes.csv").write_text("name,label,feature_indices,split\n" + "\n".join(rows) + "\n")
    data = data_of(trees, validation=written(trees, validation="oak")["validation"])
    with pytest.raises(InputError, match=r"validation.txt, line 1: node \"oak\" is for validation, and for train"):
        named(data)


def test_nodes_are_held_out_of_each_label(trees: Path) -> None:
    data = data_of(trees, hold_out={"validation": 2, "test": 2})
    found = named(data)
    assert found == named(data)
    assert {part: len(names) for part, names in found.items()} == {"train": 7, "validation": 2, "held_out": 2}
    assert set().union(*found.values()) == {*NAMES[:-1]}
    label = {name: "ab"[n % 2] for n, name in enumerate(NAMES)}
    assert Counter(label[name] for name in found["validation"]) == {"a": 1, "b": 1}
    with pytest.raises(ValidationError, match="validation and hold_out"):
        data_of(trees, hold_out=2, validation={"file": "a.txt"})
    with pytest.raises(InputError, match="cannot hold out 11 of 11"):
        named(data_of(trees, hold_out=11))


def test_names_that_are_numbers_are_never_places(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("name,label,features\n3,a,1\n7,b,2\n1,a,3\n0,b,4\n")
    (tmp_path / "edges.csv").write_text("source,target\n3,7\n1,0\n")
    data = data_of(tmp_path, **written(tmp_path, train="3 7", test="1"))
    assert named(data) == {"train": {"3", "7"}, "test": {"1"}}
    node: Any = NodeClassification.learn_columns(TokenizerConfig(), data)["source"]
    assert {(0, 1), (2, 3)} <= set(zip(node.source.tolist(), node.target.tolist(), strict=True))
    with pytest.raises(InputError, match='such as "3"; got "2"'):
        node.encode(["2"])


def test_a_graph_with_names_from_training_to_prediction(trees: Path, tmp_path: Path) -> None:
    lists = written(trees, train="oak elm ash fir yew", validation="box bay", test="fig gum ivy")
    recipe = trees / "recipe.toml"
    entries = "\n".join(f'[data.{part}]\nfile = "{entry["file"]}"' for part, entry in lists.items())
    recipe.write_text(
        f'[task]\nkind = "node_classification"\n[data]\nroot = "{trees}"\nnodes = "nodes.csv"\nedges = "edges.csv"\n'
        f'{entries}\n[model]\nkind = "graph_attention"\nheads = 1\nd_head = 2\n'
        '[training]\nthreads = 1\nprecision = "fp32"\nupdates = 2\nvalidate_every = 1\nbest = "loss"\n'
    )
    assert load_recipe(recipe).data.test["test"].file == "test.txt"  # type: ignore[attr-defined]
    run = tmp_path / "run"
    done = command(tmp_path, "train", recipe, "--run", run)
    assert done.code == 0, done.shown
    done = command(tmp_path, "train", recipe, "--run", run, "training.updates=3")
    assert done.code == 0, done.shown
    told = json.loads((run / "report.json").read_text())["data"]
    assert told["test"][0]["list"] == {"file": "test.txt", "column": 0}
    done = command(tmp_path, "predict", run, "--json", given=b"tea\n3\n")
    assert [json.loads(line)["source"] for line in done.out.splitlines()] == ["tea", "fir"]
    done = command(tmp_path, "predict", run, "--draw", "--text", "oak")
    assert "what node oak reads" in done.out
    assert {"oak", "elm", "tea"} <= {line.split()[0] for line in done.out.splitlines() if line}
    drawing: Any = transduce.load(run).predict("oak")
    assert ">elm</text>" in drawing._repr_html_()
    done = command(tmp_path, "evaluate", run, "--source", trees / "nodes.csv")
    assert done.code == 0, done.shown
    own: Any = transduce.load(run).read_inputs(trees / "nodes.csv")
    assert (own.texts, own.references) == (["fig", "gum", "ivy"], [["b"], ["a"], ["b"]])


# ---- graphs --------------------------------------------------------------------------------------------------


@pytest.fixture
def rings(tmp_path: Path) -> Path:
    """Twelve graphs with ids, of two labels in turn; each has another size."""
    lines = [
        {"id": f"g{n}", "nodes": [0] * (n + 2), "edges": [[0, 1]], "label": "ab"[n % 2]} for n in range(12)
    ]  # fmt: skip
    (tmp_path / "graphs.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    return tmp_path


def sizes(folder: Path, **more: Any) -> dict[str, list[int]]:
    """The number of each graph in each part."""
    data = GraphClassificationData.model_validate({"root": str(folder), "file": "graphs.jsonl", **more})
    parts, _ = data.parts(folder / "graphs.jsonl", read_graphs(folder / "graphs.jsonl"))
    return {part: [len(json.loads(each.text)["nodes"]) - 2 for each in graphs] for part, graphs in parts.items()}


def test_graphs_are_in_the_folds_of_a_file(rings: Path) -> None:
    folds = {"10": [3, 4, 11], "2": [0, 1], "1": [2, 5, 6, 7], "3": [8, 9, 10]}
    (rings / "lines.txt").write_text("".join(f"{fold} {' '.join(map(str, some))}\n" for fold, some in folds.items()))
    (rings / "table.csv").write_text(
        "graph,fold\n" + "".join(f"g{graph},{fold}\n" for fold, some in folds.items() for graph in some)
    )
    for file in ({"file": "lines.txt", "lines": True}, {"file": "table.csv"}):
        assert sizes(rings, folds=file, fold=3) == {
            "train": [0, 1, 8, 9, 10], "validation": [2, 5, 6, 7], "test": [3, 4, 11]
        }  # fmt: skip
        found = sizes(rings, folds=file, fold=1, validation_fold="none")
        assert found == {"train": [2, 3, 4, 5, 6, 7, 8, 9, 10, 11], "test": [0, 1]}
        with pytest.raises(InputError, match=r"data.fold = 4: .* has 4 folds, counted from 0"):
            sizes(rings, folds=file, fold=4)


def test_graphs_are_in_the_lists_that_name_them(rings: Path) -> None:
    lists = written(rings, validation="g3 g4", test="5 g6")
    assert sizes(rings, **lists) == {"train": [0, 1, 2, 7, 8, 9, 10, 11], "validation": [3, 4], "test": [5, 6]}
    lists = written(rings, train="g0 g1 g2", test="5 g6")
    assert sizes(rings, **lists) == {"train": [0, 1, 2], "test": [5, 6]}
    found = sizes(rings, hold_out={"validation": 2, "test": 0.25})
    assert {part: len(some) for part, some in found.items()} == {"train": 7, "validation": 2, "held_out": 3}
    assert sorted(chain.from_iterable(found.values())) == [*range(12)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 g0 g1\n1 g2 g0\n", 'line 2: graph "g0" was in line 1 already'),
        ("0 g0 g1\n1 g2 g99\n", 'line 2: expected the name of a graph, or its number from 0 to 11; got "g99"'),
        ("0 g0 g1\n", "expected two folds or more; got 1"),
        ("", "expected graphs; there are none"),
        ("0 g0\n1\n", "expected two folds or more; got 1"),
    ],
)
def test_what_is_wrong_in_a_file_of_folds_is_named(rings: Path, text: str, said: str) -> None:
    (rings / "folds.txt").write_text(text)
    with pytest.raises(InputError, match=said):
        sizes(rings, folds={"file": "folds.txt", "lines": True})


def test_folds_beside_lists_are_refused(rings: Path) -> None:
    for wrong in (
        {"fold": 1, "hold_out": 2},
        {"folds": 5, "test": {"file": "a"}},
        {"folds": {"file": "a"}, "fold_seed": 1},
    ):
        with pytest.raises(ValidationError, match="not read with"):
            sizes(rings, **wrong)
    with pytest.raises(InputError, match="validation: expected graphs with labels"):
        (rings / "folds.csv").write_text("graph,fold\ng1,0\ng0,1\ng3,2\n")
        graphs = (rings / "graphs.jsonl").read_text().replace('"label": "a"', '"label": ""')
        (rings / "graphs.jsonl").write_text(graphs)
        sizes(rings, folds={"file": "folds.csv"})


def test_stated_folds_reach_the_stores(rings: Path, tmp_path: Path) -> None:
    (rings / "folds.csv").write_text("graph,fold\n" + "".join(f"{n},{n % 3}\n" for n in range(12)))
    given = {"root": str(rings), "file": "graphs.jsonl", "folds": {"file": "folds.csv"}, "fold": 2}
    data, told = GraphClassificationData.model_validate(given), list[str]()
    assert data.fold_count == 3
    columns = GraphClassification.learn_columns(TokenizerConfig(), data)
    opened = GraphClassification(GraphClassification.Config(), data, columns).open(tmp_path / "cache", told.append)
    assert any('fold 2 ("2") of 3: train 4, validation 4, test 4' in line for line in told)
    [(store, _)] = opened.corpora
    assert sorted(int(row[0, 0]) - 2 for row in store.read("source", np.arange(len(store)))) == [1, 4, 7, 10]
    assert [len(json.loads(text)["nodes"]) - 2 for text, _ in opened.tests["test"].texts] == [2, 5, 8, 11]
