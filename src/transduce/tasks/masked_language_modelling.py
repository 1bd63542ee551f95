"""Text alone, of which a model predicts hidden words: pretraining for every task that reads text."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field
from torch import nn

from transduce.core.config import Config
from transduce.data.columns import Columns
from transduce.data.columns.masked_text import MaskedText
from transduce.data.columns.tokens import Tokens
from transduce.data.corpus import TextFile, provenance, read_text, train_text_tokenizer
from transduce.data.encoding import open_rows
from transduce.data.shards import grouped_shards, shards_of
from transduce.data.store import Store
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.inference.masked_words import MaskedWordPredictor
from transduce.models.protocols import PredictsMasked
from transduce.objectives.masked_words import MaskedWords
from transduce.objectives.text import LossConfig
from transduce.tasks.base import Task, check_model, named_files
from transduce.tasks.language_modelling import LanguageModellingData
from transduce.tasks.protocols import Dataset, TaskData, Tell

CHUNK = 1000  # lines that are encoded at once


class MaskedLanguageModellingConfig(Config):
    """How long rows are, and how many of their words are hidden."""

    kind: Literal["masked_language_modelling"] = "masked_language_modelling"
    context: int = Field(default=128, ge=2)
    """Tokens in a row of text; a longer line is cut into several."""
    mask_rate: float = Field(default=0.15, gt=0, lt=1)
    """Share of a row's words that training hides."""
    language: str = ""
    """Language code of the text, such as en."""


class MaskedLanguageModelling(Task):
    """A text with masks -> the text without, by a model that `PredictsMasked`."""

    Config = MaskedLanguageModellingConfig
    Data = LanguageModellingData
    kinds: ClassVar[dict[str, str]] = {"source": "masked_text", "target": "tokens"}
    default_model = "masked_language_model"
    never_split = True
    fingerprints = staticmethod(named_files)

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: LanguageModellingData) -> Columns:
        """One tokenizer, from the training text, with a token for what is hidden."""
        root = Path(data.root)
        reads = MaskedText.of(train_text_tokenizer(config, shards_of(data.train, root), root))
        return {"source": reads, "target": Tokens(reads.tokenizer, ends=True)}

    @property
    def languages(self) -> tuple[str, str]:
        """Twice that of the text."""
        return self.config.language, self.config.language

    @property
    def max_source_length(self) -> int:
        """The context."""
        context: int = self.config.context
        return context

    @property
    def context(self) -> str:
        """What a hidden word is predicted from."""
        return f"the other words of rows of {self.config.context} tokens, of which a seventh is hidden at a time"

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files as rows of `context` tokens at most, or find them in the cache."""
        groups = grouped_shards(self.data.train, self.root)
        corpora: list[tuple[Store, float]] = []
        for entry, group in zip(self.data.train, groups, strict=True):
            stores = [self._store(file, cache) for file in group]
            tokens = sum(store.metadata["predicted"] for store in stores)
            tell(f"{entry.text}: {tokens:,} tokens in {sum(map(len, stores)):,} rows.")
            corpora += [(store, entry.weight) for store in stores]
        validation = Dataset(self._store(self.data.validation, cache)) if self.data.validation else None
        tests = {name: Dataset(self._store(file, cache)) for name, file in self.data.test.items()}
        train = [file for group in groups for file in group]
        return TaskData(corpora, validation, tests, provenance(train, self.held_out, self.root))

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> MaskedWords:
        """Cross-entropy of hidden words. Raises InputError for a model that predicts none."""
        check_model(
            model, isinstance(model, PredictsMasked), "predict hidden words; expected a model that does", config
        )
        tokenizer = self.tokenizers["source"]
        ordinary = tuple(sorted(set(range(tokenizer.size)) - set(tokenizer.special.values())))
        smoothing = config.label_smoothing if config else 0.0
        return MaskedWords(tokenizer.mask, ordinary, self.config.mask_rate, smoothing)

    @property
    def predictor(self) -> MaskedWordPredictor:
        """The likeliest word in the place of each mask."""
        return MaskedWordPredictor(self.columns)

    def _store(self, file: TextFile, cache: Path) -> Store:
        settings = {"context": self.config.context, "unit": file.unit, "part": file.part, "column": file.column}
        read = partial(self._rows, file)
        return open_rows(file.paths(self.root), read, self.columns, cache, {"masked": True, **settings})

    def _rows(self, file: TextFile, metadata: dict[str, Any]) -> Iterator[dict[str, list[int]]]:
        """Rows of one line each, cut where it is longer than the context; in running text they go on over lines."""
        reads, width = self.columns["source"], self.config.context
        assert isinstance(reads, MaskedText)
        metadata |= {"predicted": 0, "unknown": {"source": 0, "target": 0}}
        lines = (reads.encode_plain([line])[0] for line in read_text(file, self.root))
        for row in _windows(lines, width, running=file.unit == "stream"):
            pieces = reads.pieces_of(row)
            first = pieces[0] + reads.tokenizer.size  # a word that is cut goes on as a word of its own
            metadata["predicted"] += len(row)
            metadata["unknown"]["target"] += pieces.count(reads.tokenizer.unknown)
            yield {"source": [first, *row[1:]], "target": pieces}


def _windows(lines: Iterator[list[int]], width: int, running: bool) -> Iterator[list[int]]:
    """Rows of at most `width` ids, none of them empty."""
    row: list[int] = []
    for line in lines:
        row += line
        while len(row) >= width:
            yield row[:width]
            row = row[width:]
        if row and not running:
            yield row
            row = []
    if row:
        yield row
