"""Whole graphs, such as molecules, each with a label; folds for cross-validation."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.columns import Columns
from transduce.data.columns.graph import Graph
from transduce.data.columns.label import Label
from transduce.data.encoding import open_examples
from transduce.data.files import fingerprint
from transduce.data.filters import NO_LIMITS
from transduce.data.hold_out import HELD_OUT, HoldOut, check_drawn_once
from transduce.data.input_file import InputFile
from transduce.data.members import (
    Entry,
    FoldFile,
    ListedMember,
    MemberList,
    check_filled,
    drawn_from,
    read_parts,
    root_of,
)
from transduce.data.remote import located
from transduce.data.store import Store
from transduce.data.structures.graphs import EdgeReading, LabelledGraph, folds_of, names_of_graphs, read_graphs
from transduce.data.structures.node_tables import MOST_FEATURES
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.inference.graph_labels import GraphLabelPredictor
from transduce.tasks.base import LabelTask
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell


class GraphClassificationConfig(Config):
    """What labels of graphs are judged by."""

    kind: Literal["graph_classification"] = "graph_classification"
    metrics: tuple[str, ...] = ("accuracy", "macro_f1")
    """What validation, the final tests and `evaluate` report: accuracy, macro_f1."""


class GraphClassificationData(Config):
    """A file of graphs, cut into folds or into lists; paths are relative to `root`, `root` to the working directory.

    Lists name graphs by the "id" that they have in a .jsonl, or by their number in the file, from 0.
    """

    root: str = "."
    """Where the file lies."""
    file: str
    """.jsonl: a graph {"nodes": [..], "edges": [[0, 1], ..], "label": ".."} a line. Anything else: the text format of
    the datasets of Xu et al. 2019. Compressed or not."""
    folds: Annotated[int, Field(ge=2)] | FoldFile = 10
    """The graphs are cut into so many parts, over which each label is spread evenly; or the file that says which graph
    is in which fold: { file = "folds.tsv" }."""
    fold: int = Field(default=0, ge=0)
    """This fold, counted from 0, is the test. Those of a file are counted in the order of their numbers or names."""
    fold_seed: int = Field(default=0, ge=0)
    """Which graph comes into which fold is drawn from this seed, whatever the training's."""
    validation_fold: int | Literal["next", "none"] = "next"
    """This fold picks the best weights; next = the one behind the test fold; none = all others are trained on, to the
    end."""
    train: MemberList | None = None
    """Instead of folds: the list of the graphs that are trained on. Unset: all that have a label and are in no other
    list."""
    validation: MemberList | None = None
    """Instead of folds: the list of those that pick the best weights."""
    test: dict[str, MemberList] = Field(default_factory=dict)
    """Instead of folds: lists of graphs by the names of their tests; scored once, at the end."""
    hold_out: HoldOut | None = None
    """Instead of folds, or of lists for validation and test: how many training graphs to draw for them, of each label
    in proportion; equal graphs stay on one side. A number alone is for validation."""
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
    def _folds_or_lists(self) -> Self:
        check_drawn_once(self.hold_out, self.validation, self.test)
        fields, keys = type(self).model_fields, ("folds", "fold", "fold_seed", "validation_fold")
        unread = [key for key in keys if getattr(self, key) != fields[key].default]
        if self.without_folds and unread:
            raise ValueError(f"{', '.join(unread)}: not read with train, validation, test or hold_out. Leave it out")
        if isinstance(self.folds, FoldFile) and self.fold_seed:
            raise ValueError("fold_seed: not read with a file of folds. Leave it out")
        return self

    @model_validator(mode="after")
    def _there_is_such_a_fold(self) -> Self:
        if isinstance(self.folds, FoldFile):
            return self
        if self.fold >= self.folds:
            raise ValueError(f"fold: expected a number from 0 to {self.folds - 1}, as folds = {self.folds}")
        held = self.validation_fold
        if isinstance(held, int) and (held == self.fold or not 0 <= held < self.folds):
            raise ValueError(f"validation_fold: expected another fold than the test's, {self.fold}, of {self.folds}")
        if self.folds == 2 and held != "none":
            raise ValueError('folds = 2 leaves nothing to train on beside validation: set validation_fold = "none"')
        return self

    def drawn_tests(self) -> dict[str | None, str]:
        """What the test set that was drawn is called: it has no language."""
        return {None: HELD_OUT}

    @property
    def lists(self) -> dict[str, MemberList]:
        """The parts that are lists, by name."""
        held = {"train": self.train, "validation": self.validation, **self.test}
        return {part: entry for part, entry in held.items() if entry}

    @property
    def without_folds(self) -> bool:
        """Whether graphs are in lists, or drawn."""
        return bool(self.lists) or bool(self.hold_out and self.hold_out.draws)

    @property
    def fold_count(self) -> int:
        """How many folds there are. Raises InputError where their file cannot be read."""
        return len(self.folds.folds(Path(self.root))) if isinstance(self.folds, FoldFile) else self.folds

    def role(self, fold: int, folds: int) -> str:
        """What the graphs of a fold, of so many, are for: train, validation or test."""
        if fold == self.fold:
            return "test"
        held = (self.fold + 1) % folds if self.validation_fold == "next" else self.validation_fold
        return "validation" if fold == held else "train"

    def parts(self, path: Path, graphs: Sequence[LabelledGraph]) -> tuple[dict[str, list[LabelledGraph]], str]:
        """The graphs with labels by what they are for; what to tell of how they were chosen.

        Args:
            path: the file of the graphs.

        Raises:
            InputError: what `FoldFile.read`, `read_parts` and `drawn_from` refuse; there is no such fold; a part is
                empty.
        """
        choose = self._listed if self.without_folds else self._folded
        parts, told = choose(path, graphs)
        check_filled(path, parts, "graph")
        return {part: [graphs[number] for number in numbers] for part, numbers in parts.items()}, told

    def _listed(self, path: Path, graphs: Sequence[LabelledGraph]) -> tuple[dict[str, list[int]], str]:
        labelled = {number: each for number, each in enumerate(graphs) if each.label}
        places = {number: ListedMember(number, f"{path}, line {each.line}") for number, each in labelled.items()}
        entries: dict[str, Entry] = {"train": self.train, **self.lists}
        found, told = read_parts(entries, places, names_of_graphs(path, graphs), Path(self.root)), ""
        if self.hold_out and self.hold_out.draws:
            texts = {number: graphs[number].text for number in found["train"]}
            labels = {number: graphs[number].label for number in found["train"]}
            drawn, told = drawn_from(found["train"], texts, labels, self.hold_out, str(path))
            found |= drawn
        return found, told

    def _folded(self, path: Path, graphs: Sequence[LabelledGraph]) -> tuple[dict[str, list[int]], str]:
        labelled = [number for number, each in enumerate(graphs) if each.label]
        if isinstance(self.folds, FoldFile):
            names, told = self._stated(self.folds, path, graphs)
            folds = {number: fold for fold, numbers in enumerate(names.values()) for number in numbers}
            count = len(names)
        else:
            count, told = self.folds, f"fold {self.fold} of {self.folds}"
            drawn = folds_of([graphs[number].label for number in labelled], count, self.fold_seed)
            folds = dict(zip(labelled, drawn.tolist(), strict=True))
        roles = ("train", *(("validation",) if self.validation_fold != "none" else ()), "test")
        found: dict[str, list[int]] = {role: [] for role in roles}
        for number in labelled:
            if number in folds:
                found[self.role(folds[number], count)].append(number)
        return found, told

    def _stated(self, file: FoldFile, path: Path, graphs: Sequence[LabelledGraph]) -> tuple[dict[str, list[int]], str]:
        """The graphs of each fold of a file, and which fold is the test in words."""
        members = file.read(Path(self.root), names_of_graphs(path, graphs))
        held = self.validation_fold if isinstance(self.validation_fold, int) else None
        for key, fold in (("fold", self.fold), ("validation_fold", held)):
            if fold is not None and not 0 <= fold < len(members):
                raise InputError(
                    f"data.{key} = {fold}: {file.path(Path(self.root))} has {len(members)} folds, counted from 0."
                )
        if held == self.fold:
            raise InputError(f"data.validation_fold = {held}: expected another fold than the test's.")
        if len(members) == 2 and self.validation_fold != "none":
            raise InputError('two folds leave nothing to train on: set data.validation_fold = "none".')
        inside = sum(map(len, members.values()))
        rest = f", {len(graphs) - inside:,} graphs in no fold" if inside < len(graphs) else ""
        told = f'fold {self.fold} ("{[*members][self.fold]}") of {len(members)}{rest}'
        return {fold: [each.number for each in numbers] for fold, numbers in members.items()}, told


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
        path = located(Path(data.root), data.file)
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
        root = Path(data.root)
        folds = [data.folds.path(root)] if isinstance(data.folds, FoldFile) else []
        return [located(root, data.file), *folds, *(each.path(root) for each in data.lists.values())]

    @property
    def predictor(self) -> GraphLabelPredictor:
        """The likeliest label."""
        return GraphLabelPredictor(self.columns)

    @property
    def context(self) -> str:
        """The graph."""
        return "the graph"

    def read_inputs(self, path: Path) -> InputFile | None:
        """The graphs of a .jsonl; of the recipe's own file, those of the tests."""
        own = path.name == Path(self.data.file).name
        if not own and ".jsonl" not in path.suffixes:
            return None
        graphs = read_graphs(path)
        if own:
            data = self.data.model_copy(update={"root": str(root_of(path, self.data.file))})
            parts, _ = data.parts(path, graphs)
            graphs = [each for part, some in parts.items() if part not in ("train", "validation") for each in some]
        return InputFile([], [each.text for each in graphs], [[each.label] if each.label else [] for each in graphs])

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """The graphs that are trained on, validated by and tested; how many each part has is told."""
        path = located(self.root, self.data.file)
        parts, told = self.data.parts(path, read_graphs(path))
        counts = ", ".join(f"{part} {len(graphs):,}" for part, graphs in parts.items())
        tell(f"{path}{f', {told}' if told and not self.data.without_folds else ''}: {counts}.")
        if told and self.data.without_folds:
            tell(told)
        found = {
            part: Dataset(self._store(graphs, part, cache), [(each.text, each.label) for each in graphs])
            for part, graphs in parts.items()
        }
        self.tell_of_rare(Counter(each.label for each in parts["train"]), path, tell)
        provenance: dict[str, Any] = {part: [self._origin(part)] for part in found}
        corpora = [(found.pop("train").store, 1.0)]
        return TaskData(corpora, found.pop("validation", None), found, provenance)

    def baseline(self, data: TaskData, tell: Tell) -> Baseline:
        """Logistic regression on counts; its regularisation is chosen by the accuracy on validation data."""
        from transduce.inference.graph_features import counts
        from transduce.inference.logistic_regression import LogisticRegression

        graph = self.columns["source"]
        assert isinstance(graph, Graph)

        def examples(store: Store) -> tuple[Tensor, Tensor]:
            rows, labels = self.stored_examples([store])
            return counts(graph.collate(rows)), torch.from_numpy(labels)

        training = examples(data.corpora[0][0])
        validation = examples(data.validation.store) if data.validation else None
        model, names = LogisticRegression.chosen(training, validation, len(self.label_names)), self.label_names
        return Baseline(
            "counts, logistic regression",
            lambda texts: [names[each] for each in model.predict(counts(graph.collate(graph.encode(texts)))).tolist()],
            {"strength": model.strength, "examples": len(training[1])},
        )

    def _origin(self, part: str) -> dict[str, Any]:
        """What a part was made from, for the model file."""
        file = {"file": self.data.file, "sha256": [fingerprint(path) for path in self.training_files(self.data)]}
        entry = self.data.lists.get(part)
        return {**file, **({"list": entry.model_dump(exclude_none=True)} if entry else {})}

    def _store(self, graphs: list[LabelledGraph], part: str, cache: Path) -> Store:
        keys = {"folds", "fold", "fold_seed", "validation_fold", "train", "validation", "test", "hold_out"}
        settings = {"role": part, **self.data.model_dump(include=keys, exclude_none=True)}
        files = self.training_files(self.data)
        rows = [(each.line, each.text, each.label) for each in graphs]
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
