"""A story and a question in, one of C answers out: the bAbI tasks (Weston et al. 2015)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from transduce.core.config import Config
from transduce.core.errors import InputError, every
from transduce.data.batches import SizedBatches
from transduce.data.columns import Columns
from transduce.data.columns.label import Label
from transduce.data.columns.story import Story
from transduce.data.encoding import open_rows
from transduce.data.files import fingerprint
from transduce.data.input_file import InputFile
from transduce.data.remote import located
from transduce.data.store import Store
from transduce.data.structures.stories import (
    StoryQuestion,
    is_pattern,
    is_story_file,
    parted,
    read_stories,
    story_of,
    story_sources,
)
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.labels import LabelPredictor
from transduce.tasks.base import AnsweredFile, LabelTask, named_files
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell

if TYPE_CHECKING:
    from transduce.metrics.score import References

COUNTED = 500_000  # tokens of stories, that the baseline learns from at most; each takes part in a hundred steps


@dataclass(frozen=True)
class StoryPredictor(LabelPredictor):
    """Each question its likeliest answer. The source of a prediction from JSON is the story in numbered lines."""

    def shown(self, text: str) -> str:
        """As it is where it cannot be read: whoever encodes it says so, with its line."""
        try:
            return story_of(text).text
        except InputError:
            return text


class StoryFile(AnsweredFile):
    """Stories with questions in the format of bAbI: a file, or all files of a pattern."""

    file: str
    """Its path, relative to `root`, or a pattern such as qa*_train.txt; in an archive, data.tar.gz:en/qa*_train.txt."""

    def questions(self, root: Path) -> list[StoryQuestion]:
        """Of all its files. Raises InputError for all that is wrong in any of them."""
        return [each for several in every(read_stories, story_sources(root, self.file)) for each in several]

    def paths(self, root: Path) -> list[Path]:
        """The files that are opened, each once."""
        return list(dict.fromkeys(source.path for source in story_sources(root, self.file)))


class QuestionAnsweringConfig(Config):
    """What answers are judged by."""

    kind: Literal["question_answering"] = "question_answering"
    metrics: tuple[str, ...] = ("error",)
    """What validation, the final tests and `evaluate` report: error, the share of wrong answers; accuracy, macro_f1."""
    language: str = ""
    """Language code of the stories, such as en."""


class QuestionAnsweringData(Config):
    """The files of stories; paths are relative to `root`, `root` to the working directory."""

    root: str = "."
    """Where the files lie."""
    train: tuple[StoryFile, ...]
    """One file or several. Each file is a task of its own in the tables of scores; training mixes all."""
    validation: StoryFile | None = None
    """Picks the best weights."""
    hold_out: float = Field(default=0.0, ge=0, lt=1)
    """In the place of a validation file: the share of the stories of each training file, its last ones, that are not
    trained on, but pick the best weights."""
    test: dict[str, StoryFile] = Field(default_factory=dict)
    """By name; scored once, at the end."""
    batch_size: int = Field(default=32, ge=1)
    """Number of questions in a batch, drawn at random from all files; batch.tokens is not read."""

    @model_validator(mode="after")
    def _has_training_text(self) -> Self:
        if not self.train:
            raise ValueError('name at least one training file: [[data.train]] file = "qa1_train.txt"')
        if self.hold_out and self.validation:
            raise ValueError("validation and hold_out both give validation questions: leave out either")
        return self

    def parts(self, root: Path) -> tuple[list[StoryQuestion], list[StoryQuestion]]:
        """The questions of the training files that are trained on, and those that are held out."""
        questions = [each for file in self.train for each in file.questions(root)]
        stories = {each.task: each.story + 1 for each in questions}  # which rise
        first = {task: count - int(count * self.hold_out) for task, count in stories.items()}
        held_out = [each for each in questions if each.story >= first[each.task]]
        if self.hold_out and not held_out:
            raise InputError(f"data.hold_out = {self.hold_out}: there are too few stories for it. Hold out more.")
        return [each for each in questions if each.story < first[each.task]], held_out


class QuestionAnswering(LabelTask):
    """A story and a question -> an answer, by a model that `Classifies`."""

    Config = QuestionAnsweringConfig
    Data = QuestionAnsweringData
    kinds: ClassVar[dict[str, str]] = {"source": "story", "target": "label"}
    default_model = "memory_network"
    fingerprints = staticmethod(named_files)
    never_split: ClassVar[bool] = True
    drawing: ClassVar[str] = "hop_shading"
    drawn_alone: ClassVar[bool] = True
    context = "the story and the question"
    max_source_length = 100_000

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: QuestionAnsweringData) -> Columns:
        """A tokenizer of the sentences, questions and answers of the training files, and their answers."""
        root = Path(data.root)
        questions = [each for file in data.train for each in file.questions(root)]
        sentences = dict.fromkeys(each for one in questions for each in story_of(one.text).sentences)
        answers = sorted({each.answer for each in questions})
        tokenizer = train_tokenizer(config, [*sentences, *answers], root)
        words = tuple(tuple(ids) for ids in tokenizer.encode(answers))
        return {"source": Story.of(tokenizer), "target": Label(tuple(answers), words)}

    @property
    def predictor(self) -> StoryPredictor:
        """The likeliest answer."""
        return StoryPredictor(self.columns)

    def confusion(self, hypotheses: Sequence[str], references: "References") -> None:
        """None: most answers are possible for few questions."""

    def can_answer(self, text: str) -> bool:
        """Whether a question of the training files has this answer."""
        target = self.columns["target"]
        return isinstance(target, Label) and text in target.labels

    def read_inputs(self, path: Path) -> InputFile | None:
        """The questions of a file in bAbI's format."""
        root, file = parted(path)
        found = StoryFile(file=file)
        if not is_pattern(file) and not is_story_file(path):
            return None
        questions = found.questions(root)
        texts, answers = [each.text for each in questions], [[each.answer] for each in questions]
        return InputFile([], texts, answers, [each.task for each in questions], found.paths(root))

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files, or find them in the cache."""
        data = self.data
        trained, chosen = data.parts(self.root)
        part = f"all but the last {data.hold_out} of the stories of each" if data.hold_out else ""
        store = self._store(data.train, trained, cache, tell, part)
        files = self.held_out
        held_out = every(lambda file: self._held_out([file], file.questions(self.root), cache, tell), files.values())
        found = dict(zip(files, held_out, strict=True))
        if chosen:
            found["validation"] = self._held_out(data.train, chosen, cache, tell, f"the last {data.hold_out} of each")
        provenance = {
            "train": [self._named(data.train)],
            **{name: self._named([file]) for name, file in files.items()},
        }
        validation = found.pop("validation", None)

        def drawn(seed: int) -> SizedBatches:
            return SizedBatches(store, data.batch_size, seed)

        return TaskData([(store, 1.0)], validation, found, provenance, drawn=drawn)

    def baseline(self, data: TaskData, tell: Tell) -> Baseline:
        """A linear classifier of the n-grams of the story and, apart from them, of the question (Weston et al. 2015,
        section 5, but for their choice of sentences).
        """
        from transduce.inference.bag_of_ngrams import USUAL, fit

        source, names = self.columns["source"], self.label_names
        assert isinstance(source, Story)
        rows, labels = data.examples(COUNTED)
        joined = [_story_and_question(row, source.end) for row in rows]
        sizes = len(names), source.tokenizer.size, source.end
        [model] = fit(joined, np.concatenate(labels).astype(np.int64), np.ones(len(rows)), *sizes)

        def answers(texts: Sequence[str]) -> list[str]:
            asked = [_story_and_question(np.asarray(row), source.end) for row in source.encode(texts)]
            return [names[each] for each in model.predict(asked)]

        settings = {"ngrams": [1, 2], "of": "tokens", "features": len(model.codes_F), "C": USUAL}
        return Baseline("bag of n-grams", answers, {**settings, "examples": len(rows)})

    def _named(self, files: Sequence[StoryFile]) -> dict[str, Any]:
        paths = list(dict.fromkeys(path for file in files for path in file.paths(self.root)))
        return {"file": ", ".join(file.file for file in files), "sha256": [fingerprint(path) for path in paths]}

    def _held_out(
        self, files: Sequence[StoryFile], questions: Sequence[StoryQuestion], cache: Path, tell: Tell, part: str = ""
    ) -> Dataset:
        texts = [(each.text, each.answer) for each in questions]
        return Dataset(self._store(files, questions, cache, tell, part), texts, groups=[e.task for e in questions])

    def _store(
        self,
        files: Sequence[StoryFile],
        questions: Sequence[StoryQuestion],
        cache: Path,
        tell: Tell,
        part: str,
    ) -> Store:
        """`part` says which of the files' questions they are, where it is not all."""
        source, target = self.columns["source"], self.columns["target"]
        assert isinstance(source, Story)
        known = set(self.label_names)
        kept = [each for each in questions if each.answer in known]

        def read(notes: dict[str, Any]) -> Iterator[dict[str, list[int]]]:
            rows = source.rows([story_of(each.text) for each in kept])
            labels = target.encode([each.answer for each in kept])
            notes["unknown"] = {"source": sum(row.count(source.unknown) for row in rows), "target": 0}
            for row, label in zip(rows, labels, strict=True):
                yield {"source": row, "target": list(label)}

        paths = list(dict.fromkeys(path for file in files for path in file.paths(self.root)))
        settings = {"files": [file.file for file in files], "part": part}
        store = open_rows(paths, read, self.columns, cache, settings)
        tasks = len({each.task for each in questions})
        named = ", ".join(str(located(self.root, file.file)) for file in files)
        unseen = len(questions) - len(kept)
        more = f"; {unseen:,} with an answer that no training question has: they count as wrong" if unseen else ""
        tell(f"{named}{part and f', {part}'}: {len(questions):,} questions of {tasks} tasks{more}.")
        return store


def _story_and_question(row_S: NDArray[Any], end: int) -> NDArray[np.int64]:
    """The ids of all sentences without what stands between them, and behind one end token those of the question."""
    ends = np.flatnonzero(row_S == end)
    first = ends[-1] if len(ends) else 0
    story = row_S[:first][row_S[:first] != end]
    return np.concatenate((story, [end], row_S[first + bool(len(ends)) :])).astype(np.int64)
