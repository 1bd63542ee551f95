"""What tasks have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torch import nn

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.columns import Columns, Specs
from transduce.data.columns.packed import one_vocabulary, tokenizers_of
from transduce.data.columns.tokens import Tokens
from transduce.data.input_file import InputFile
from transduce.data.remote import located
from transduce.data.shards import shards_of
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.inference.decode import SearchPredictor
from transduce.inference.prediction import Prediction
from transduce.inference.protocols import Predictor
from transduce.models.protocols import Classifies
from transduce.search.request import Request
from transduce.search.settings import Search
from transduce.tasks.protocols import Baseline, TaskData, Tell

NAMED, SHOWN = 5, 40  # labels in a message, and characters of each

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
        """The file as an option of `transduce evaluate`."""
        return ["--source", str(located(root, self.file))]


class BaseTask:
    """A recipe's [task] and [data], with the columns.

    whole: an input is always read as one, however many sentences it has and however long it is.
    drawing: the file in `interpret` whose class draws a prediction; "" = its text says all.
    drawn_alone: the drawing is all that the explorer shows, as what is read or written is no text, or no single one.
    columns_version: raised whenever `learn_columns` learns something else from the same data.
    exposure_bias: it is reported unless the recipe says otherwise (`training.exposure_bias`).
    any_output: one that its metrics can read.
    """

    whole: ClassVar[bool] = False
    drawing: ClassVar[str] = ""
    drawn_alone: ClassVar[bool] = False
    columns_version: ClassVar[int] = 1
    exposure_bias: ClassVar[bool] = False
    any_output: ClassVar[str] = "."

    def __init__(self, config: Any, data: Any, columns: Columns) -> None:
        self.config, self.data, self.columns = config, data, columns
        self.root = Path(getattr(data, "root", "."))

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        """Of those columns that are text."""
        return tokenizers_of(self.columns)

    @property
    def specs(self) -> Specs:
        """Of the columns."""
        source, target = self.columns.get("source"), self.columns["target"]
        return Specs(source.spec if source else None, target.spec, self._joint)

    @cached_property
    def _joint(self) -> bool | None:
        return one_vocabulary(self.columns)

    @property
    def held_out(self) -> dict[str, Any]:
        """The files that are not trained on, by the names of their sets, validation's among them."""
        return {name: files for name, files in {"validation": self.data.validation, **self.data.test}.items() if files}

    @staticmethod
    def training_files(data: Any) -> list[Path]:
        """What the columns are learnt from: all that `data.train` names."""
        root = Path(data.root)
        return [path for files in shards_of(data.train, root) for path in files.paths(root)]

    def read_inputs(self, path: Path) -> InputFile | None:
        """None: inputs come one a line."""
        return None

    def check_examples(self, model: nn.Module, data: TaskData) -> None:
        """Nothing: models read all that the columns can say."""

    def evaluate(
        self, hypotheses: Sequence[str], references: "References", names: Sequence[str] | None = None
    ) -> "dict[str, Score]":
        """The metrics `names`, by default the recipe's."""
        return {name: tally.score() for name, tally in self.tallies(hypotheses, references, names).items()}

    def tallies(
        self,
        hypotheses: Sequence[str],
        references: "References",
        names: Sequence[str] | None = None,
        language: str | None = None,
    ) -> "dict[str, Tally]":
        """What the metrics count; nothing in a task without metrics, which is judged by likelihood."""
        if not hasattr(self.config, "metrics"):
            return {}
        from transduce.metrics.evaluate import tallies  # late: predicting needs no metrics

        wanted = self.config.metrics if names is None else names
        language = language or getattr(self.config, "target", None) or None
        return dict(zip(wanted, tallies(wanted, hypotheses, references, language), strict=True))

    def can_answer(self, text: str) -> bool:
        """Yes: what cannot be an answer is an error in the file."""
        return True

    def confusion(self, hypotheses: Sequence[str], references: "References") -> "Confusion | None":
        """None: outputs are no labels."""
        return None

    def baseline(self, data: TaskData, tell: Tell) -> Baseline | None:
        """None."""
        return None


class LabelTask(BaseTask):
    """One whose output is one of C labels, or several of them, by a model that `Classifies`."""

    @property
    def label_names(self) -> list[str]:
        """In the order of their ids."""
        labels = self.columns["target"]
        return labels.tokens(range(labels.spec.size))

    def objective(self, model: nn.Module, config: "LossConfig | None" = None) -> "Objective":
        """Cross-entropy.

        Raises:
            InputError: the model gives no labels; R-Drop or sampled words.
        """
        from transduce.objectives.label import LabelCrossEntropy  # late: predicting needs no loss

        check_model(model, isinstance(model, Classifies), "classify; expected a model that does", config)
        return LabelCrossEntropy(config.label_smoothing) if config else LabelCrossEntropy()

    def confusion(self, hypotheses: Sequence[str], references: "References") -> "Confusion | None":
        """Of all labels that the model knows, in their order."""
        from transduce.metrics.confusion import Confusion

        return Confusion.of(hypotheses, references, self.label_names)

    def tell_of_rare(self, counts: Mapping[str, int], path: Path, tell: Tell) -> None:
        """Tells which labels only one example of training has: often what is no label, such as a part of a text."""
        once = sorted(label for label, count in counts.items() if count == 1)
        if once:
            named = ", ".join(f'"{label[:SHOWN]}"' for label in once[:NAMED]) + (", …" if len(once) > NAMED else "")
            what = "1 label has" if len(once) == 1 else f"{len(once):,} labels have"
            tell(f"{path}: {what} one example in training, which teaches next to nothing ({named}). Is it meant?")


class TextTask(BaseTask, ABC):
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

    def formed(self, request: Request, text: str) -> Request:
        """Any output will do."""
        return request

    def read_back(self, prediction: Prediction) -> Prediction:
        """The text itself."""
        return prediction

    @property
    def predictor(self) -> Predictor:
        """Search."""
        return SearchPredictor(self)

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
    model: nn.Module, fits: bool, wanted: str, config: "LossConfig | None", more: Sequence[str] = ()
) -> None:
    """Raises InputError for a model that does not do what is wanted, for R-Drop or sampled words, and for `more`."""
    problems = [] if fits else [f"[model] kind: {type(model).__name__} does not {wanted}."]
    if config and (config.r_drop or config.sampled_words is not None):
        problems.append("training: r_drop and sampled_words are for models that write text. Leave them out.")
    if problems := [*problems, *more]:
        raise InputError(problems)
