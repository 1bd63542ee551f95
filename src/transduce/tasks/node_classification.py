"""The nodes of one graph, each with a label; some labels are known in training."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor

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
from transduce.data.hold_out import HELD_OUT, HoldOut, check_drawn_once
from transduce.data.input_file import InputFile
from transduce.data.members import Entry, ListedMember, MemberList, check_filled, drawn_from, read_parts, root_of
from transduce.data.remote import located
from transduce.data.store import Store
from transduce.data.structures.graphs import EdgeReading
from transduce.data.structures.node_tables import NodeLine, names_of, read_edges_file, read_nodes
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.inference.graph_labels import NodeLabelPredictor
from transduce.tasks.base import LabelTask
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell

MOST_FEATURES = 200_000_000  # numbers of all nodes, of which a baseline holds three copies


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
    train: str | MemberList = "train"
    """The nodes of this split are trained on; or those of a list: { file = "train.txt" }. Where the table has no
    splits: all that have a label and are in no list."""
    validation: str | MemberList | None = "val"
    """Those of this split, or list, pick the best weights."""
    test: dict[str, str | MemberList] = Field(default_factory=lambda: dict[str, str | MemberList](test="test"))
    """Splits, or lists, by the names of their tests; scored once, at the end."""
    hold_out: HoldOut | None = None
    """Instead of splits or lists for validation and test: how many training nodes to draw for them, of each label in
    proportion. A number alone is for validation."""
    undirected: bool = True
    """Whether each edge counts in both directions; else the second node of a line reads the first."""
    self_loops: bool = True
    """Whether each node also reads itself."""
    normalization: Literal["row", "none"] = "row"
    """row: the features of each node are divided by their sum where they are counts, so that none of any node is
    negative; others stay as they are. none: all stay as they are."""

    @model_validator(mode="before")
    @classmethod
    def _drawn_in_their_place(cls, table: Any) -> Any:
        """No split for what is drawn, unless it is named."""
        drawn = table.get("hold_out") if isinstance(table, dict) else None
        amounts = drawn.model_dump() if isinstance(drawn, HoldOut) else drawn
        amounts = amounts if isinstance(amounts, dict) else {"validation": amounts}
        empty: dict[str, Any] = {"validation": None, "test": {}}
        return {**{key: value for key, value in empty.items() if amounts.get(key)}, **table} if drawn else table

    @model_validator(mode="after")
    def _held_out_once(self) -> Self:
        check_drawn_once(self.hold_out, self.validation, self.test)
        return self

    def drawn_tests(self) -> dict[str | None, str]:
        """What the test set that was drawn is called: it has no language."""
        return {None: HELD_OUT}

    @property
    def lists(self) -> dict[str, MemberList]:
        """The parts that are lists, by name."""
        return {part: entry for part, entry in self._entries(True).items() if isinstance(entry, MemberList)}

    def parts(self, nodes: Sequence[NodeLine]) -> tuple[dict[str, list[NodeLine]], str]:
        """The nodes of train, validation and each test; how held-out ones were drawn, in a sentence.

        Raises:
            InputError: what `read_parts` and `drawn_from` refuse.
        """
        root, by_number = Path(self.root), {each.node: each for each in nodes}
        path = located(root, self.nodes)
        labelled = {each.node: ListedMember(each.node, f"{path}, line {each.line}") for each in nodes if each.label}
        entries: dict[str, Entry] = {}
        for part, entry in self._entries(any(each.split for each in nodes)).items():
            if isinstance(entry, str):
                entries[part] = [labelled[each.node] for each in nodes if each.split == entry and each.label]
            else:
                entries[part] = entry
        names, told = names_of(nodes), ""
        found = read_parts(entries, labelled, names, root)
        if self.hold_out and self.hold_out.draws:
            texts = {node: names.text(node) for node in found["train"]}
            labels = {node: by_number[node].label for node in found["train"]}
            drawn, told = drawn_from(found["train"], texts, labels, self.hold_out, str(path))
            found |= drawn
        return {part: [by_number[node] for node in numbers] for part, numbers in found.items()}, told

    def _entries(self, splits: bool) -> dict[str, str | MemberList | None]:
        """What each part is. splits: whether the table has them; None = the rest."""
        fields = type(self).model_fields
        unset = {part for part in ("train", "validation") if getattr(self, part) == fields[part].default}
        test = self.test if splits or self.test != {"test": "test"} else {}
        train = None if not splits and "train" in unset else self.train
        validation = None if not splits and "validation" in unset else self.validation
        return {"train": train, **({"validation": validation} if validation else {}), **test}


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
        path = located(root, data.nodes)
        nodes = read_nodes(path)
        parts, _ = data.parts(nodes)
        names = {each.label for each in parts["train"]}
        if len(names) < 2:
            raise InputError(_no_labels(path, data.train if isinstance(data.train, str) else "", nodes))
        return {"source": _graph(data, nodes), "target": Label(tuple(sorted(names)))}

    @staticmethod
    def training_files(data: NodeClassificationData) -> list[Path]:
        """What the columns are learnt from."""
        root = Path(data.root)
        files = [located(root, data.nodes), located(root, data.edges)]
        return [*files, *(each.path(root) for each in data.lists.values())]

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
        """The test nodes of a table with such columns as the training's; all nodes, where it has no tests."""
        if not is_table(path) or path.name in {Path(each.file).name for each in self.data.lists.values()}:
            return None
        nodes = read_nodes(path, features=False)
        if path.name == Path(self.data.nodes).name:
            data = self.data.model_copy(update={"root": str(root_of(path, self.data.nodes))})
            parts, _ = data.parts(nodes)
            chosen = [each for name, part in parts.items() if name not in ("train", "validation") for each in part]
        else:
            tests = {each for each in self.data.test.values() if isinstance(each, str)}
            chosen = [each for each in nodes if each.split in tests]
        texts = [each.name or str(each.node) for each in chosen or nodes]
        return InputFile([], texts, [[each.label] if each.label else [] for each in chosen or nodes])

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """The labelled nodes of each part; how many there are is told."""
        data, path, graph = self.data, located(self.root, self.data.nodes), self.columns["source"]
        assert isinstance(graph, Node)
        lines = read_nodes(path)
        parts, drawn = data.parts(lines)
        for part, entry in {"validation": data.validation, **data.test}.items():
            if isinstance(entry, str) and parts.get(part) == []:
                raise InputError(_no_labels(path, entry, lines))
        check_filled(path, parts, "node")
        if drawn:
            tell(drawn)
        stores, found = {}, {}
        for name, nodes in parts.items():
            rows = [(each.line, graph.node_names.text(each.node), each.label) for each in nodes]
            stores[name] = self._store(rows, name, cache)
            found[name] = Dataset(stores[name], [(node, label) for _, node, label in rows])
        counts = ", ".join(f"{name} {len(each.texts):,}" for name, each in found.items())
        empty = graph.nodes - len(lines)
        more = f" {empty:,} nodes are not in the file and have no features." if empty else ""
        tell(f"{path}: {graph.nodes:,} nodes, {len(graph.source):,} edges as they are read; {counts}.{more}")
        self.tell_of_rare(Counter(label for _, label in found["train"].texts), path, tell)
        del found["train"]
        provenance = {name: [self._origin(name)] for name in parts}
        return TaskData([(stores["train"], 1.0)], found.pop("validation", None), found, provenance)

    def baseline(self, data: TaskData, tell: Tell) -> Baseline | None:
        """Logistic regression on two hops of features; its regularisation is chosen by the accuracy on validation."""
        from transduce.inference.graph_features import two_hops
        from transduce.inference.logistic_regression import LogisticRegression

        graph = self.columns["source"]
        assert isinstance(graph, Node)
        if graph.nodes * graph.width > MOST_FEATURES:
            tell("No baseline: two hops of the features of so many nodes would not fit in memory.")
            return None
        read_NF = two_hops(graph.graph)

        def examples(store: Store) -> tuple[Tensor, Tensor]:
            nodes, labels = self.stored_examples([store])
            return read_NF[np.concatenate(nodes)], torch.from_numpy(labels)

        training = examples(data.corpora[0][0])
        validation = examples(data.validation.store) if data.validation else None
        model = LogisticRegression.chosen(training, validation, len(self.label_names))
        names, label_N = self.label_names, model.predict(read_NF).tolist()
        return Baseline(
            "two hops, logistic regression",
            lambda texts: [names[label_N[node]] for [node] in graph.encode(texts)],
            {"hops": 2, "strength": model.strength, "examples": len(training[1])},
        )

    def _origin(self, part: str) -> dict[str, Any]:
        """What a part was made from, for the model file."""
        files = {"file": self.data.nodes, "sha256": [fingerprint(path) for path in self.training_files(self.data)]}
        settings = self._settings(part)
        return {**files, **{key: value for key, value in settings.items() if value is not None}}

    def _settings(self, part: str) -> dict[str, Any]:
        """Which nodes a part has, for JSON."""
        entry = {"train": self.data.train, "validation": self.data.validation, **self.data.test}.get(part)
        drawn = self.data.hold_out.model_dump() if self.data.hold_out else None
        if isinstance(entry, MemberList):
            return {"list": entry.model_dump(exclude_none=True), "hold_out": drawn}
        return {"split": entry or part, "hold_out": drawn}

    def _store(self, rows: list[tuple[int, str, str]], part: str, cache: Path) -> Store:
        files, settings = self.training_files(self.data), {**self._settings(part), "part": part}
        return open_examples(files, lambda: iter(rows), self.columns, NO_LIMITS, cache, settings)


def _no_labels(path: Path, split: str, nodes: Sequence[NodeLine]) -> str:
    """What is wrong with the nodes of a split; "" = those of a list."""
    known = sorted({each.split for each in nodes if each.label and each.split})
    if not split or not known:
        return f"{path}: expected training nodes with labels, of two or more; there are none, or all have the same."
    return (
        f'{path}: expected nodes of the split "{split}" with labels; there are none, or all have the same. Splits with '
        f"labels: {', '.join(known)}.{suggest(split, known)}"
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
    found, given = np.array(columns, np.int32), np.array(values, np.float32)
    return Node(width, *ends, found, given, starts, names.names)
