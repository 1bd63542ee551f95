"""Files of nodes: what a reader would fill up, cut or guess in silence is an error that names its line."""

import base64
import json
import zlib
from pathlib import Path

import numpy as np
import pytest

from transduce.core.errors import InputError
from transduce.data.columns.node import Node
from transduce.data.structures.node_tables import NodeLine, read_edges_file, read_nodes
from transduce.data.structures.numbered_names import NumberedNames
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.tasks.graph_classification import GraphClassification, GraphClassificationData
from transduce.tasks.node_classification import NodeClassification, NodeClassificationData

HEAD = "node\tsplit\tlabel\tfeatures"


def nodes(folder: Path, *lines: str, head: str = HEAD) -> Path:
    (folder / "nodes.tsv").write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    (folder / "edges.tsv").write_text("0\t1\n", encoding="utf-8")
    return folder / "nodes.tsv"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("1\ttrain\tb\t1 2 3", "line 3: expected 2 features, as in the lines before; got 3"),
        ("1\ttrain\tb\t1", "line 3: expected 2 features, as in the lines before; got 1"),
        ("1\ttrain\tb\t1 2\tx", "line 3: expected 4 cells, as in the header; got 5"),
        ("1000000000\ttrain\tb\t1 2", "line 3: expected nodes numbered from 0 to 9,999,999; got 1000000000"),
        ("0\ttrain\tb\t1 2", "line 3: node 0 was in line 2 already"),
    ],
)
def test_a_line_that_does_not_fit_is_named(line: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=said):
        read_nodes(nodes(tmp_path, "0\ttrain\ta\t1 2", line))


def test_a_feature_that_no_model_could_hold_is_refused(tmp_path: Path) -> None:
    path = nodes(tmp_path, "0\ttrain\ta\t3 1000000000", head="node\tsplit\tlabel\tfeature_indices")
    with pytest.raises(InputError, match="line 2: expected features numbered from 0 to 999,999; got 1000000000"):
        read_nodes(path)


def test_a_tag_that_no_model_could_hold_is_refused(tmp_path: Path) -> None:
    lines = [f'{{"nodes": [0, {tag}], "edges": [[0, 1]], "label": "{tag % 2}"}}' for tag in (1, 2, 1_000_000_000)]
    (tmp_path / "g.jsonl").write_text("\n".join(lines))
    data = GraphClassificationData(root=str(tmp_path), file="g.jsonl", folds=3)
    with pytest.raises(InputError, match=r"line 3: expected tags from 0 to 999,999.*got 1000000000"):
        GraphClassification.learn_columns(TokenizerConfig(), data)


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = nodes(tmp_path, "0\ta\tb\t1", head="node\tlabel\tlabel\tfeatures")
    with pytest.raises(InputError, match="line 1: the column label is there twice"):
        read_nodes(path)


TABLES = {
    "tsv": "node\tname\tsplit\tlabel\tfeatures\n1\toak\ttrain\ta\t1 0.5\n0\tash tree\t\t-1\t0 2\n",
    "csv": 'label,node,name,features,split\na,1,oak,"1 0.5",train\n-1,0,ash tree,0 2,\n',
    "jsonl": '{"node": 1, "name": "oak", "split": "train", "label": "a", "features": [1, 0.5]}\n'
    '{"node": 0, "name": "ash tree", "label": -1, "features": "0 2", "split": null}\n',
    "json": '[{"node": 1, "name": "oak", "split": "train", "label": "a", "features": [1, 0.5]},'
    '{"node": 0, "name": "ash tree", "features": [0, 2]}]',
}


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_any_format_hold_the_same_nodes(kind: str, tmp_path: Path) -> None:
    (tmp_path / f"nodes.{kind}").write_text(TABLES[kind], encoding="utf-8")
    first, second = (each._replace(line=0) for each in read_nodes(tmp_path / f"nodes.{kind}"))
    assert first == NodeLine(0, 0, "", "", {1: 2.0}, "ash tree")
    assert second == NodeLine(0, 1, "train", "a", {0: 1.0, 1: 0.5}, "oak")


EDGES = {
    "txt": "ash tree\toak\noak\t0\n",
    "tsv": "source\ttarget\nash tree\toak\n\n1\t0\n",
    "csv": "weight,source,target\n1,ash tree,oak\n2,oak,ash tree\n",
    "jsonl": '{"from": "ash tree", "to": "oak"}\n{"from": 1, "to": 0}\n',
    "cites": "0 1\noak 0\n",
}


@pytest.mark.parametrize("kind", EDGES)
def test_edges_of_any_format_are_the_same(kind: str, tmp_path: Path) -> None:
    (tmp_path / f"edges.{kind}").write_text(EDGES[kind], encoding="utf-8")
    found = read_edges_file(tmp_path / f"edges.{kind}", NumberedNames(2, ("ash tree", "oak")))
    assert found.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("e.csv", "0,1\n1,2\n", "line 1: expected a header such as source,target; got an edge"),
        ("e.csv", "a,b,c\n0,1,2\n", "expected the columns source and target; it has a, b, c"),
        ("e.csv", "source,target\n0,1\n0,7\n", "line 3: expected the number of a node, from 0 to 2; got 0 7"),
        ("e.jsonl", '{"source": 0, "target": 1}\n{"source": 0}\n', "line 2: expected an object"),
        ("e.txt", "0 1\n0 1 2\n", "line 2: expected two nodes; got 0 1 2"),
    ],
)
def test_what_is_wrong_with_an_edge_is_named(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        read_edges_file(tmp_path / name, NumberedNames(3))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,features\noak,1\noak,2\n", 'line 3: the name "oak" was in line 2 already'),
        ("name,features\noak,1\n ,2\n", "line 3: expected the name of a node; it is empty"),
        ("paper,features\noak,1\n", "line 1: expected a header with node or name"),
    ],
)
def test_what_is_wrong_with_a_name_is_said(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        read_nodes(tmp_path / "nodes.csv")


def test_a_model_file_keeps_the_names(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("name,split,label,features\nKöln,train,a,1\n東京,train,b,2\n")
    (tmp_path / "edges.txt").write_text("Köln 東京\n")
    data = NodeClassificationData(root=str(tmp_path), nodes="nodes.csv", edges="edges.txt")
    column = NodeClassification.learn_columns(TokenizerConfig(), data)["source"]
    assert isinstance(column, Node)
    table = json.loads(json.dumps(column.to_dict()))
    back = Node.from_dict(table)
    assert back.tokens([1, 0]) == ["東京", "Köln"] and back.encode(["東京", " 0"]) == [[1], [0]]
    with pytest.raises(InputError, match=r'got "Koln".* Did you mean "Köln"'):
        back.encode(["Koln"])
    for names in (("a",), ("a", "a")):
        packed = base64.b64encode(zlib.compress("\n".join(names).encode())).decode()
        with pytest.raises(InputError, match="a name for each node, all different"):
            Node.from_dict({**table, "names": packed})


def values(folder: Path, normalization: str, *rows: str) -> list[list[float]]:
    lines = [f"{number}\ttrain\t{number % 2}\t{row}" for number, row in enumerate(rows)]
    path = nodes(folder, *lines)
    data = NodeClassificationData.model_validate(
        {"root": str(folder), "nodes": path.name, "edges": "edges.tsv", "normalization": normalization}
    )
    column = NodeClassification.learn_columns(TokenizerConfig(), data)["source"]
    assert isinstance(column, Node)
    return [[round(float(each), 4) for each in row] for row in np.split(column.values, column.row_starts[1:-1])]


def test_counts_are_divided_by_their_sum_and_measurements_stay_as_they_are(tmp_path: Path) -> None:
    counts, measured = ("1 3", "2 0", "5 5"), ("1.5 -1.25", "-2 2.5", "1 1")
    assert values(tmp_path, "row", *counts) == [[0.25, 0.75], [1.0], [0.5, 0.5]]
    assert values(tmp_path, "row", *measured) == [[1.5, -1.25], [-2.0, 2.5], [1.0, 1.0]]
    assert values(tmp_path, "none", *counts) == [[1.0, 3.0], [2.0], [5.0, 5.0]]


def test_labels_with_one_example_are_told(tmp_path: Path) -> None:
    path = nodes(tmp_path, *(f"{each}\ttrain\t{'a' if each < 3 else 'odd'}\t1 2" for each in range(4)))
    data = NodeClassificationData(
        root=str(tmp_path), nodes=path.name, edges="edges.tsv", validation=None, test={"test": "train"}
    )
    columns = NodeClassification.learn_columns(TokenizerConfig(), data)
    told = list[str]()
    NodeClassification(NodeClassification.Config(), data, columns).open(tmp_path / "cache", told.append)
    assert [line for line in told if "1 label has one example in training" in line and '("odd")' in line]
