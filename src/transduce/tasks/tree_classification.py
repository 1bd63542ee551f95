"""A tree over a text in, a label for each of its nodes out."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator
from torch import nn

from transduce.core.config import Config
from transduce.core.errors import InputError, every
from transduce.data.columns import Columns
from transduce.data.columns.node_labels import NodeLabels
from transduce.data.columns.tree_nodes import TreeNodes, as_token
from transduce.data.corpus import provenance
from transduce.data.encoding import open_examples
from transduce.data.filters import NO_LIMITS, Dropped, FilterConfig
from transduce.data.input_file import InputFile
from transduce.data.remote import located
from transduce.data.store import Store
from transduce.data.structures.labelled_trees import EXAMPLE, LabelledTree, read_labelled_trees
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.tree_labels import TreeLabelPredictor, too_wide
from transduce.models.protocols import Classifies, LimitsParts
from transduce.objectives.node_label import NodeCrossEntropy
from transduce.objectives.text import LossConfig
from transduce.tasks.base import AnsweredFile, LabelTask, check_model, named_files
from transduce.tasks.protocols import Dataset, TaskData, Tell

if TYPE_CHECKING:
    from transduce.metrics.confusion import Confusion
    from transduce.metrics.score import References
    from transduce.metrics.tally import Tally

NODE_METRICS = ("node_accuracy",)  # of whole trees; all others are of the roots' labels


class LabelledTreeFile(AnsweredFile):
    """Trees in brackets with a label at each node, one a line: (3 (2 The) (4 best))."""

    file: str
    """The file, compressed or not."""
    weight: float = Field(default=1.0, gt=0)
    """How often an epoch shows each tree."""


class TreeClassificationConfig(Config):
    """What a classifier of trees is judged by."""

    kind: Literal["tree_classification"] = "tree_classification"
    metrics: tuple[str, ...] = ("accuracy", "macro_f1", "node_accuracy")
    """What validation, the final tests and `evaluate` report: accuracy and macro_f1 of the labels at the roots,
    node_accuracy of all nodes that have a label."""
    language: str = ""
    """Language code of the texts, such as en."""


class TreeClassificationData(Config):
    """The files of trees; paths are relative to `root`, `root` to the working directory."""

    root: str = "."
    """Where the files lie."""
    train: tuple[LabelledTreeFile, ...]
    """One file or several, each with its weight."""
    validation: LabelledTreeFile | None = None
    """Picks the best weights."""
    test: dict[str, LabelledTreeFile] = Field(default_factory=dict)
    """By name; scored once, at the end."""
    labels: dict[str, str] | None = None
    """What the files' labels are called: { 0 = "negative", 1 = "negative" }. A node with any other has none. A tree
    without a label at its root is not tested on, and one without any is not trained on."""
    filters: FilterConfig = FilterConfig()
    """Which training trees are dropped; each node is a token."""

    @field_validator("labels")
    @classmethod
    def _labels_fit_into_brackets(cls, labels: dict[str, str] | None) -> dict[str, str] | None:
        if wrong := [name for name in (labels or {}).values() if not name or set(name) & set(" \t\r\n()")]:
            raise ValueError(f'a label in a tree has no spaces and no brackets, and is not empty; got "{wrong[0]}"')
        return labels

    @model_validator(mode="after")
    def _has_training_text(self) -> Self:
        if not self.train:
            raise ValueError('name at least one file of trees: [[data.train]] file = "train.trees.txt"')
        return self


class TreeClassification(LabelTask):
    """A tree -> a label for each of its nodes, by a model that `Classifies` nodes."""

    Config = TreeClassificationConfig
    Data = TreeClassificationData
    kinds: ClassVar[dict[str, str]] = {"source": "tree_nodes", "target": "node_labels"}
    default_model = "tree_lstm"
    fingerprints = staticmethod(named_files)
    never_split = True
    drawing = "labelled_tree_drawing"
    any_output = "(label word)"

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: TreeClassificationData) -> Columns:
        """A tokenizer of the words, and the labels of the training trees' nodes, in the order of their names.

        Raises:
            InputError: the tokenizer cuts words, or what `read` refuses.
        """
        if config.file is None and config.kind != "whitespace":
            raise InputError(
                f'[tokenizer] kind = "{config.kind}": a node of a tree is a whole word; expected "whitespace".'
            )
        root = Path(data.root)
        trees = [tree for file in data.train for _, tree in read(file, root, data.labels)]
        words = (" ".join(as_token(word) for word in tree.words if word is not None) for tree in trees)
        names = {name for tree in trees for name in tree.labels if name is not None}
        return {
            "source": TreeNodes.of(train_tokenizer(config, words, root)),
            "target": NodeLabels(tuple(sorted(names))),
        }

    @property
    def predictor(self) -> TreeLabelPredictor:
        """The likeliest label of each node."""
        return TreeLabelPredictor(self.columns)

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> NodeCrossEntropy:
        """Cross-entropy of all nodes that have a label.

        Raises:
            InputError: the model gives no labels; R-Drop or sampled words.
        """
        wanted = 'classify; expected one that does, such as "tree_lstm"'
        check_model(model, isinstance(model, Classifies), wanted, config)
        return NodeCrossEntropy(config.label_smoothing if config else 0.0)

    @property
    def context(self) -> str:
        """The whole tree."""
        return "the tree"

    def read_inputs(self, path: Path) -> InputFile | None:
        """The trees of a file in which each has a label at its root; None where they have none, one a line."""
        file = LabelledTreeFile(file=path.name)
        trees = [tree for _, tree in read_labelled_trees(file.paths(path.parent)[0])]
        if any(tree.label is None for tree in trees):
            return None
        kept = [tree for _, tree in read(file, path.parent, self.data.labels) if tree.label is not None]
        return InputFile([], [str(tree.without_labels()) for tree in kept], [[str(tree)] for tree in kept])

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files, or find them in the cache; dropped trees and labels are told."""
        data = self.data
        corpora = [(self._store(file, data.filters, cache, held_out=False), file.weight) for file in data.train]
        for file, (store, _) in zip(data.train, corpora, strict=True):
            told = Dropped.from_dict(store.metadata["dropped"]).report("trees")
            tell(f"{located(self.root, file.file)}: {told} Nodes: {self._shares(store)}.")
        held_out = every(lambda file: self._held_out(file, cache), self.held_out.values())
        found = dict(zip(self.held_out, held_out, strict=True))
        made_from = provenance(data.train, self.held_out, self.root)
        return TaskData(corpora, found.pop("validation", None), found, made_from)

    def check_examples(self, model: nn.Module, data: TaskData) -> None:
        """Raises InputError for phrases of more parts than the model reads."""
        if not isinstance(model, LimitsParts) or model.max_parts is None:
            return
        most, words = model.max_parts, self.columns["source"].spec.size
        opened = {**({"validation": data.validation} if data.validation else {}), **data.tests}
        stores = [store for store, _ in data.corpora] + [opened[name].store for name in self.held_out]
        problems = []
        for file, store in zip((*self.data.train, *self.held_out.values()), stores, strict=True):
            rows = store.read("source", np.arange(len(store)))
            if any(int(row.max(initial=0)) >= words + most for row in rows):
                [path] = file.paths(self.root)
                wide = ((number, max(tree.parts)) for number, tree in read_labelled_trees(path))
                number, parts = next(each for each in wide if each[1] > most)
                problems.append(f"{path}, line {number}: {too_wide(most, parts)}")
        if problems:
            raise InputError(problems)

    def tallies(
        self,
        hypotheses: Sequence[str],
        references: "References",
        names: Sequence[str] | None = None,
        language: str | None = None,
    ) -> "dict[str, Tally]":
        """What the metrics count."""
        wanted = self.config.metrics if names is None else names
        never_split = [name for name in wanted if name in NODE_METRICS]
        of_roots = [name for name in wanted if name not in NODE_METRICS]
        found = super().tallies(hypotheses, references, never_split) if never_split else {}
        if of_roots:
            found |= super().tallies(*_roots(hypotheses, references), of_roots)
        return {name: found[name] for name in wanted}

    def confusion(self, hypotheses: Sequence[str], references: "References") -> "Confusion | None":
        """Of the labels at the roots; all labels that the model knows, in their order."""
        return super().confusion(*_roots(hypotheses, references))

    def _shares(self, store: Store) -> str:
        """How many nodes have each label."""
        names = [*self.label_names, "no label"]
        counts = np.bincount(np.concatenate(store.read("target", np.arange(len(store)))), minlength=len(names))
        return ", ".join(f"{name} {count:,}" for name, count in zip(names, counts.tolist(), strict=True) if count)

    def _store(self, file: LabelledTreeFile, filters: FilterConfig, cache: Path, held_out: bool) -> Store:
        examples = partial(self._examples, file, held_out)
        settings = {"labels": self.data.labels, "held_out": held_out}
        return open_examples(file.paths(self.root), examples, self.columns, filters, cache, settings)

    def _examples(self, file: LabelledTreeFile, held_out: bool) -> Iterator[tuple[int, str, str]]:
        """(line number, tree, tree with labels) of those whose root has a label, or in training any node."""
        for number, tree in read(file, self.root, self.data.labels):
            if tree.label is not None or not held_out:
                yield number, str(tree.without_labels()), str(tree)

    def _held_out(self, file: LabelledTreeFile, cache: Path) -> Dataset:
        texts = [(tree, labelled) for _, tree, labelled in self._examples(file, held_out=True)]
        return Dataset(self._store(file, NO_LIMITS, cache, held_out=True), texts)


def read(
    file: LabelledTreeFile, root: Path, labels: dict[str, str] | None = None
) -> Iterator[tuple[int, LabelledTree]]:
    """(line number from 1, tree) of each tree that has a label.

    Args:
        labels: what the file's labels are called; a node with any other has none.

    Raises:
        InputError: a missing file, text that is not UTF-8; what is no tree, or has no label at its root.
    """
    [path] = file.paths(root)
    for number, tree in read_labelled_trees(path):
        if tree.label is None:
            raise InputError(
                f"{path}, line {number}: expected a label at the root, as in {EXAMPLE}; got {str(tree)[:60]}"
            )
        known = tree if labels is None else tree.renamed(labels.get)
        if any(each is not None for each in known.labels):
            yield number, known


def _roots(hypotheses: Sequence[str], references: "References") -> tuple[list[str], list[list[str]]]:
    """The labels at the roots."""
    from transduce.metrics.score import checked_references
    from transduce.metrics.tree_labels import root_label

    listed = checked_references(hypotheses, references)
    return [root_label(each) for each in hypotheses], [[root_label(each) for each in several] for several in listed]
