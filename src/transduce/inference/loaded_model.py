"""A model ready for use, as commands and bulk jobs see it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from transduce.data.source_columns import SourceColumns
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.inference.familiarity import Familiarity
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import Prediction

if TYPE_CHECKING:
    from transduce.data.input_file import InputFile


class LoadedModel(Protocol):
    """A model ready for use, whatever computes: `Pipeline` with torch, `Translator` with the kernels alone.

    familiarity: which characters it was trained on. source_columns: what it reads of a line with several.
    """

    familiarity: Familiarity
    source_columns: SourceColumns

    @property
    def config(self) -> Mapping[str, Any]:
        """Its recipe."""
        ...

    @property
    def source_tokenizer(self) -> Tokenizer | None:
        """What it reads with; None = it reads no text but its own."""
        ...

    def predict_all(self, texts: Sequence[str], options: PredictionOptions) -> list[Prediction]:
        """One a text, in their order. Raises InputError for what it cannot do."""
        ...


@runtime_checkable
class ReadsInputs(Protocol):
    """A model whose task knows formats of its inputs."""

    def read_inputs(self, path: Path) -> "InputFile | None":
        """What a file in a format of its task holds; None: the file has an input a line."""
        ...
