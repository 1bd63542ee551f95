"""A text in, a label for each of its words out: parts of speech, names of people and places, words of Chinese text."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from torch import nn

from transduce.core.config import Config
from transduce.core.errors import every
from transduce.data.columns import Column, Columns
from transduce.data.columns.word_labels import WordLabels
from transduce.data.columns.words import Words
from transduce.data.corpus import provenance
from transduce.data.encoding import open_examples
from transduce.data.files import suffix_of
from transduce.data.filters import NO_LIMITS, Dropped, FilterConfig
from transduce.data.hold_out import HELD_OUT, TRAIN, HoldOut, check_drawn_once, digest
from transduce.data.input_file import InputFile
from transduce.data.labelled_hold_out import ExampleSplit
from transduce.data.store import Store
from transduce.data.structures.label_schemes import Scheme, labels_of, spans_of
from transduce.data.structures.word_units import Unit, units_of
from transduce.data.tagged import (
    FORMATS,
    SUFFIXES,
    Example,
    TaggedFile,
    TaggedTexts,
    check_labels,
    one_scheme,
    read_tagged,
    unseen_labels,
)
from transduce.data.tagged_hold_out import split_tagged
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.word_labels import WordLabelPredictor
from transduce.models.protocols import LabelsWords
from transduce.objectives.crf import CrfLikelihood
from transduce.objectives.node_label import WordCrossEntropy
from transduce.objectives.text import LossConfig
from transduce.tasks.base import LabelTask, check_model, named_files
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell

if TYPE_CHECKING:
    from transduce.metrics.confusion import Confusion
    from transduce.metrics.score import References
    from transduce.metrics.tally import Tally

OF_WORDS = {"accuracy": "label_accuracy", "macro_f1": "label_macro_f1"}  # what metrics of labels are for rows of them


class TaggingConfig(Config):
    """What a tagger is judged by."""

    kind: Literal["tagging"] = "tagging"
    metrics: tuple[str, ...] = ("accuracy", "entity_f1")
    """What validation, the final tests and `evaluate` report: accuracy and macro_f1 of words' labels; entity_f1,
    entity_precision, entity_recall, strict_entity_f1 of spans; word_f1 of segmented text; exact_match of whole texts.
    entity_f1 is left out where labels are of no scheme."""
    language: str = ""
    """Language code of the texts, such as en."""
    baseline: bool = True
    """At the end of training, also count the most frequent label of each word, and show its test scores beside."""


class TaggingData(Config):
    """The files of a tagger; paths are relative to `root`, `root` to the working directory."""

    root: str = "."
    """Where the files lie."""
    train: tuple[TaggedFile, ...]
    """One file or several, each with its weight."""
    validation: TaggedFile | None = None
    """Picks the best weights."""
    test: dict[str, TaggedFile] = Field(default_factory=dict)
    """By name; scored once, at the end."""
    unit: Unit = "word"
    """What has a label, and where a text is cut into these. word: what stands between spaces. character: each but
    spaces. split: words and punctuation apart, for raw text. Files with segmented = true have labels of characters."""
    scheme: Scheme | Literal["auto"] = "auto"
    """How labels say where a span begins and ends: bio, bioes, bmes; files in another scheme are rewritten. none:
    labels are of single words. auto: what the labels look like; IOB1 becomes bio, BILOU bioes."""
    hold_out: HoldOut | None = None
    """Instead of files for validation and test: how many training texts to draw for them; whole documents where the
    files mark them, as by -DOCSTART-. A number alone is for validation."""
    filters: FilterConfig = FilterConfig(max_ratio=1_000_000)
    """Which training texts are dropped. A longer text is predicted in windows of max_tokens."""

    @model_validator(mode="after")
    def _has_training_text(self) -> Self:
        if not self.train:
            raise ValueError('name at least one training file: [[data.train]] file = "train.conll"')
        return self

    @model_validator(mode="after")
    def _held_out_once(self) -> Self:
        check_drawn_once(self.hold_out, self.validation, self.test)
        return self

    @model_validator(mode="after")
    def _all_are_segmented_or_none(self) -> Self:
        files = [*self.train, *([self.validation] if self.validation else []), *self.test.values()]
        if len({each.segmented for each in files}) > 1:
            others = [each.file for each in files if each.segmented != self.train[0].segmented]
            now = str(self.train[0].segmented).lower()
            raise ValueError(f"{self.train[0].file} has segmented = {now}, and {', '.join(others)} not")
        if self.train[0].segmented and (self.unit == "split" or self.scheme not in ("auto", "bmes")):
            raise ValueError('segmented = true: characters have the labels B, M, E, S; leave out "unit" and "scheme"')
        return self

    def split(self, texts: Sequence[TaggedTexts]) -> ExampleSplit | None:
        """Where each text of the training files belongs; None where none is held out. Raises as `split_tagged`."""
        if self.hold_out is None or not self.hold_out.draws:
            return None
        return split_tagged(", ".join(file.file for file in self.train), texts, self.hold_out)

    def drawn_tests(self) -> dict[str | None, str]:
        """What the test set of drawn texts is called: it has no language."""
        return {None: HELD_OUT}

    def part(self, texts: Sequence[TaggedTexts], part: int = TRAIN) -> list[TaggedTexts]:
        """The texts of the training files that belong to a part. Raises InputError as `split_tagged`."""
        if (split := self.split(texts)) is None:
            return list(texts) if part == TRAIN else []
        return [file.only(parts == part) for file, parts in zip(texts, split.parts, strict=True)]

    @property
    def cut(self) -> Unit:
        """The unit that has a label."""
        return "character" if self.train[0].segmented else self.unit

    @property
    def given_scheme(self) -> Scheme | None:
        """The scheme that is asked for; None = what the labels look like."""
        wanted: Any = "bmes" if self.train[0].segmented else self.scheme
        return None if wanted == "auto" else wanted


class Tagging(LabelTask):
    """A text -> a label for each of its words, by a model that `LabelsWords`."""

    Config = TaggingConfig
    Data = TaggingData
    kinds: ClassVar[dict[str, str]] = {"source": "words", "target": "word_labels"}
    default_model = "tagger"

    fingerprints = staticmethod(named_files)
    never_split = True
    any_output = "O"
    drawing = "entity_marks"
    drawn_at_terminals = True

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: TaggingData) -> Columns:
        """A tokenizer of the words, and their labels in the order of their names.

        Raises:
            InputError: what `read_tagged` refuses, or all words have one label.
        """
        root = Path(data.root)
        texts = [read_tagged(file, root, data.cut, data.given_scheme) for file in data.train]
        scheme = data.given_scheme or one_scheme(texts)
        if data.given_scheme is None and len(texts) > 1:
            texts = [read_tagged(file, root, data.cut, scheme) for file in data.train]
        texts = data.part(texts)
        labels = sorted({label for each in texts for label in each.labels})
        check_labels(data.train[0].paths(root)[0], labels)
        words = (words for each in texts for _, words, _ in each.examples)
        tokenizer = train_tokenizer(config, words, root)
        source = Words(tokenizer, unit=data.cut, spaced=tokenizer.spaces_words)
        return {"source": source, "target": WordLabels(tuple(labels), scheme=scheme)}

    @property
    def predictor(self) -> WordLabelPredictor:
        """The likeliest labels."""
        return WordLabelPredictor(self.columns, self.max_source_length)

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> CrfLikelihood | WordCrossEntropy:
        """The likelihood of rows of labels with a CRF, which knows no label smoothing; else each word's cross-entropy.

        Raises:
            InputError: the model labels no words; R-Drop or sampled words.
        """
        wanted = 'label words; expected one that does, such as "tagger"'
        check_model(model, isinstance(model, LabelsWords), wanted, config)
        assert isinstance(model, LabelsWords)
        return CrfLikelihood() if model.crf else WordCrossEntropy(config.label_smoothing if config else 0.0)

    @property
    def context(self) -> str:
        """The whole text, and with a CRF what came before."""
        return "the text, and with a CRF the labels before"

    @cached_property
    def scheme(self) -> Scheme:
        """Of the labels."""
        found: Scheme = self.columns["target"].scheme  # type: ignore[attr-defined]
        return found

    def read_inputs(self, path: Path) -> InputFile | None:
        """The texts of a file that the recipe names, or of one of a format that has labels; None where it has none."""
        file = self._file_of(path)
        if file is None:
            return None
        texts = read_tagged(file, path.parent, self.data.cut, self.scheme)
        examples = texts.examples
        return InputFile([], [words for _, words, _ in examples], [[labels] for _, _, labels in examples])

    def _file_of(self, path: Path) -> TaggedFile | None:
        """As the recipe has it: a file of this name, or else the first one of the same format."""
        known = [*self.held_out.values(), *self.data.train]
        named = [each for each in known if Path(each.file).name == path.name]
        fresh = TaggedFile(file=path.name) if suffix_of(path) in {*SUFFIXES, *FORMATS} else None
        alike = [each for each in known if fresh and each.format_name == fresh.format_name]
        chosen = (named + alike)[:1] or ([fresh] if fresh else [])
        return chosen[0].model_copy(update={"file": path.name}) if chosen else None

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files, or find them in the cache; what was done with words and labels is told."""
        data = self.data
        texts = every(self._read, data.train)
        if (split := data.split(texts)) is not None:
            tell(split.report())
        corpora, totals = [], Counter[str]()
        for file, read in zip(data.train, data.part(texts), strict=True):
            store = self._store([file], [read], self._filters, cache, _drawn_as(split, TRAIN))
            corpora.append((store, file.weight))
            totals.update(read.labels)
            kept = Dropped.from_dict(store.metadata["dropped"]).report("texts")
            shares = ", ".join(f"{label} {count:,}" for label, count in sorted(read.labels.items()))
            tell(f"{file.paths(self.root)[0]}: {kept} Words: {shares}. Scheme: {self.scheme}.")
            self._tell(read, tell)
        self.tell_of_rare(totals, data.train[0].paths(self.root)[0], tell)
        held_out = every(lambda file: self._held_out(file, cache, tell), self.held_out.values())
        found = {**dict(zip(self.held_out, held_out, strict=True)), **self._drawn(texts, split, cache, tell)}
        made_from = provenance(data.train, self.held_out, self.root)
        return TaskData(corpora, found.pop("validation", None), found, made_from)

    def tallies(
        self,
        hypotheses: Sequence[str],
        references: "References",
        names: Sequence[str] | None = None,
        language: str | None = None,
    ) -> "dict[str, Tally]":
        """What the metrics count; accuracy and macro_f1 of the labels of words."""
        wanted = self.metrics if names is None else names
        of_words = [OF_WORDS.get(name, name) for name in wanted]
        found = super().tallies(hypotheses, references, of_words, language)
        return {name: found[other] for name, other in zip(wanted, of_words, strict=True)}

    @property
    def metrics(self) -> list[str]:
        """The recipe's, but for entities where labels say none."""
        return [name for name in self.config.metrics if self.scheme != "none" or name != "entity_f1"]

    def confusion(self, hypotheses: Sequence[str], references: "References") -> "Confusion | None":
        """Of the labels of words, for outputs that have as many as their references."""
        from transduce.metrics.score import checked_references

        pairs = [
            (said.split(" "), several[0].split(" "))
            for said, several in zip(hypotheses, checked_references(hypotheses, references), strict=True)
        ]
        both = [each for said, true in pairs if len(said) == len(true) for each in zip(said, true, strict=True)]
        return super().confusion([one for one, _ in both], [other for _, other in both]) if both else None

    def baseline(self, data: TaskData, tell: Tell) -> Baseline | None:
        """The most frequent label of each word."""
        from transduce.inference.frequent_labels import FrequentLabels

        if not self.config.baseline:
            return None
        texts = self.data.part([self._read(file) for file in self.data.train])
        examples = [each for file in texts for each in file.examples]
        counted = FrequentLabels.of((words.split(" "), labels.split(" ")) for _, words, labels in examples)
        unit = self.data.cut
        return Baseline(
            "most frequent label",
            lambda texts: [" ".join(counted.predict(units_of(text, unit))) for text in texts],
            {"of": "words, else last three letters and shape", "texts": len(examples)},
        )

    def _read(self, file: TaggedFile) -> TaggedTexts:
        return read_tagged(file, self.root, self.data.cut, self.scheme)

    def _tell(self, read: TaggedTexts, tell: Tell) -> None:
        for note in read.notes:
            tell(note)

    def _store(
        self,
        files: Sequence[TaggedFile],
        read: Sequence[TaggedTexts],
        filters: FilterConfig,
        cache: Path,
        part: dict[str, Any],
    ) -> Store:
        """The texts as ids; `part`: which of those of the files, see `_drawn_as`."""
        dumped = [file.model_dump(exclude={"file", "weight"}, exclude_none=True) for file in files]
        settings = {**(dumped[0] if len(dumped) == 1 else {"files": dumped}), "scheme": self.scheme, **part}
        paths = [path for file in files for path in file.paths(self.root)]

        def examples() -> Iterator[Example]:
            return chain.from_iterable(each.examples for each in read)

        return open_examples(paths, examples, self.columns, filters, cache, settings)

    def _held_out(self, file: TaggedFile, cache: Path, tell: Tell) -> Dataset:
        read = self._read(file)
        self._tell(read, tell)
        return self._dataset(str(file.paths(self.root)[0]), [file], [read], cache, tell, {})

    def _drawn(
        self, texts: Sequence[TaggedTexts], split: ExampleSplit | None, cache: Path, tell: Tell
    ) -> dict[str, Dataset]:
        """The parts that were drawn, by name."""
        wanted = split.held_out_parts if split else {}
        return {
            name: self._dataset(name, self.data.train, self.data.part(texts, part), cache, tell, _drawn_as(split, part))
            for name, part in wanted.items()
        }

    def _dataset(
        self,
        name: str,
        files: Sequence[TaggedFile],
        read: Sequence[TaggedTexts],
        cache: Path,
        tell: Tell,
        part: dict[str, Any],
    ) -> Dataset:
        if told := unseen_labels(self.label_names, sum((each.labels for each in read), Counter[str]())):
            tell(f"{name}: {told}")
        texts = [(words, labels) for each in read for _, words, labels in each.examples]
        source = self.columns["source"]
        if source.room is not None:
            cut = partial(parts_that_fit, source=source, scheme=self.scheme)
            read = [each._replace(examples=[*chain.from_iterable(map(cut, each.examples))]) for each in read]
            part = {**part, "room": source.room}
        return Dataset(self._store(files, read, NO_LIMITS, cache, part), texts)

    @property
    def _filters(self) -> FilterConfig:
        """No text is longer than the model has positions for."""
        return self.data.filters.model_copy(update={"max_tokens": self.max_source_length})


def parts_that_fit(example: Example, source: Column, scheme: Scheme) -> Iterator[Example]:
    """A text in parts that `source` has positions for, one behind the other; labels begin anew in each.

    Of a word that is too long by itself its beginning is kept, as predictions read it.
    """
    line, text, labels = example
    words, each_label, start = text.split(" "), labels.split(" "), 0
    while start < len(words):
        end = _end_of_part(words, start, source)
        kept, given = words[start:end], each_label[start:end]
        if end < len(words) or start:
            given = given if scheme == "none" else labels_of(spans_of(given), len(given), scheme)
        yield line, " ".join(kept if len(kept) > 1 else [_beginning(kept[0], source)]), " ".join(given)
        start = end


def _end_of_part(words: Sequence[str], start: int, source: Column) -> int:
    """Up to which word there is room, for one at least."""
    assert source.room is not None
    end = min(len(words), start + source.room)
    while end > start + 1 and _pieces(" ".join(words[start:end]), source) > source.room:
        end = start + max(1, (end - start) * 3 // 4)
    return end


def _beginning(word: str, source: Column) -> str:
    assert source.room is not None
    while len(word) > 1 and _pieces(word, source) > source.room:
        word = word[: len(word) // 2]
    return word


def _pieces(text: str, source: Column) -> int:
    return len(source.encode([text])[0])


def _drawn_as(split: ExampleSplit | None, part: int) -> dict[str, Any]:
    """What tells the texts of a part, for the cache."""
    return {} if split is None else {"part": [digest(each, part) for each in split.parts]}
