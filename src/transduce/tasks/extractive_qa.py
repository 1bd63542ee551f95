"""A question and a text in, the span of the text that answers it out."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from transduce.data.input_file import InputFile
from transduce.data.remote import located
from transduce.data.store import Store
from transduce.data.structures.squad import Question, placed, read_squad
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
    """Questions on texts, in the JSON of SQuAD 1.1 or 2.0, compressed or not."""

    file: str
    """Its path, relative to `root`."""
    weight: float = Field(default=1.0, gt=0)
    """How often an epoch shows each question."""


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
    hold_out: float = Field(default=0.0, ge=0, lt=1)
    """In the place of a validation file: the share of the training texts that are not trained on, but pick the best
    weights with their questions. A hash of each text decides, so all questions on a text are on the same side."""
    test: dict[str, QuestionFile] = Field(default_factory=dict)
    """By name; scored once, at the end."""

    @model_validator(mode="after")
    def _has_training_text(self) -> Self:
        if not self.train:
            raise ValueError('name at least one training file: [[data.train]] file = "train-v1.1.json"')
        if self.hold_out and self.validation:
            raise ValueError("validation and hold_out both give validation questions: leave out either")
        return self

    def part(self, questions: list[Question], held_out: bool) -> list[Question]:
        """The questions of training files that are trained on, or those that are held out."""
        return [each for each in questions if held_out == (_drawn(each.context) < self.hold_out)]


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
        questions = [
            each for file in data.train for each in data.part(read_squad(located(root, file.file)), held_out=False)
        ]
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
        """The questions of a .json file."""
        if suffix_of(path) != ".json":
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
        chosen = [each for _, questions in read for each in data.part(questions, held_out=True)]
        if data.hold_out and not chosen:
            raise InputError(f"data.hold_out = {data.hold_out}: none of so few texts was drawn. Hold out more.")
        part = f"all but {data.hold_out} of the texts" if data.hold_out else ""
        corpora = [
            (self._store([file], data.part(questions, held_out=False), cache, tell, part, True), file.weight)
            for file, questions in read
        ]
        found = {
            name: self._held_out([file], read_squad(located(self.root, file.file)), cache, tell)
            for name, file in self.held_out.items()
        }
        if chosen:
            found["validation"] = self._held_out(data.train, chosen, cache, tell, f"{data.hold_out} of the texts")
        made_from = provenance(data.train, self.held_out, self.root)
        return TaskData(corpora, found.pop("validation", None), found, made_from)

    def baseline(self, data: TaskData, tell: Tell) -> Baseline:
        """A sliding window over words; which of its candidates, the metrics of some training questions say."""
        questions = [
            each
            for file in self.data.train
            for each in self.data.part(read_squad(located(self.root, file.file)), held_out=False)
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
