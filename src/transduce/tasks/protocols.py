"""What a task binds together, so that training, prediction and the command line need not know which task it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from torch import nn

from transduce.core.errors import InputError
from transduce.data.batches import BatchConfig, Batches, BatchPlan
from transduce.data.columns import Columns, Specs
from transduce.data.input_file import InputFile
from transduce.data.store import Store
from transduce.data.stream_batches import StreamBatches
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig
from transduce.inference.protocols import Predictor

if TYPE_CHECKING:
    from transduce.metrics.confusion import Confusion
    from transduce.metrics.score import References, Score
    from transduce.metrics.tally import Tally
    from transduce.objectives.protocols import Objective
    from transduce.objectives.text import LossConfig

Tell = Callable[[str], None]  # tells the user one line


@dataclass(frozen=True)
class Dataset:
    """Held-out examples.

    store: encoded, for their likelihood.
    texts: inputs and references, for decoding; empty for a task that is judged by likelihood alone.
    several: all references of each, where some have more than one, the one in `texts` first.
    groups: what each of `texts` belongs to, such as one of several tasks, for a table of scores; none: to nothing.
    language: code of the references' language, where a model writes several; None: the recipe's.
    languages: that of each of `texts`, where they are not all of one.
    """

    store: Store
    texts: list[tuple[str, str]] = field(default_factory=list)
    several: list[list[str]] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    language: str | None = None
    languages: list[str | None] = field(default_factory=list)

    @property
    def references(self) -> list[list[str]]:
        """All references of each of `texts`."""
        return self.several or [[reference] for _, reference in self.texts]


@dataclass(frozen=True)
class TaskData:
    """Everything that a training reads.

    corpora: each with its weight.
    validation: None when the recipe names no validation files.
    tests: by name.
    provenance: fingerprints and counts by file, for the model file.
    window: tokens of a row where training reads one running text in order, as parallel streams (`StreamBatches`); None:
        examples are shuffled.
    cuts: so many of `corpora` in a row hold the same examples, cut into tokens in different ways.
    drawn: the batches of a training with this seed, of a task that does not cut them by length, as where examples are
        generated.
    """

    corpora: list[tuple[Store, float]]
    validation: Dataset | None
    tests: dict[str, Dataset]
    provenance: dict[str, Any]
    window: int | None = None
    cuts: int = 1
    drawn: Callable[[int], BatchPlan] | None = None

    def batches(self, config: BatchConfig, seed: int) -> BatchPlan:
        """Which examples go into which batch of a training.

        Raises:
            InputError: the settings do not suit the data.
        """
        if self.drawn is not None:
            return self.drawn(seed)
        if self.window is None:
            return Batches(self.corpora, config, seed, self.cuts)
        if config.tokens == "auto" or len(self.corpora) > 1:
            raise InputError("parallel streams: expected one text, and a number as batch.tokens.")
        return StreamBatches(self.corpora[0][0], config.tokens // self.window)


@dataclass(frozen=True)
class Baseline:
    """A simple system, trained on the same files as the model, whose test scores are shown beside the model's.

    name: what tables call it, such as "bag of n-grams".
    predict: inputs to outputs, in their order, as the task's metrics take them.
    settings: what one needs to train it again, ready for JSON.
    """

    name: str
    predict: Callable[[Sequence[str]], Sequence[str]]
    settings: dict[str, Any] = field(default_factory=dict)


class Task(Protocol):
    """One kind of input and output: everything that depends on it is asked here."""

    Config: ClassVar[Any]
    Data: ClassVar[Any]
    kinds: ClassVar[dict[str, str]]
    """Of the columns: {"source": "tokens", "target": "label"}, without "source" where there is none."""
    whole: ClassVar[bool]
    """Whether an input is always read as one, however many sentences it has and however long it is."""
    drawing: ClassVar[str]
    """The file in `interpret` whose class is a `transduce.interpret.drawings.Drawing`; "" = the text says all."""
    drawn_alone: ClassVar[bool]
    """The drawing is all that the explorer shows, as what is read or written is no text."""
    columns_version: ClassVar[int]
    """Raised whenever `learn_columns` learns something else from the same data; what a cache holds is then not used."""
    exposure_bias: ClassVar[bool]
    """Whether it is reported unless the recipe says otherwise; see `transduce.metrics.exposure`."""
    any_output: ClassVar[str]
    """One that its metrics can read: for learning whether there are such metrics."""
    columns: Columns

    def __init__(self, config: Any, data: Any, columns: Columns) -> None: ...

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: Any) -> Columns:
        """Learn what the recipe asks for from the training data, or open the tokenizer that it names."""
        ...

    @staticmethod
    def training_files(data: Any) -> list[Path]:
        """What the columns are learnt from."""
        ...

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        """Of those columns that are text, by their names."""
        ...

    @property
    def specs(self) -> Specs:
        """What a model is built for."""
        ...

    @property
    def predictor(self) -> Predictor:
        """What turns texts into predictions."""
        ...

    def objective(self, model: nn.Module, config: "LossConfig | None" = None) -> "Objective":
        """What training minimises, and how probable targets are.

        Args:
            config: the recipe's [training]; None = without regularisation.

        Raises:
            InputError: this model, or this setting, is not for this task.
        """
        ...

    @property
    def readable(self) -> int:
        """The most input tokens that training showed the model."""
        ...

    @property
    def context(self) -> str:
        """What a held-out token's likelihood sees, in words: no perplexity without it."""
        ...

    def read_inputs(self, path: Path) -> InputFile | None:
        """The inputs in a file of the task's own format; None where the file has one a line."""
        ...

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files, or find them in the cache."""
        ...

    def can_answer(self, text: str) -> bool:
        """Whether a model may say this at all. References that none can say have no likelihood, and outputs for them
        are wrong."""
        ...

    def check_examples(self, model: nn.Module, data: TaskData) -> None:
        """Asked once, before training.

        Raises:
            InputError: the files hold examples that this model cannot read; it names file and line.
        """
        ...

    def evaluate(
        self, hypotheses: Sequence[str], references: "References", names: Sequence[str] | None = None
    ) -> "dict[str, Score]":
        """The metrics `names`, by default the recipe's, over decoded texts; each has a reference or several."""
        ...

    def tallies(
        self,
        hypotheses: Sequence[str],
        references: "References",
        names: Sequence[str] | None = None,
        language: str | None = None,
    ) -> "dict[str, Tally]":
        """What these metrics count, sentence by sentence: for comparing two systems.

        Args:
            language: the target's code, in the place of the recipe's.
        """
        ...

    def confusion(self, hypotheses: Sequence[str], references: "References") -> "Confusion | None":
        """Which labels were taken for which; None for a task whose outputs are no labels."""
        ...

    def baseline(self, data: TaskData, tell: Tell) -> Baseline | None:
        """A simple system trained on `data.corpora`, when the model's training has ended; None: there is none.

        It chooses nothing by the tests, depends on no seed, and takes seconds. `tell` may say how it was trained.
        """
        ...
