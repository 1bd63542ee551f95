"""The nodes of one graph, each with a label; some labels are known in training."""

from collections import Counter
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.registry import suggest
from transduce.data.columns import Columns
from transduce.data.columns.label import Label
from transduce.data.columns.node import Node
from transduce.data.encoding import open_examples
from transduce.data.files import fingerprint
from transduce.data.filters import NO_LIMITS
from transduce.data.formats import is_table
from transduce.data.input_file import InputFile
from transduce.data.remote import located
from transduce.data.store import Store
from transduce.data.structures.graphs import EdgeReading
from transduce.data.structures.node_tables import NodeLine, names_of, read_edges_file, read_nodes
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.inference.graph_labels import NodeLabelPredictor
from transduce.tasks.base import LabelTask
from transduce.tasks.protocols import Dataset, TaskData, Tell


class NodeClassificationConfig(Config):
    """What labels of nodes are judged by."""

    kind: Literal["node_classification"] = "node_classification"
    metrics: tuple[str, ...] = ("accuracy", "macro_f1")
    """What validation, the final tests and `evaluate` report: accuracy, macro_f1."""


class NodeClassificationData(Config):
    """The files of one graph; paths are relative to `root`, `root` to the working directory.

    All nodes and edges are read in training, but only the labels of the training nodes are (transductive learning).
    """

    root: str = "."
    """Where the files lie."""
    nodes: str
    """A table, .tsv, .csv, .jsonl and so on, with the columns node (a number from 0) or name, or both; split and label;
    feature_indices (of those that are 1) or features."""
    edges: str
    """The two nodes of an edge, by name or number: columns source and target of a table, or two a line."""
    train: str = "train"
    """The nodes of this split are trained on."""
    validation: str | None = "val"
    """Those of this split pick the best weights."""
    test: dict[str, str] = Field(default_factory=lambda: {"test": "test"})
    """Splits by the names of their tests; scored once, at the end."""
    undirected: bool = True
    """Whether each edge counts in both directions; else the second node of a line reads the first."""
    self_loops: bool = True
    """Whether each node also reads itself."""
    normalization: Literal["row", "none"] = "row"
    """row: the features of each node are divided by their sum where they are counts, so that none of any node is
    negative; others stay as they are. none: all stay as they are."""

    @property
    def splits(self) -> dict[str, str]:
        """By name: train, validation, and the tests."""
        return {"train": self.train, **({"validation": self.validation} if self.validation else {}), **self.test}


class NodeClassification(LabelTask):
    """A node -> a label, by a model that `Classifies` nodes of a graph that it sees as a whole."""

    Config = NodeClassificationConfig
    Data = NodeClassificationData
    kinds: ClassVar[dict[str, str]] = {"source": "node", "target": "label"}
    default_model = "graph_attention"
    never_split = True
    drawing = "neighborhood_drawing"
    drawn_alone = True

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: NodeClassificationData) -> Columns:
        """The graph, and the labels of the training nodes in the order of their names."""
        root = Path(data.root)
        nodes = read_nodes(located(root, data.nodes))
        names = {each.label for each in nodes if each.split == data.train and each.label}
        if len(names) < 2:
            raise InputError(_no_labels(located(root, data.nodes), data.train, nodes))
        return {"source": _graph(data, nodes), "target": Label(tuple(sorted(names)))}

    @staticmethod
    def training_files(data: NodeClassificationData) -> list[Path]:
        """What the columns are learnt from."""
        return [Path(data.root, data.nodes), Path(data.root, data.edges)]

    @property
    def predictor(self) -> NodeLabelPredictor:
        """The likeliest label."""
        return NodeLabelPredictor(self.columns)

    @property
    def max_source_length(self) -> int:
        """A node's number."""
        return 1

    @property
    def context(self) -> str:
        """The whole graph."""
        return "the graph, without the labels of other nodes"

    def read_inputs(self, path: Path) -> InputFile | None:
        """The test nodes of a file with a header such as the training's; all nodes, where it has no splits."""
        if not is_table(path):
            return None
        nodes = read_nodes(path, features=False)
        tests = set(self.data.test.values())
        chosen = [each for each in nodes if each.split in tests] or nodes
        return InputFile(
            [],
            [each.name or str(each.node) for each in chosen],
            [[each.label] if each.label else [] for each in chosen],
        )

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """The labelled nodes of each split; how many there are is told."""
        data, path, graph = self.data, located(self.root, self.data.nodes), self.columns["source"]
        assert isinstance(graph, Node)
        called = graph.node_names.text
        lines = read_nodes(path)
        stores, found = {}, {}
        for name, split in data.splits.items():
            rows = [(each.line, called(each.node), each.label) for each in lines if each.split == split and each.label]
            if not rows:
                raise InputError(_no_labels(path, split, lines))
            stores[name] = self._store(rows, split, cache)
            found[name] = Dataset(stores[name], [(node, label) for _, node, label in rows])
        counts = ", ".join(f"{name} {len(each.texts):,}" for name, each in found.items())
        empty = graph.nodes - len(lines)
        more = f" {empty:,} nodes are not in the file and have no features." if empty else ""
        tell(f"{path}: {graph.nodes:,} nodes, {len(graph.source):,} edges as they are read; {counts}.{more}")
        self.tell_of_rare(Counter(label for _, label in found["train"].texts), path, tell)
        del found["train"]
        files = {"file": data.nodes, "sha256": self._fingerprints()}
        provenance = {name: [{**files, "split": split}] for name, split in data.splits.items()}
        return TaskData([(stores["train"], 1.0)], found.pop("validation", None), found, provenance)

    def _fingerprints(self) -> list[str]:
        return [fingerprint(path) for path in self.training_files(self.data)]

    def _store(self, rows: list[tuple[int, str, str]], split: str, cache: Path) -> Store:
        files, settings = self.training_files(self.data), {"split": split}
        return open_examples(files, lambda: iter(rows), self.columns, NO_LIMITS, cache, settings)


def _no_labels(path: Path, split: str, nodes: list[NodeLine]) -> str:
    known = sorted({each.split for each in nodes if each.label and each.split})
    return (
        f'{path}: expected nodes of the split "{split}" with labels; there are none, or all have the same. Splits with '
        f"labels: {', '.join(known) or 'none'}.{suggest(split, known)}"
    )


def _graph(data: NodeClassificationData, nodes: list[NodeLine]) -> Node:
    """The column of a graph; nodes that no line names have no features, which are zeros."""
    count, names = nodes[-1].node + 1, names_of(nodes)
    pairs = read_edges_file(located(Path(data.root), data.edges), names)
    source, target = EdgeReading(data.undirected, data.self_loops).read(pairs, count)
    sizes = np.zeros(count, np.int64)
    columns: list[int] = []
    values: list[float] = []
    by_row = data.normalization == "row" and min(min(each.entries.values(), default=0) for each in nodes) >= 0
    for each in nodes:
        entries = sorted(each.entries.items())
        sizes[each.node] = len(entries)
        total = sum(value for _, value in entries) if by_row else 1.0
        columns += [column for column, _ in entries]
        values += [value / (total or 1.0) for _, value in entries]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    ends = source.astype(np.int32), target.astype(np.int32)
    width = max(columns, default=0) + 1
    features = np.array(columns, np.int32), np.array(values, np.float32), starts
    return Node(width, *ends, *features, names.names)
