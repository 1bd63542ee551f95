"""A text, or a pair of texts, in; one of C labels out."""

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import Tensor, nn

from transduce.core.config import Config
from transduce.core.errors import every
from transduce.core.registry import suggest
from transduce.data.columns import Columns
from transduce.data.columns.label import Label
from transduce.data.columns.text_pair import TextPair
from transduce.data.columns.tokens import Tokens
from transduce.data.corpus import provenance
from transduce.data.encoding import open_examples
from transduce.data.filters import NO_LIMITS, Dropped, FilterConfig
from transduce.data.formats import format_name, format_of, is_table
from transduce.data.hold_out import HELD_OUT, TRAIN, HoldOut, check_drawn_once, digest, part_of
from transduce.data.input_file import InputFile
from transduce.data.labelled import (
    SEPARATOR,
    Example,
    LabelledFile,
    LabelledFiles,
    check_pairs,
    has_labels,
    read_labelled,
)
from transduce.data.labelled_hold_out import ExampleSplit, split_labelled
from transduce.data.pairs.pair_groups import Parts
from transduce.data.remote import located
from transduce.data.store import Store
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.models.protocols import Classifies
from transduce.objectives.label import LabelCrossEntropy
from transduce.objectives.text import LossConfig
from transduce.tasks.base import LabelTask, check_model, named_files
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell

Corpus = tuple[LabelledFile, Parts | None]  # and where its examples belong


class ClassificationConfig(Config):
    """What a classifier is judged by."""

    kind: Literal["classification"] = "classification"
    metrics: tuple[str, ...] = ("accuracy", "macro_f1")
    """What validation, the final tests and `evaluate` report: accuracy, macro_f1."""
    language: str = ""
    """Language code of the texts, such as en."""
    class_weights: Literal["balanced"] | dict[str, Annotated[float, Field(gt=0)]] | None = None
    """How much each label counts in the training loss: a table by label, 1 for those it leaves out. balanced: inversely
    to how often training examples have it. Unset: each example counts the same. Validation and tests are unweighted."""
    baseline: bool = True
    """At the end of training, also train a linear model of 1-grams and 2-grams, and show its test scores beside."""


class ClassificationData(Config):
    """The files of a classifier; paths are relative to `root`, `root` to the working directory."""

    root: str = "."
    """Where the files lie."""
    train: tuple[LabelledFile, ...]
    """One file or several, each with its weight."""
    validation: LabelledFile | None = None
    """Picks the best weights."""
    test: dict[str, LabelledFile] = Field(default_factory=dict)
    """By name; scored once, at the end."""
    hold_out: HoldOut | None = None
    """Instead of files for validation and test: how many training examples to draw for them, of each label in
    proportion; equal texts stay on one side. A number alone is for validation."""
    labels: dict[str, str] | None = None
    """What the files' labels are called: { 0 = "negative", 1 = "negative" }; examples of any other are left out."""
    filters: FilterConfig = FilterConfig(max_ratio=1_000_000)
    """Which training examples are dropped."""

    @model_validator(mode="after")
    def _has_training_text(self) -> Self:
        if not self.train:
            raise ValueError('name at least one training file: [[data.train]] file = "train.tsv"')
        return self

    @model_validator(mode="after")
    def _texts_or_pairs(self) -> Self:
        files = self.held_out
        if wrong := [each.name for each in files.values() if each.pair != self.pair] or [
            each.name for each in self.train if each.pair != self.pair
        ]:
            here, there = ("a pair", "one text") if self.pair else ("one text", "a pair")
            raise ValueError(f"{self.train[0].name} has {here} in every line, and {', '.join(wrong)} {there}")
        return self

    @model_validator(mode="after")
    def _generated_apart(self) -> Self:
        """No example of training is a test."""
        seen = {(each.generated, each.seed) for each in self.train if each.generated}
        for name, each in self.held_out.items():
            if each.generated and (each.generated, each.seed) in seen:
                raise ValueError(f"{name}: seed = {each.seed} generates examples of training. Give it another one")
        return self

    @model_validator(mode="after")
    def _held_out_once(self) -> Self:
        check_drawn_once(self.hold_out, self.validation, self.test)
        if self.hold_out and any(each.phrases for each in self.train):
            raise ValueError("hold_out: phrases = true would train on parts of held-out trees. Name files instead")
        return self

    @property
    def pair(self) -> bool:
        """Whether each example is a pair of texts."""
        return self.train[0].pair

    def split(self) -> ExampleSplit | None:
        """Where each training example belongs; None where none is held out. Raises InputError as `split_labelled`."""
        if self.hold_out is None or not self.hold_out.draws:
            return None
        return split_labelled(self.train, Path(self.root), self.hold_out, self.labels)

    def drawn_tests(self) -> dict[str | None, str]:
        """What the test set of drawn examples is called: it has no language."""
        return {None: HELD_OUT}

    def corpora(self) -> list[Corpus]:
        """Each training file with the part of each of its examples; None where none is held out."""
        split = self.split()
        parts = split.parts if split else [None] * len(self.train)
        return list(zip(self.train, parts, strict=True))

    def read(self, corpus: Corpus, part: int = TRAIN) -> Iterator[Example]:
        """The examples of a file that belong to a part. Raises InputError as `read_labelled`."""
        file, parts = corpus
        examples = read_labelled(file, Path(self.root), self.labels)
        return examples if parts is None else part_of(examples, parts, part)

    def read_training(self) -> Iterator[Example]:
        """The examples of all files that are trained on. Raises InputError as `read_labelled`."""
        return chain.from_iterable(self.read(each) for each in self.corpora())

    @property
    def held_out(self) -> dict[str, LabelledFile]:
        """By name, validation among them."""
        return {**({"validation": self.validation} if self.validation else {}), **self.test}


class Classification(LabelTask):
    """A text, or a pair of texts, -> a label, by a model that `Classifies`."""

    Config = ClassificationConfig
    Data = ClassificationData
    kinds: ClassVar[dict[str, str]] = {"source": "tokens", "target": "label"}
    default_model = "classifier"
    fingerprints = staticmethod(named_files)
    drawing = "word_shading"

    def __init__(self, config: ClassificationConfig, data: ClassificationData, columns: Columns) -> None:
        super().__init__(config, data, columns)
        self.reads = columns["source"]

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: ClassificationData) -> Columns:
        """A tokenizer and the labels of the training examples, in the order of their names."""
        read = (text for _, text, _ in data.read_training())
        texts = (each for text in read for each in text.split(SEPARATOR)) if data.pair else read
        tokenizer = train_tokenizer(config, texts, Path(data.root))
        names = {label for _, _, label in data.read_training()}
        source = TextPair.of(tokenizer) if data.pair else Tokens(tokenizer, ends=True)
        return {"source": source, "target": Label(tuple(sorted(names)))}

    @staticmethod
    def labelled(data: ClassificationData) -> LabelledFiles:
        """Of all files."""
        files = {"train" if n == 1 else f"train {n}": file for n, file in enumerate(data.train, 1)}
        files |= {"validation": data.validation} if data.validation else {}
        return LabelledFiles(
            {**files, **{f"test {name}": file for name, file in data.test.items()}}, Path(data.root), data.labels
        )

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> LabelCrossEntropy:
        """Cross-entropy; in training with the weights of the labels.

        Raises:
            InputError: the model gives no labels; R-Drop or sampled words; weights of unknown labels.
        """
        weights = self.config.class_weights
        unknown = [
            f'task.class_weights: there is no label "{each}".{suggest(each, self.label_names)}'
            for each in (weights if isinstance(weights, dict) else {})
            if each not in self.label_names
        ]
        wanted = 'classify; expected a model that does, such as "classifier"'
        check_model(model, isinstance(model, Classifies), wanted, config, unknown)
        return LabelCrossEntropy(config.label_smoothing, self._class_weights()) if config else LabelCrossEntropy()

    def _class_weights(self) -> tuple[float, ...]:
        """One a label; none where each counts the same."""
        given, names = self.config.class_weights, self.label_names
        if given is None:
            return ()
        if given != "balanced":
            return tuple(given.get(name, 1.0) for name in names)
        counts = dict.fromkeys(names, 0.0)
        for corpus in self.data.corpora():
            for _, _, label in self.data.read(corpus):
                counts[label] = counts.get(label, 0.0) + corpus[0].weight
        mean = sum(counts.values()) / len(names)
        return tuple(mean / counts[name] if counts[name] else 1.0 for name in names)

    @property
    def context(self) -> str:
        """The whole text."""
        return "the pair of texts" if isinstance(self.reads, TextPair) else "the text"

    def read_inputs(self, path: Path) -> InputFile | None:
        """The texts of a table with names, or of trees, in the columns that the recipe has for such a file."""
        file = self._columns_of(path)
        if file is None:
            return None
        labelled = file.trees or has_labels(file, path.parent)
        read = file if labelled else file.model_copy(update={"label": file.texts[0]})
        texts, labels = [], []
        rows = list(read_labelled(read, path.parent))
        if self.data.pair:
            check_pairs(path, rows)
        for _, text, label in rows:
            name = label if self.data.labels is None else self.data.labels.get(label)
            texts.append(text)
            labels.append([name] if labelled and name is not None else [])
        return InputFile([], texts, labels)

    def _columns_of(self, path: Path) -> LabelledFile | None:
        """As the recipe has them: for a file of this name, or else the first one of the same format."""
        known = [*self.data.held_out.values(), *self.data.train]
        named = [each for each in known if Path(each.file).name == path.name]
        form = _named_format(path)
        alike = [each for each in known if form and not each.trees and each.format_name == form]
        chosen = [each for each in named if each.trees or form] + alike
        if not chosen:
            return LabelledFile(file=path.name, label="label") if form and not self.data.pair else None
        return chosen[0].model_copy(update={"file": path.name, "phrases": False})

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files, or find them in the cache; dropped examples and labels are told."""
        data = self.data
        if (split := data.split()) is not None:
            tell(split.report())
        corpora = [(self._store([each], data.filters, cache), each[0].weight) for each in data.corpora()]
        totals = Counter[str]()
        for file, (store, _) in zip(data.train, corpora, strict=True):
            counts = np.bincount(np.concatenate(store.read("target", np.arange(len(store))))).tolist()
            totals.update(dict(zip(self.label_names, counts, strict=False)))
            shares = ", ".join(f"{label} {count:,}" for label, count in zip(self.label_names, counts, strict=False))
            kept = Dropped.from_dict(store.metadata["dropped"]).report("examples")
            tell(f"{located(self.root, file.name)}: {kept} {shares}.")
        self.tell_of_rare(totals, located(self.root, data.train[0].name), tell)
        held_out = every(lambda file: self._held_out([(file, None)], cache), self.held_out.values())
        found = {**dict(zip(self.held_out, held_out, strict=True)), **self._drawn(split, cache)}
        made_from = provenance(data.train, self.held_out, self.root)
        return TaskData(corpora, found.pop("validation", None), found, made_from)

    def baseline(self, data: TaskData, tell: Tell) -> Baseline | None:
        """A linear classifier of bags of n-grams; its regularisation is chosen by the accuracy on validation data."""
        from transduce.inference.bag_of_ngrams import STRENGTHS, USUAL, fit, thinned

        if not self.config.baseline:
            return None
        rows, labels, weights = self._training_rows(data)
        taken = thinned(np.fromiter(map(len, rows), np.int64, len(rows)))
        strengths = STRENGTHS if data.validation else (USUAL,)
        tokens = self.reads.tokenizer  # type: ignore[attr-defined]
        sizes = len(self.label_names), tokens.size, tokens.end
        models = fit([rows[each] for each in taken], labels[taken], weights[taken], *sizes, strengths)
        if data.validation:
            held_out, true = self.stored_examples([data.validation.store])
            right = [int((np.array(model.predict(held_out)) == true).sum()) for model in models]
        else:
            right = [0]
        best = int(np.argmax(right))
        if self.data.pair and data.validation and (overlap := self._overlap(data, max(right))):
            return overlap
        names, model = self.label_names, models[best]
        settings = {"ngrams": [1, 2], "of": "tokens", "features": len(model.codes_F), "C": strengths[best]}
        return Baseline(
            "bag of n-grams",
            lambda texts: [names[each] for each in model.predict(self.reads.encode(texts))],
            {**settings, "examples": len(taken)},
        )

    def _overlap(self, data: TaskData, right: int) -> Baseline | None:
        """Of pairs: logistic regression on how many words both texts share, where it has more than `right` right."""
        from transduce.inference.logistic_regression import LogisticRegression
        from transduce.inference.word_overlap import word_overlap

        def examples(stores: list[Store]) -> tuple[Tensor, Tensor]:
            rows, labels = self.stored_examples(stores)
            return word_overlap(rows, separator), torch.from_numpy(labels)

        assert data.validation is not None
        separator, names = self.reads.spec.separator, self.label_names
        training, held_out = examples([store for store, _ in data.corpora]), examples([data.validation.store])
        model = LogisticRegression.chosen(training, held_out, len(names))
        if int((model.predict(held_out[0]) == held_out[1]).sum()) <= right:
            return None
        return Baseline(
            "word overlap",
            lambda texts: [
                names[each] for each in model.predict(word_overlap(self.reads.encode(texts), separator)).tolist()
            ],
            {"strength": model.strength, "examples": len(training[1])},
        )

    def _training_rows(self, data: TaskData) -> tuple[list[Any], NDArray[np.int64], NDArray[np.float64]]:
        """Every training example's ids and label, and how much it counts."""
        of_labels = np.array(self._class_weights() or [1.0] * len(self.label_names))
        rows, labels = self.stored_examples(store for store, _ in data.corpora)
        weights = np.repeat([weight for _, weight in data.corpora], [len(store) for store, _ in data.corpora])
        return rows, labels, weights * of_labels[labels]

    def _drawn(self, split: ExampleSplit | None, cache: Path) -> dict[str, Dataset]:
        """The parts that were drawn, by name."""
        wanted = split.held_out_parts if split else {}
        return {name: self._held_out(self.data.corpora(), cache, part) for name, part in wanted.items()}

    def _store(self, corpora: list[Corpus], filters: FilterConfig, cache: Path, part: int = TRAIN) -> Store:
        settings = [_settings(each, self.data.labels, part) for each in corpora]
        paths = [path for file, _ in corpora for path in file.paths(self.root)]

        def read() -> Iterator[Example]:
            return chain.from_iterable(self.data.read(each, part) for each in corpora)

        known = settings[0] if len(settings) == 1 else {"files": settings}
        return open_examples(paths, read, self.columns, filters, cache, known)

    def _held_out(self, corpora: list[Corpus], cache: Path, part: int = TRAIN) -> Dataset:
        texts = [(text, label) for each in corpora for _, text, label in self.data.read(each, part)]
        return Dataset(self._store(corpora, NO_LIMITS, cache, part), texts)


def _settings(corpus: Corpus, labels: dict[str, str] | None, part: int) -> dict[str, Any]:
    """What decides which examples of a file are read."""
    file, parts = corpus
    drawn = {} if parts is None else {"part": digest(parts, part)}
    return {"labels": labels, **file.model_dump(exclude={"file", "weight"}, exclude_none=True), **drawn}


def _named_format(path: Path) -> str:
    """The format of a table whose columns have names; "" = a text, or a pair of texts with a tab between, a line."""
    named = is_table(path) and not isinstance(format_of(path).columns(path), range)
    return format_name(path) if named else ""
