"""A text in, one vector out: by an encoder that was trained elsewhere, and that trainings of other tasks start from."""

from pathlib import Path
from typing import Any, ClassVar, Literal, NoReturn

from pydantic import Field
from torch import nn

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.filters import FilterConfig
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.inference.embeddings import EmbeddingPredictor
from transduce.objectives.text import LossConfig
from transduce.tasks.base import ExampleFile, Task
from transduce.tasks.protocols import TaskData, Tell

NO_TRAINING = (
    'task.kind = "text_encoding" is that of encoders that were trained elsewhere, and is not trained here; expected '
    'another task that starts from one, such as "classification" with training.start = "MODEL".'
)


class TextEncodingConfig(Config):
    """Nothing is to be set."""

    kind: Literal["text_encoding"] = "text_encoding"
    language: str = ""
    """Language code of the texts, such as en."""


class TextEncodingData(Config):
    """No files: nothing is trained."""

    root: str = "."
    """Where files lie."""
    train: tuple[ExampleFile, ...] = ()
    """None."""
    validation: ExampleFile | None = None
    """None."""
    test: dict[str, ExampleFile] = Field(default_factory=dict)
    """None."""
    filters: FilterConfig = FilterConfig(max_ratio=1_000_000)
    """max_tokens: the longest text that the model reads."""


class TextEncoding(Task):
    """A text -> a vector, by a model that `Embeds`."""

    Config = TextEncodingConfig
    Data = TextEncodingData
    kinds: ClassVar[dict[str, str]] = {"source": "tokens", "target": "text_vector"}
    default_model = "sentence_encoder"
    never_split = True

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: Any) -> NoReturn:
        """Raises InputError: nothing is trained."""
        raise InputError(NO_TRAINING)

    @staticmethod
    def training_files(data: Any) -> list[Path]:
        """None."""
        return []

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Raises InputError: nothing is trained."""
        raise InputError(NO_TRAINING)

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> NoReturn:
        """Raises InputError: a vector has no likelihood."""
        raise InputError(NO_TRAINING if config else "a text's vector has no likelihood.")

    @property
    def predictor(self) -> EmbeddingPredictor:
        """The vector of each text."""
        return EmbeddingPredictor(self.columns)
