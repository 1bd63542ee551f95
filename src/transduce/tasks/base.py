"""The contract of a task, and what tasks have in common.

A task groups its members: data (columns in and out, reading, examples), learning, judging, showing. Training,
prediction, the command line and the page ask these, and never which task it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.printable import NAMED, quoted
from transduce.core.registry import resolve
from transduce.data.columns import Columns, Specs
from transduce.data.columns.packed import one_vocabulary, tokenizers_of
from transduce.data.columns.tokens import Tokens
from transduce.data.corpus import provenance
from transduce.data.input_file import InputFile
from transduce.data.kneser_ney import MOST_TOKENS, KneserNey
from transduce.data.labelled import LabelledFiles
from transduce.data.pairs.pair_data import PairData
from transduce.data.remote import located
from transduce.data.shards import shards_of
from transduce.data.speech.recordings import Recordings
from transduce.data.store import Store
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from transduce.inference.decode import SearchPredictor
from transduce.inference.labels import LabelPredictor
from transduce.inference.prediction import Prediction
from transduce.inference.protocols import Predictor
from transduce.models.protocols import Classifies
from transduce.recipe.recipe import Recipe
from transduce.search.output_lengths import too_long
from transduce.search.request import Request
from transduce.search.settings import Search
from transduce.tasks.protocols import Baseline, TaskData, Tell

ROWS = 10_000  # that are read together
SHOWN = 40  # characters of a wrong text in a message
ANY_LENGTH = 1 << 24  # input tokens

if TYPE_CHECKING:
    from transduce.metrics.confusion import Confusion
    from transduce.metrics.score import References, Score
    from transduce.metrics.tally import Tally
    from transduce.objectives.protocols import Objective
    from transduce.objectives.text import LossConfig


class ExampleFile(Config):
    """One file of examples."""

    file: str

    def paths(self, root: Path) -> list[Path]:
        """The file itself, relative ones from `root`."""
        return [located(root, self.file)]

    def evaluate_options(self, root: Path) -> list[str]:
        """The file as options of `transduce evaluate`; none where that command cannot read it."""
        return []


class AnsweredFile(ExampleFile):
    """One from which `Task.read_inputs` reads inputs with their references."""

    def evaluate_options(self, root: Path) -> list[str]:
        """As the source; its references come with it."""
        return ["--source", str(located(root, self.file))]


class Task(ABC):
    """One kind of input and output: a recipe's [task] and [data], with the columns.

    A task states `Config`, `Data`, `kinds`, `learn_columns`, `open`, `objective` and `predictor`; everything else has a
    default here. `TextTask` and `LabelTask` have an objective and a predictor.
    """

    def __init__(self, config: Any, data: Any, columns: Columns) -> None:
        self.config, self.data, self.columns = config, data, columns
        self.ngrams: KneserNey | None = None  # a language model of the targets, for `search.lm_weight`
        self.root = Path(getattr(data, "root", "."))

    @classmethod
    def of_model(cls, model: Any) -> "type[Task]":
        """The task as this kind of model does it, of which this is the [model] of a recipe: mostly itself."""
        return cls

    # ---- data: columns in and out, reading, examples ----

    Config: ClassVar[Any]
    """The recipe's [task]. Its keys `metrics` and `target`, a language code, are read by `tallies`."""
    Data: ClassVar[Any]
    """The recipe's [data]."""
    kinds: ClassVar[dict[str, str]]
    """Of the columns: {"source": "tokens", "target": "label"}, without "source" where there is none."""
    default_model: ClassVar[str] = "transformer"
    """The kind of model of a recipe whose [model] names none."""
    columns_version: ClassVar[int] = 1
    """Raised whenever `learn_columns` learns something else from the same data; what a cache holds is then not used."""
    never_split: ClassVar[bool] = False
    """Whether an input is always read as one, however many sentences it has and however long it is."""
    of_sentences: ClassVar[bool] = False
    """Whether examples are taken to be single sentences where a model file does not say what they were."""

    @classmethod
    @abstractmethod
    def learn_columns(cls, config: TokenizerConfig, data: Any) -> Columns:
        """Learn what the recipe asks for from the training data, or open the tokenizer that it names."""

    @staticmethod
    def training_files(data: Any) -> list[Path]:
        """What the columns are learnt from: all files that `data.train` names."""
        root = Path(data.root)
        return [path for files in shards_of(data.train, root) for path in files.paths(root)]

    @staticmethod
    def fingerprints(data: Any) -> dict[str, Any] | None:
        """What `open` notes of the files, by which a finished run knows its data again; None = it does not look.

        Raises:
            InputError: files are gone.
        """
        return None

    @staticmethod
    def pairs(data: Any) -> PairData | None:
        """[data] where it names pairs of texts, which can be counted and examined; None = other examples."""
        return data if isinstance(data, PairData) else None

    @staticmethod
    def recordings(data: Any) -> Recordings | None:
        """The recordings that [data] names, which can be examined; None = other examples."""
        return None

    @staticmethod
    def labelled(data: Any) -> LabelledFiles | None:
        """The texts with labels that [data] names, which can be examined; None = other examples."""
        return None

    @abstractmethod
    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files, or find them in the cache."""

    def read_inputs(self, path: Path) -> InputFile | None:
        """The inputs in a file of the task's own format; None where the file has one a line."""
        return None

    def check_examples(self, model: nn.Module, data: TaskData) -> None:
        """Asked once, before training.

        Raises:
            InputError: the files hold examples that this model cannot read; it names file and line.
        """
        return

    def advise(self, data: TaskData, search: Search) -> list[str]:
        """Asked once, before training: a sentence for each setting that does not suit the examples."""
        return []

    @property
    def held_out(self) -> dict[str, Any]:
        """The files that are not trained on, by the names of their sets, validation's among them."""
        return {name: files for name, files in {"validation": self.data.validation, **self.data.test}.items() if files}

    @property
    def languages(self) -> tuple[str, str]:
        """Codes of the languages of inputs and outputs, the keys `source` and `target` of [task]; "" = nobody said."""
        source, target = (str(getattr(self.config, side, None) or "") for side in ("source", "target"))
        return source, target

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        """Of those columns that are text, by their names."""
        return tokenizers_of(self.columns)

    @property
    def specs(self) -> Specs:
        """What a model is built for."""
        source, target = self.columns.get("source"), self.columns["target"]
        return Specs(source.spec if source else None, target.spec, self._joint)

    @cached_property
    def _joint(self) -> bool | None:
        return one_vocabulary(self.columns)

    @property
    def max_source_length(self) -> int:
        """The most input tokens that training showed the model: what `data.filters` let through, or any number.

        No more than it has positions for.
        """
        filters, source = getattr(self.data, "filters", None), self.columns.get("source")
        most = filters.max_tokens if filters else ANY_LENGTH
        room = source.room if source else None
        return most if room is None else min(most, room)

    # ---- learning ----

    @abstractmethod
    def objective(self, model: nn.Module, config: "LossConfig | None" = None) -> "Objective":
        """What training minimizes, and how probable targets are.

        Args:
            config: the recipe's [training]; None = without regularization.

        Raises:
            InputError: this model, or this setting, is not for this task.
        """

    # ---- predicting and judging ----

    exposure_bias: ClassVar[bool] = False
    """Whether it is reported unless the recipe says otherwise; see `transduce.metrics.exposure`."""
    any_output: ClassVar[str] = "."
    """One that its metrics can read: for learning whether there are such metrics."""

    @property
    @abstractmethod
    def predictor(self) -> Predictor:
        """What turns texts into predictions."""

    @property
    def context(self) -> str:
        """What a held-out token's likelihood sees, in words: no perplexity without it."""
        return "the input"

    def can_answer(self, text: str) -> bool:
        """Whether a model may say this at all. References that none can say have no likelihood, and outputs for them
        are wrong."""
        return True

    def evaluate(
        self, hypotheses: Sequence[str], references: "References", names: Sequence[str] | None = None
    ) -> "dict[str, Score]":
        """The metrics `names`, by default the recipe's, over decoded texts; each has a reference or several."""
        return {name: tally.score() for name, tally in self.tallies(hypotheses, references, names).items()}

    def tallies(
        self,
        hypotheses: Sequence[str],
        references: "References",
        names: Sequence[str] | None = None,
        language: str | None = None,
    ) -> "dict[str, Tally]":
        """What these metrics count, sentence by sentence: for comparing two systems.

        Nothing in a task without `metrics`, which is judged by likelihood.

        Args:
            language: the target's code, in the place of the recipe's.
        """
        if not hasattr(self.config, "metrics"):
            return {}
        from transduce.metrics.evaluate import tallies  # late: predicting needs no metrics

        wanted = self.config.metrics if names is None else names
        language = language or self.languages[1] or None
        return dict(zip(wanted, tallies(wanted, hypotheses, references, language), strict=True))

    def costs(self, log_probabilities: Sequence[float]) -> "dict[str, Tally]":
        """Figures besides perplexity that follow from the log-probability of each held-out example, in nats."""
        return {}

    def confusion(self, hypotheses: Sequence[str], references: "References") -> "Confusion | None":
        """Which labels were taken for which; None for a task whose outputs are no labels."""
        return None

    def baseline(self, data: TaskData, tell: Tell) -> Baseline | None:
        """A simple system trained on `data.corpora`, when the model's training has ended; None: there is none.

        It chooses nothing by the tests, depends on no seed, and takes seconds. `tell` may say how it was trained.
        """
        return None

    # ---- showing ----

    drawing: ClassVar[str] = ""
    """The file in `interpret` whose class is a `transduce.interpret.drawings.Drawing`; "" = the text says all."""
    drawn_alone: ClassVar[bool] = False
    """The drawing is all that the explorer shows, as what is read or written is no text, or no single one."""
    drawn_at_terminals: ClassVar[bool] = False
    """At a terminal, `transduce predict` shows the drawing in the place of the text."""
    explorable: ClassVar[bool] = True
    """Whether `transduce explore` is worth naming as the next command."""


class LabelTask(Task):
    """One whose output is one of C labels, or several of them, by a model that `Classifies`."""

    @property
    def label_names(self) -> list[str]:
        """In the order of their ids."""
        labels = self.columns["target"]
        return labels.tokens(range(labels.spec.size))

    @property
    def predictor(self) -> Predictor:
        """The likeliest label."""
        return LabelPredictor(self.columns)

    def objective(self, model: nn.Module, config: "LossConfig | None" = None) -> "Objective":
        """Cross-entropy.

        Raises:
            InputError: the model gives no labels; R-Drop or sampled words.
        """
        from transduce.objectives.label import LabelCrossEntropy  # late: predicting needs no loss

        check_model(model, isinstance(model, Classifies), "classify; expected a model that does", config)
        return LabelCrossEntropy(config.label_smoothing) if config else LabelCrossEntropy()

    @staticmethod
    def stored_examples(stores: Iterable[Store]) -> tuple[list[Any], NDArray[np.int64]]:
        """The stored source and the label's id of every example, for baselines of one label each."""
        sources, labels = list[Any](), list[NDArray[np.int64]]()
        for store in stores:
            every = np.arange(len(store))
            sources += store.read("source", every)
            labels.append(np.concatenate(store.read("target", every)).astype(np.int64))
        return sources, np.concatenate(labels)

    def confusion(self, hypotheses: Sequence[str], references: "References") -> "Confusion | None":
        """Of all labels that the model knows, in their order."""
        from transduce.metrics.confusion import Confusion

        return Confusion.of(hypotheses, references, self.label_names)

    def tell_of_rare(self, counts: Mapping[str, int], path: Path, tell: Tell) -> None:
        """Tells which labels only one example of training has: often what is no label, such as a part of a text."""
        once = sorted(label for label, count in counts.items() if count == 1)
        if once:
            named = quoted(once, NAMED, SHOWN)
            what = "1 label has" if len(once) == 1 else f"{len(once):,} labels have"
            tell(f"{path}: {what} one example in training, which teaches next to nothing ({named}). Is it meant?")


class TextTask(Task):
    """One whose output is text: found by search, trained on as its model writes."""

    @property
    def start(self) -> int:
        """The id before the first target token."""
        return self._written.start

    @property
    def end(self) -> int:
        """The id that ends an output."""
        return self._written.end

    @abstractmethod
    def request(self, ids: Any, search: Search) -> Request:
        """What search needs to know of one input, of which these are the ids: of its source, or of its prompt."""

    def advise(self, data: TaskData, search: Search) -> list[str]:
        """Of tokens from tokens: whether an output may be as long as the targets for validation are."""
        from_tokens = self.kinds == {"source": "tokens", "target": "tokens"}
        return too_long(data.validation.store, search) if data.validation and from_tokens else []

    def grammar_for(self, request: Request, text: str) -> Request:
        """Any output will do."""
        return request

    def postprocess(self, prediction: Prediction) -> Prediction:
        """The text itself."""
        return prediction

    @property
    def predictor(self) -> Predictor:
        """Search."""
        return SearchPredictor(self)

    def count_ngrams(self, data: TaskData, tell: Tell) -> KneserNey:
        """A language model of the training targets, of the first `MOST_TOKENS` tokens of them."""
        tokens = np.concatenate([*self._lines(data)])
        counted = tokens[:MOST_TOKENS]
        every = "" if len(counted) == len(tokens) else "the first "
        tell(f"n-grams: counted on {every}{len(counted):,} tokens of the training targets.")
        return KneserNey.of(counted, self._written.spec.size, self.end)

    def _lines(self, data: TaskData) -> Iterator[NDArray[np.int64]]:
        """The training targets, each with the end behind it, until there are more than `MOST_TOKENS` tokens."""
        count = 0
        for store, _ in data.corpora[:: data.cuts]:
            for first in range(0, len(store), ROWS):
                for row in store.read("target", np.arange(first, min(first + ROWS, len(store)))):
                    yield np.append(row[~np.isin(row, (self.start, self.end))], self.end).astype(np.int64)
                    count += len(row) + 1
                if count > MOST_TOKENS:
                    return

    def objective(self, model: nn.Module, config: "LossConfig | None" = None) -> "Objective":
        """By how the model writes."""
        from transduce.objectives.text import text_objective  # late: predicting needs no loss

        return text_objective(model, config)

    @property
    def _written(self) -> Tokens:
        target = self.columns["target"]
        assert isinstance(target, Tokens)
        return target


def check_model(
    model: nn.Module, fits: bool, ability: str, config: "LossConfig | None", more: Sequence[str] = ()
) -> None:
    """Raises InputError for a model that does not do what is wanted, for R-Drop or sampled words, and for `more`."""
    problems = [] if fits else [f"[model] kind: {type(model).__name__} does not {ability}."]
    if config and (config.r_drop or config.sampled_words is not None):
        problems.append("training: r_drop and sampled_words are for models that write text. Leave them out.")
    if problems := [*problems, *more]:
        raise InputError(problems)


def named_files(data: Any) -> dict[str, Any]:
    """`Task.fingerprints` of a task whose `open` notes the `provenance` of all files that [data] names."""
    root, held_out = Path(data.root), {"validation": data.validation, **data.test}
    return provenance(shards_of(data.train, root), held_out, root)


def task_class(recipe: Recipe) -> type[Task]:
    """The class of the recipe's task and model. Raises InputError as `transduce.core.registry.resolve`."""
    found: type[Task] = resolve("tasks", recipe.task.kind)  # type: ignore[attr-defined]
    return found.of_model(recipe.model)


def pairs_of(recipe: Recipe) -> PairData | None:
    """The pairs of texts that the recipe names; None = its task has other examples."""
    return task_class(recipe).pairs(recipe.data)
