"""A question and a text in, the span of the text that answers it out."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator
from torch import nn

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.columns import Columns
from transduce.data.columns.question_context import QuestionContext
from transduce.data.columns.span import Span
from transduce.data.corpus import provenance
from transduce.data.encoding import open_rows
from transduce.data.files import suffix_of
from transduce.data.hold_out import HELD_OUT, TEST, TRAIN, VALIDATION, check_drawn_once
from transduce.data.input_file import InputFile
from transduce.data.remote import located
from transduce.data.store import Store
from transduce.data.structures.squad import OBJECTS, Question, placed, read_squad
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.sliding_window import CANDIDATES, SlidingWindow
from transduce.inference.spans import Reading, SpanPredictor, read_windows, token_span
from transduce.models.protocols import Points
from transduce.objectives.span import SpanCrossEntropy
from transduce.objectives.text import LossConfig
from transduce.tasks.base import AnsweredFile, Task, check_model, named_files
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell

BASELINE_QUESTIONS = 500  # of the training files, that choose the baseline


class QuestionFile(AnsweredFile):
    """Questions on texts, in the JSON of SQuAD 1.1 or 2.0, or an object a line (.jsonl), compressed or not."""

    file: str
    """Its path, relative to `root`."""
    weight: float = Field(default=1.0, gt=0)
    """How often an epoch shows each question."""


class HeldOutTexts(Config):
    """Shares of the training texts."""

    validation: float = Field(default=0.0, ge=0, lt=1)
    """Of the texts whose questions pick the best weights."""
    test: float = Field(default=0.0, ge=0, lt=1)
    """Of the texts whose questions are the test set `held_out`."""

    @model_validator(mode="before")
    @classmethod
    def _share(cls, given: Any) -> Any:
        """A number alone is that of the validation."""
        return {"validation": given} if isinstance(given, int | float) and not isinstance(given, bool) else given

    @model_validator(mode="after")
    def _leave_some(self) -> Self:
        if self.total >= 1:
            raise ValueError(f"expected shares that leave texts to train on; got {self.total:g} of them")
        return self

    @property
    def total(self) -> float:
        """Of both."""
        return self.validation + self.test

    def part_of(self, context: str) -> int:
        """The part of a text, by its hash alone."""
        drawn = _drawn(context)
        return VALIDATION if drawn < self.validation else TEST if drawn < self.total else TRAIN

    def told(self, part: int) -> str:
        """Which texts a part has, in words; "" = all."""
        if not self.total:
            return ""
        others = f"a further {self.test:g} of the texts, behind {self.validation:g}"
        return {TRAIN: f"all but {self.total:g} of the texts", VALIDATION: f"{self.validation:g} of the texts"}.get(
            part, others
        )


class ExtractiveQaConfig(Config):
    """How texts are read, and what answers are judged by."""

    kind: Literal["extractive_qa"] = "extractive_qa"
    metrics: tuple[str, ...] = ("squad_em", "squad_f1")
    """What validation, the final tests and `evaluate` report: squad_em and squad_f1 of SQuAD 1.1, squad2_em and
    squad2_f1 of SQuAD 2.0, cmrc_em and cmrc_f1, drcd_em and drcd_f1."""
    language: str = ""
    """Language code of the texts, such as en."""
    window: int = Field(default=400, ge=1)
    """How many tokens of a text are read at once; a longer text is read in windows."""
    stride: int = Field(default=200, ge=1)
    """How many tokens after the beginning of a window the next one begins; at most `window`."""
    longest_question: int = Field(default=64, ge=1)
    """How many tokens of a question are read; the rest of a longer one is cut off."""
    longest_answer: int = Field(default=30, ge=1)
    """How many tokens a predicted answer has at most; training answers may be longer."""
    no_answer: bool = False
    """Whether a text may hold no answer, as in SQuAD 2.0. Else every question gets an answer, and training leaves out
    questions without one."""
    no_answer_margin: float = 0.0
    """By how many nats "no answer" has to be likelier than the best span."""

    @model_validator(mode="after")
    def _windows_overlap(self) -> Self:
        if self.stride > self.window:
            raise ValueError(f"stride = {self.stride} leaves out tokens between windows of {self.window}")
        return self


class ExtractiveQaData(Config):
    """The files of questions; paths are relative to `root`, `root` to the working directory."""

    root: str = "."
    """Where the files lie."""
    download: str = ""
    """Where the files can be had: the address that is named when one is missing."""
    train: tuple[QuestionFile, ...]
    """One file or several, each with its weight."""
    validation: QuestionFile | None = None
    """Picks the best weights."""
    hold_out: HeldOutTexts = HeldOutTexts()
    """In the place of files for validation and test: the shares of the training texts that are not trained on, but pick
    the best weights with their questions, or are the test: { validation = 0.1, test = 0.1 }. A number alone is for
    validation. A hash of each text decides, so all questions on a text are on the same side."""
    test: dict[str, QuestionFile] = Field(default_factory=dict)
    """By name; scored once, at the end."""

    @model_validator(mode="after")
    def _has_training_text(self) -> Self:
        if not self.train:
            raise ValueError('name at least one training file: [[data.train]] file = "train-v1.1.json"')
        check_drawn_once(self.hold_out, self.validation, self.test)
        return self

    def part(self, questions: Iterable[Question], part: int = TRAIN) -> list[Question]:
        """The questions of training files that are trained on, or those of a part that is held out."""
        return [each for each in questions if self.hold_out.part_of(each.context) == part]


class ExtractiveQa(Task):
    """A question and a text -> a span of the text, by a model that `Points`."""

    Config = ExtractiveQaConfig
    Data = ExtractiveQaData
    kinds: ClassVar[dict[str, str]] = {"source": "question_context", "target": "span"}
    default_model = "bidaf"
    fingerprints = staticmethod(named_files)
    drawing = "answer_span"

    def __init__(self, config: ExtractiveQaConfig, data: ExtractiveQaData, columns: Columns) -> None:
        super().__init__(config, data, columns)
        reads = columns["source"]
        assert isinstance(reads, QuestionContext)
        margin = config.no_answer_margin if config.no_answer else None
        how = Reading(config.window, config.stride, config.longest_question, config.longest_answer, margin)
        self._predictor = SpanPredictor(reads, how)

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: ExtractiveQaData) -> Columns:
        """A tokenizer of the training questions and texts, each text once."""
        root = Path(data.root)
        questions = [each for file in data.train for each in data.part(read_squad(located(root, file.file)))]
        texts = [*dict.fromkeys(each.context for each in questions), *(each.question for each in questions)]
        return {"source": QuestionContext.of(train_tokenizer(config, texts, root)), "target": Span()}

    @property
    def predictor(self) -> SpanPredictor:
        """The likeliest span."""
        return self._predictor

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> SpanCrossEntropy:
        """Cross-entropy of the first and the last token.

        Raises:
            InputError: the model does not point; R-Drop, smoothing or sampled words.
        """
        check_model(model, isinstance(model, Points), 'point; expected a model that does, such as "bidaf"', config)
        return SpanCrossEntropy()

    @property
    def max_source_length(self) -> int:
        """A question and a window; more is read in several windows."""
        return int(self.config.longest_question + self.config.window)

    @property
    def context(self) -> str:
        """The question and a window."""
        return "the question and a window of the text"

    def read_inputs(self, path: Path) -> InputFile | None:
        """The questions of a .json or .jsonl file."""
        if suffix_of(path) not in (".json", *OBJECTS):
            return None
        questions = read_squad(path)
        return InputFile(
            [each.id for each in questions],
            [each.text for each in questions],
            [_references(each) for each in questions],
        )

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files, or find them in the cache; what was left out is told."""
        data = self.data
        read = [(file, read_squad(located(self.root, file.file))) for file in data.train]
        corpora = [
            (self._store([file], data.part(questions), cache, tell, data.hold_out.told(TRAIN), True), file.weight)
            for file, questions in read
        ]
        found = {
            name: self._held_out([file], read_squad(located(self.root, file.file)), cache, tell)
            for name, file in self.held_out.items()
        }
        every = [each for _, questions in read for each in questions]
        for name, part in (("validation", VALIDATION), (HELD_OUT, TEST)):
            share = data.hold_out.validation if part == VALIDATION else data.hold_out.test
            if share:
                found[name] = self._drawn(name, data.part(every, part), cache, tell, part)
        made_from = provenance(data.train, self.held_out, self.root)
        return TaskData(corpora, found.pop("validation", None), found, made_from)

    def _drawn(self, name: str, questions: Sequence[Question], cache: Path, tell: Tell, part: int) -> Dataset:
        """The questions of a part. Raises InputError where there are none."""
        hold_out = self.data.hold_out
        if not questions:
            raise InputError(
                f"data.hold_out = {hold_out.told(part)}: none of so few texts was drawn for {name}. Hold out more."
            )
        return self._held_out(self.data.train, questions, cache, tell, hold_out.told(part))

    def baseline(self, data: TaskData, tell: Tell) -> Baseline:
        """A sliding window over words; which of its candidates, the metrics of some training questions say."""
        questions = [
            each for file in self.data.train for each in self.data.part(read_squad(located(self.root, file.file)))
        ]
        seen = questions[:: -(-len(questions) // BASELINE_QUESTIONS)]
        systems: dict[str, Callable[[Sequence[str]], list[str]]] = {
            f"sliding window, {each}s": SlidingWindow(each, self.config.language).answers for each in CANDIDATES
        }
        if self.config.no_answer:
            systems["no answer"] = lambda texts: [""] * len(texts)
        references = [_references(each) for each in seen]
        means = {}
        for name, answers in systems.items():
            scores = self.evaluate(answers([each.text for each in seen]), references)
            means[name] = sum(score.value for score in scores.values()) / len(scores)
        best = max(means, key=means.__getitem__)
        figures = ", ".join(f"{name} {mean:.1f}" for name, mean in means.items())
        tell(f"Baselines on {len(seen):,} training questions, mean of {' and '.join(self.config.metrics)}: {figures}.")
        return Baseline(best, systems[best], {"training_questions": len(seen), "means": means})

    def _store(
        self,
        files: Sequence[QuestionFile],
        questions: Sequence[Question],
        cache: Path,
        tell: Tell,
        part: str = "",
        several: bool = False,
    ) -> Store:
        """The windows of questions of these files; `part` says which, where it is not all. `several`: see `_rows`."""
        paths = [located(self.root, file.file) for file in files]
        config = self.config
        settings = {key: getattr(config, key) for key in ("window", "stride", "longest_question", "no_answer")}

        def read(notes: dict[str, Any]) -> Iterator[dict[str, list[int]]]:
            counts: Counter[str] = Counter()
            yield from _rows(self._predictor, questions, config.no_answer, several, counts)
            notes["questions"] = dict(sorted(counts.items()))

        store = open_rows(paths, read, self.columns, cache, settings | {"part": part, "several": several})
        tell(f"{', '.join(map(str, paths))}{part and f', {part}'}: {_told(store.metadata['questions'])}.")
        return store

    def _held_out(
        self, files: Sequence[QuestionFile], questions: Sequence[Question], cache: Path, tell: Tell, part: str = ""
    ) -> Dataset:
        references = [_references(each) for each in questions]
        texts = [(each.text, several[0]) for each, several in zip(questions, references, strict=True)]
        return Dataset(self._store(files, questions, cache, tell, part), texts, references)


def _drawn(context: str) -> float:
    """A number from 0 to 1 that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(context.encode()).digest()[:8], "big") / 2**64


def _references(question: Question) -> list[str]:
    """Its answers; where there are none, that there is none."""
    return list(dict.fromkeys(answer for answer, _ in question.answers)) or [""]


def _rows(
    predictor: SpanPredictor, questions: Sequence[Question], no_answer: bool, several: bool, counts: Counter[str]
) -> Iterator[dict[str, list[int]]]:
    """Each window of each question with the span of its first answer, or in a window without it the end token's.

    With `several`, so for each of its answers that is another span.
    """
    for question in questions:
        known = placed(question)
        if question.answers and not known:
            counts["nowhere"] += 1
            continue
        if not question.answers and not no_answer:
            counts["unanswered"] += 1
            continue
        [read], found = read_windows(predictor.column, [question.text], predictor.reading)
        places = [token_span(read.offsets, start, start + len(answer)) for answer, start in known]
        spans = list(dict.fromkeys(place for place in places if place))
        if known and not spans:
            counts["nowhere"] += 1
            continue
        counts["kept"] += 1
        counts["elsewhere"] += bool(known) and known[0] != question.answers[0]
        counts["windows"] += len(found)
        counts["more"] += several and len(spans) > 1
        shown: Sequence[tuple[int, int] | None] = (spans if several else spans[:1]) or [None]
        for span in shown:
            for window in found:
                inside = span and window.first <= span[0] <= span[1] < window.first + window.tokens
                nowhere = window.tokens, window.tokens
                first, last = (each - window.first for each in span) if span and inside else nowhere
                yield {"source": window.row.tolist(), "target": [first, last]}


def _told(counts: dict[str, int]) -> str:
    """What became of the questions, in words."""
    said: list[tuple[str, Callable[[int], str]]] = [
        ("elsewhere", lambda n: f"{n:,} answers stand elsewhere than the file says, and were found there"),
        ("more", lambda n: f"{n:,} of them with different answers, each an example"),
        ("nowhere", lambda n: f"{n:,} left out, whose answers are not in their texts"),
        ("unanswered", lambda n: f"{n:,} left out, which have no answer (task.no_answer = true keeps them)"),
    ]
    notes = [words(counts[key]) for key, words in said if counts.get(key)]
    return "; ".join([f"{counts.get('kept', 0):,} questions in {counts.get('windows', 0):,} windows", *notes])
