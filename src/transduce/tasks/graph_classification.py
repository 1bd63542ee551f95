"""Whole graphs, such as molecules, each with a label; folds for cross-validation."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.columns import Columns
from transduce.data.columns.graph import Graph
from transduce.data.columns.label import Label
from transduce.data.encoding import open_examples
from transduce.data.files import fingerprint
from transduce.data.filters import NO_LIMITS
from transduce.data.input_file import InputFile
from transduce.data.remote import located
from transduce.data.store import Store
from transduce.data.structures.graphs import EdgeReading, LabelledGraph, folds_of, read_graphs
from transduce.data.structures.node_tables import MOST_FEATURES
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.inference.graph_labels import GraphLabelPredictor
from transduce.tasks.base import LabelTask
from transduce.tasks.protocols import Dataset, TaskData, Tell


class GraphClassificationConfig(Config):
    """What labels of graphs are judged by."""

    kind: Literal["graph_classification"] = "graph_classification"
    metrics: tuple[str, ...] = ("accuracy", "macro_f1")
    """What validation, the final tests and `evaluate` report: accuracy, macro_f1."""


class GraphClassificationData(Config):
    """A file of graphs, cut into folds; paths are relative to `root`, `root` to the working directory."""

    root: str = "."
    """Where the file lies."""
    file: str
    """.jsonl: a graph {"nodes": [..], "edges": [[0, 1], ..], "label": ".."} a line. Anything else: the text format of
    the datasets of Xu et al. 2019. Compressed or not."""
    folds: int = Field(default=10, ge=2)
    """The graphs are cut into so many parts, over which each label is spread evenly."""
    fold: int = Field(default=0, ge=0)
    """This fold, from 0, is the test."""
    fold_seed: int = Field(default=0, ge=0)
    """Which graph comes into which fold is drawn from this seed, whatever the training's."""
    validation_fold: int | Literal["next", "none"] = "next"
    """This fold picks the best weights; next = the one behind the test fold; none = all others are trained on, to the
    end."""
    degrees: int = Field(default=0, ge=0)
    """The degree of a node is so many features besides its own; a greater degree counts as the greatest."""
    walks: int = Field(default=0, ge=0)
    """How likely a random walk from a node is back there after 1, 2, .. steps, as so many features besides its own.
    They tell rings of different sizes apart."""
    undirected: bool = True
    """Whether each edge counts in both directions; else the second node of an edge reads the first."""
    self_loops: bool = True
    """Whether each node also reads itself."""

    @model_validator(mode="after")
    def _there_is_such_a_fold(self) -> Self:
        if self.fold >= self.folds:
            raise ValueError(f"fold: expected a number from 0 to {self.folds - 1}, as folds = {self.folds}")
        held = self.validation_fold
        if isinstance(held, int) and (held == self.fold or not 0 <= held < self.folds):
            raise ValueError(f"validation_fold: expected another fold than the test's, {self.fold}, of {self.folds}")
        if self.folds == 2 and held != "none":
            raise ValueError('folds = 2 leaves nothing to train on beside validation: set validation_fold = "none"')
        return self

    def role(self, fold: int) -> str:
        """What the graphs of a fold are for: train, validation or test."""
        if fold == self.fold:
            return "test"
        held = (self.fold + 1) % self.folds if self.validation_fold == "next" else self.validation_fold
        return "validation" if fold == held else "train"


class GraphClassification(LabelTask):
    """A graph -> a label, by a model that `Classifies` graphs."""

    Config = GraphClassificationConfig
    Data = GraphClassificationData
    kinds: ClassVar[dict[str, str]] = {"source": "graph", "target": "label"}
    default_model = "graph_attention"
    never_split = True
    drawing = "neighborhood_drawing"
    drawn_alone = True

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: GraphClassificationData) -> Columns:
        """How nodes are described, in all graphs; the labels in the order of their names."""
        path = Path(data.root, data.file)
        graphs = read_graphs(path)
        names = {each.label for each in graphs if each.label}
        if len(names) < 2:
            raise InputError(f"{path}: expected graphs of two labels or more; got {', '.join(names) or 'none'}.")
        edges = EdgeReading(data.undirected, data.self_loops)
        return {
            "source": Graph(*_described(path, graphs), data.degrees, edges, data.walks),
            "target": Label(tuple(sorted(names))),
        }

    @staticmethod
    def training_files(data: GraphClassificationData) -> list[Path]:
        """What the columns are learnt from."""
        return [Path(data.root, data.file)]

    @property
    def predictor(self) -> GraphLabelPredictor:
        """The likeliest label."""
        return GraphLabelPredictor(self.columns)

    @property
    def context(self) -> str:
        """The graph."""
        return "the graph"

    def read_inputs(self, path: Path) -> InputFile | None:
        """The graphs of a .jsonl; of the recipe's own file, those of the test fold."""
        own = path.name == Path(self.data.file).name
        if not own and ".jsonl" not in path.suffixes:
            return None
        graphs = self._labelled(path)["test"] if own else read_graphs(path)
        return InputFile([], [each.text for each in graphs], [[each.label] if each.label else [] for each in graphs])

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """The folds that are trained on, validated by and tested; how many graphs each has is told."""
        path = located(self.root, self.data.file)
        by_role = self._labelled(path)
        counts = ", ".join(f"{role} {len(graphs):,}" for role, graphs in by_role.items())
        tell(f"{path}, fold {self.data.fold} of {self.data.folds}: {counts}.")
        if wrong := [role for role, graphs in by_role.items() if not graphs]:
            raise InputError(f"{path}: too few graphs for {self.data.folds} folds: none for {', '.join(wrong)}.")
        found = {
            role: Dataset(self._store(graphs, role, cache), [(each.text, each.label) for each in graphs])
            for role, graphs in by_role.items()
        }
        self.tell_of_rare(Counter(each.label for each in by_role["train"]), path, tell)
        file = {"file": self.data.file, "sha256": [fingerprint(path)]}
        provenance: dict[str, Any] = {role: [file] for role in found}
        corpora = [(found.pop("train").store, 1.0)]
        return TaskData(corpora, found.pop("validation", None), found, provenance)

    def _labelled(self, path: Path) -> dict[str, list[LabelledGraph]]:
        """The graphs that have labels, by what they are for."""
        data, graphs = self.data, [each for each in read_graphs(path) if each.label]
        folds = folds_of([each.label for each in graphs], data.folds, data.fold_seed)
        roles = ("train", *(("validation",) if data.validation_fold != "none" else ()), "test")
        found: dict[str, list[LabelledGraph]] = {role: [] for role in roles}
        for graph, fold in zip(graphs, folds.tolist(), strict=True):
            found[data.role(fold)].append(graph)
        return found

    def _store(self, graphs: list[LabelledGraph], role: str, cache: Path) -> Store:
        keys = ("folds", "fold", "fold_seed", "validation_fold")
        settings = {"role": role, **{key: getattr(self.data, key) for key in keys}}
        files, rows = self.training_files(self.data), [(each.line, each.text, each.label) for each in graphs]
        return open_examples(files, lambda: iter(rows), self.columns, NO_LIMITS, cache, settings)


def _described(path: Path, graphs: list[LabelledGraph]) -> tuple[int, int]:
    """How many tags the nodes of all graphs have, and else how many numbers describe each."""
    tags = width = 0
    for each in graphs:
        nodes = json.loads(each.text)["nodes"]
        if not isinstance(nodes, list) or not nodes:
            raise InputError(f"{path}, line {each.line}: expected nodes; got {each.text[:60]}")
        if all(type(node) is int and node >= 0 for node in nodes):
            tags = max(tags, max(nodes) + 1)
            if tags > MOST_FEATURES:
                raise InputError(
                    f"{path}, line {each.line}: expected tags from 0 to {MOST_FEATURES - 1:,}, as each is a feature; "
                    f"got {tags - 1}."
                )
        elif all(isinstance(node, list) for node in nodes):
            width = max(width, *map(len, nodes))
        else:
            raise InputError(
                f"{path}, line {each.line}: expected a tag for each node, or a list of numbers; got {each.text[:60]}"
            )
    if tags and width:
        raise InputError(f"{path}: expected tags in all graphs, or lists of numbers in all; got both.")
    return tags, width
