"""Text in, one of C labels out."""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import nn

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.columns import Columns
from transduce.data.columns.label import Label
from transduce.data.columns.tokens import Tokens
from transduce.data.corpus import tsv_options
from transduce.data.encoding import open_examples
from transduce.data.files import fingerprint, read_lines
from transduce.data.filters import Dropped, FilterConfig
from transduce.data.store import Store
from transduce.data.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.inputs import check_batch_size
from transduce.inference.prediction import Prediction
from transduce.inference.protocols import Advance
from transduce.models.protocols import Classifies
from transduce.objectives.label import LabelCrossEntropy
from transduce.objectives.text import LossConfig
from transduce.search.settings import Search
from transduce.tasks.base import BaseTask
from transduce.tasks.protocols import Dataset, TaskData, Tell

if TYPE_CHECKING:
    from transduce.metrics.score import References
    from transduce.metrics.tally import Tally

NO_LIMITS = FilterConfig(max_tokens=1_000_000, max_ratio=1_000_000)
NODE = re.compile(r"\(([^\s()]+)|([^\s()]+)|\)")  # of a bracketed tree: (LABEL, a word, )
NAMED, LISTED = 5, 10  # lines of a message; labels beside the likeliest
Example = tuple[int, str, str]  # line number from 1, text, label


class LabelledFile(Config):
    """Texts with their labels, one of a line: tab-separated, .csv, .jsonl, or bracketed trees."""

    file: str
    """.csv has a header, .jsonl an object a line; anything else is tab-separated. Compressed or not."""
    text: int | str = 0
    """Column of the text: its number from 0, or its name in .csv and .jsonl."""
    label: int | str = 1
    """Column of the label."""
    trees: bool = False
    """Each line is a tree, (3 (2 The) (4 best)): its words are the text, the number at its root is the label."""
    phrases: bool = False
    """With trees: each different phrase is an example as well, labelled by its own node."""
    weight: float = Field(default=1.0, gt=0)
    """How often an epoch shows each example."""

    @model_validator(mode="after")
    def _phrases_are_of_trees(self) -> Self:
        if self.phrases and not self.trees:
            raise ValueError("phrases = true needs trees = true")
        return self

    def paths(self, root: Path) -> list[Path]:
        """The file itself, relative ones from `root`."""
        return [root / self.file]

    def evaluate_options(self, root: Path) -> list[str]:
        """The file as options of `transduce evaluate`, which reads columns by number alone."""
        if self.trees or isinstance(self.text, str) or isinstance(self.label, str):
            return []
        return tsv_options(str(root / self.file), self.text, self.label)


class ClassificationConfig(Config):
    """What a classifier is judged by."""

    kind: Literal["classification"] = "classification"
    metrics: tuple[str, ...] = ("accuracy", "macro_f1")
    """What validation, the final tests and `evaluate` report: accuracy, macro_f1."""
    language: str = ""
    """Language code of the texts, such as en."""


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
    labels: dict[str, str] | None = None
    """What the files' labels are called: { 0 = "negative", 1 = "negative" }; examples of any other are left out."""
    filters: FilterConfig = FilterConfig(max_ratio=1_000_000)
    """Which training examples are dropped."""

    @model_validator(mode="after")
    def _has_training_text(self) -> Self:
        if not self.train:
            raise ValueError('name at least one training file: [[data.train]] file = "train.tsv"')
        return self


class Classification(BaseTask):
    """A text -> a label, by a model that `Classifies`."""

    Config = ClassificationConfig
    Data = ClassificationData
    kinds: ClassVar[dict[str, str]] = {"source": "tokens", "target": "label"}
    drawing = "word_shading"

    def __init__(self, config: ClassificationConfig, data: ClassificationData, columns: Columns) -> None:
        super().__init__(config, data, columns)
        self.reads, self.labels = columns["source"], columns["target"]

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: ClassificationData) -> Columns:
        """A tokenizer and the labels of the training examples, in the order of their names."""
        root = Path(data.root)
        texts = (text for file in data.train for _, text, _ in read_labelled(file, data))
        tokens = Tokens(train_tokenizer(config, texts, root), ends=True)
        labels = {label for file in data.train for _, _, label in read_labelled(file, data)}
        return {"source": tokens, "target": Label(tuple(sorted(labels)))}

    @staticmethod
    def training_files(data: ClassificationData) -> list[Path]:
        """What the columns are learnt from."""
        return [path for file in data.train for path in file.paths(Path(data.root))]

    @property
    def predictor(self) -> "LabelPredictor":
        """The likeliest label."""
        return LabelPredictor(self.columns)

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> LabelCrossEntropy:
        """Cross-entropy.

        Raises:
            InputError: the model gives no labels; R-Drop or sampled words.
        """
        problems = []
        if not isinstance(model, Classifies):
            name = type(model).__name__
            problems.append(
                f'[model] kind: {name} does not classify; expected a model that does, such as "classifier".'
            )
        if config and (config.r_drop or config.sampled_words is not None):
            problems.append("training: r_drop and sampled_words are for models that write text. Leave them out.")
        if problems:
            raise InputError(problems)
        return LabelCrossEntropy(config.label_smoothing if config else 0.0)

    @property
    def readable(self) -> int:
        """The longest text that the filters let through."""
        return self.data.filters.max_tokens

    @property
    def context(self) -> str:
        """The whole text."""
        return "the text"

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files, or find them in the cache; dropped examples and labels are told."""
        data = self.data
        corpora = [(self._store(file, data.filters, cache), file.weight) for file in data.train]
        for file, (store, _) in zip(data.train, corpora, strict=True):
            counts = np.bincount(np.concatenate(store.read("target", np.arange(len(store)))))
            shares = ", ".join(f"{label} {count:,}" for label, count in zip(self._names(), counts, strict=False))
            tell(f"{self.root / file.file}: {Dropped.from_dict(store.metadata['dropped']).report()} {shares}.")
        held_out = {name: file for name, file in {"validation": data.validation, **data.test}.items() if file}
        found = {name: self._held_out(file, cache) for name, file in held_out.items()}
        provenance = {
            "train": [_named(file, self.root) for file in data.train],
            **{name: _named(file, self.root) for name, file in held_out.items()},
        }
        return TaskData(corpora, found.pop("validation", None), found, provenance)

    def tallies(
        self,
        hypotheses: Sequence[str],
        references: "References",
        names: Sequence[str] | None = None,
        language: str | None = None,
    ) -> "dict[str, Tally]":
        """What the metrics count."""
        from transduce.metrics.evaluate import tallies  # late: predicting needs no metrics

        wanted = self.config.metrics if names is None else names
        return dict(zip(wanted, tallies(wanted, hypotheses, references), strict=True))

    def _names(self) -> list[str]:
        return self.labels.tokens(range(self.labels.spec.size))

    def _store(self, file: LabelledFile, filters: FilterConfig, cache: Path) -> Store:
        settings = {"labels": self.data.labels, **file.model_dump(exclude={"file", "weight"})}
        read = partial(read_labelled, file, self.data)
        return open_examples(file.paths(self.root), read, self.columns, filters, cache, settings)

    def _held_out(self, file: LabelledFile, cache: Path) -> Dataset:
        texts = [(text, label) for _, text, label in read_labelled(file, self.data)]
        return Dataset(self._store(file, NO_LIMITS, cache), texts)


@dataclass(frozen=True, repr=False)
class LabelPrediction(Prediction):
    """The likeliest label of a text; `text` is the label.

    probabilities: of every label, the likeliest first.
    """

    probabilities: dict[str, float] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The likeliest."""
        return self.text

    def __repr__(self) -> str:
        return f"LabelPrediction({self.label!r}, probability={self.probabilities[self.label]:.4g})"

    def details(self) -> dict[str, Any]:
        """The probability of each label."""
        return {"probabilities": self.probabilities}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"source": self.source, "label": self.label, **self.details()}


@dataclass(frozen=True)
class LabelPredictor:
    """Each text its likeliest label; see `transduce.inference.protocols.Predictor`."""

    columns: Columns

    @torch.inference_mode()
    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[LabelPrediction]:
        """One a text, in their order; there is nothing to search, so `settings` mean nothing."""
        check_batch_size(batch_size)
        reads, labels = self.columns["source"], self.columns["target"]
        names, device = labels.tokens(range(labels.spec.size)), next(model.parameters()).device
        encoded = [np.asarray(ids, np.int32) for ids in reads.encode(texts)]
        order = sorted(range(len(texts)), key=lambda place: len(encoded[place]))
        found: dict[int, LabelPrediction] = {}
        for first in range(0, len(order), batch_size):
            places = order[first : first + batch_size]
            batch = reads.collate_texts([encoded[place] for place in places]).to(device)
            normed_BC = model.eval().classify(batch).double().log_softmax(-1)
            for place, row in zip(places, normed_BC.tolist(), strict=True):
                found[place] = _prediction(texts[place], names, row)
            if advance:
                advance(len(places))
        return [found[place] for place in range(len(texts))]


def _prediction(text: str, names: Sequence[str], log_probabilities: Sequence[float]) -> LabelPrediction:
    likeliest = sorted(range(len(names)), key=lambda each: -log_probabilities[each])
    probabilities = {names[each]: float(np.exp(log_probabilities[each])) for each in likeliest}

    def one(label: str, score: float) -> LabelPrediction:
        return LabelPrediction(text, label, score, score, (label,), (score,), probabilities=probabilities)

    listed = tuple(one(names[each], log_probabilities[each]) for each in likeliest[:LISTED])
    return replace(listed[0], alternatives=listed)


# ---- reading -------------------------------------------------------------------------------------------------


def read_labelled(file: LabelledFile, data: ClassificationData) -> Iterator[Example]:
    """(line number from 1, text, label) of each example that `data.labels` keeps.

    Raises:
        InputError: a missing file, text that is not UTF-8; lines without the columns, or that are no trees.
    """
    path = Path(data.root) / file.file
    read = _trees if file.trees else _reader(path)
    for line, text, label in read(path, file):
        name = label if data.labels is None else data.labels.get(label)
        if name is not None:
            yield line, text, name


def _reader(path: Path) -> Callable[[Path, LabelledFile], Iterable[Example]]:
    kinds = [suffix for suffix in path.suffixes if suffix not in (".gz", ".xz", ".zst")]
    return {".csv": _csv, ".jsonl": _jsonl}.get(kinds[-1] if kinds else "", _tsv)


def _tsv(path: Path, file: LabelledFile) -> Iterator[Example]:
    rows = ((number, line.split("\t")) for number, line in enumerate(read_lines(path), 1))
    return _picked(path, file, rows)


def _csv(path: Path, file: LabelledFile) -> Iterator[Example]:
    read = csv.reader(line + "\n" for line in read_lines(path))
    header = next(read, [])
    places = {name: place for place, name in enumerate(header)}
    columns = {
        key: places.get(value, value) if isinstance(value, str) else value for key, value in _asked(file).items()
    }
    if wrong := [value for value in columns.values() if isinstance(value, str)]:
        raise InputError(
            f"{path}: expected columns {', '.join(wrong)}; its header has {', '.join(header) or 'nothing'}."
        )
    return _picked(path, file.model_copy(update=columns), ((read.line_num, row) for row in read))


def _jsonl(path: Path, file: LabelledFile) -> Iterator[Example]:
    keys = {name: value if isinstance(value, str) else name for name, value in _asked(file).items()}
    for number, line in enumerate(read_lines(path), 1):
        try:
            row = json.loads(line)
            yield number, str(row[keys["text"]]), str(row[keys["label"]])
        except (ValueError, KeyError, TypeError):
            wanted = f'{{"{keys["text"]}": .., "{keys["label"]}": ..}}'
            raise InputError(f"{path}, line {number}: expected an object {wanted}; got {line[:60]}") from None


def _asked(file: LabelledFile) -> dict[str, int | str]:
    return {"text": file.text, "label": file.label}


def _picked(path: Path, file: LabelledFile, rows: Iterable[tuple[int, list[str]]]) -> Iterator[Example]:
    if wrong := [each for each in (file.text, file.label) if isinstance(each, str)]:
        raise InputError(f"{path}: columns have names in .csv and .jsonl alone; expected numbers, got {wrong}.")
    short: list[int] = []
    for number, row in rows:
        if len(row) <= max(int(file.text), int(file.label)):
            short.append(number)
        elif not short:
            yield number, row[int(file.text)], row[int(file.label)].strip()
    if short:
        named = ", ".join(map(str, short[:NAMED])) + (", …" if len(short) > NAMED else "")
        wanted = max(int(file.text), int(file.label)) + 1
        raise InputError(f"{path}: expected {wanted} columns in every line; {len(short):,} have fewer (line {named}).")


def _trees(path: Path, file: LabelledFile) -> Iterator[Example]:
    """The whole tree of each line first, then with `phrases` each phrase that no line before had."""
    seen: set[tuple[str, str]] = set()
    for number, line in enumerate(read_lines(path), 1):
        nodes = _nodes(line)
        if not nodes:
            raise InputError(f"{path}, line {number}: expected a tree such as (3 (2 The) (4 best)); got {line[:60]}")
        yield number, *nodes[-1]
        for node in nodes[:-1] if file.phrases else ():
            if node not in seen:
                seen.add(node)
                yield number, *node


def _nodes(line: str) -> list[tuple[str, str]]:
    """(text, label) of each node, its parts first and the root last; [] of what is no tree."""
    waiting: list[tuple[str, int]] = []  # label, and how many words came before
    words: list[str] = []
    found = []
    for match in NODE.finditer(line):
        if match[1] is not None:
            waiting.append((match[1], len(words)))
        elif match[2] is not None:
            words.append(match[2].replace("\\/", "/"))
        elif not waiting:
            return []
        else:
            label, first = waiting.pop()
            found.append((" ".join(words[first:]), label))
    return [] if waiting or not found else found


def _named(file: LabelledFile, root: Path) -> dict[str, Any]:
    return {**file.model_dump(exclude_none=True), "sha256": [fingerprint(path) for path in file.paths(root)]}
