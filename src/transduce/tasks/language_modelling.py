"""Text alone: how probable is it, and how does it go on. Decoder-only models."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from torch import nn

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.columns import Columns
from transduce.data.columns.tokens import Tokens
from transduce.data.corpus import TextFile, provenance, train_text_tokenizer
from transduce.data.encoding import open_text_store, text_store_key
from transduce.data.remote import located
from transduce.data.shards import grouped_shards, shards_of
from transduce.data.store import Store, is_cached
from transduce.data.tokenizers.right_to_left import RightToLeft
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.inference.likelihood import Likelihood
from transduce.models.protocols import Stateful
from transduce.objectives.next_token import CarriedNextToken, NextToken
from transduce.objectives.protocols import Objective
from transduce.objectives.text import LossConfig
from transduce.search.request import Request
from transduce.search.settings import Search
from transduce.tasks.base import TextTask, named_files
from transduce.tasks.encoding_processes import Encoding, opened
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell


class LanguageModellingConfig(Config):
    """How far back a prediction looks, in training and in perplexity."""

    kind: Literal["language_modelling"] = "language_modelling"
    context: int = Field(default=128, ge=2)
    """Tokens in a row of training text; rows do not overlap."""
    carry_state: bool = False
    """Read the text in order and carry the model's state from row to row: a recurrent state, or the keys and values of
    one row (with relative positions). A batch has batch.tokens / context parallel streams; gradients end at a row."""
    direction: Literal["left_to_right", "right_to_left"] = "left_to_right"
    """right_to_left: each line is learnt, and written, from its last token to its first. Outputs are shown as they are
    read, and a prompt is the end of a line."""
    baseline: bool = True
    """At the end, also test an n-gram model with Kneser-Ney smoothing, counted from the training files."""


class LanguageModellingData(Config):
    """The files of a language model; paths are relative to `root`, `root` to the working directory."""

    root: str = "."
    """Where the files lie."""
    train: tuple[TextFile, ...]
    """One text or several, each with its weight. A name with * or ? stands for all files that match."""
    workers: int | None = Field(default=None, ge=1)
    """How many processes encode files side by side. Unset: one a processor."""
    validation: TextFile | None = None
    """Picks the best weights."""
    test: dict[str, TextFile] = Field(default_factory=dict)
    """By name; measured once, at the end."""

    @model_validator(mode="after")
    def _has_training_text(self) -> Self:
        if not self.train:
            raise ValueError('name at least one training file: [[data.train]] text = "train.txt"')
        return self


class LanguageModelling(TextTask):
    """The end of a line is what stands before the next one: </s> both starts and ends a sentence."""

    Config = LanguageModellingConfig
    Data = LanguageModellingData
    kinds: ClassVar[dict[str, str]] = {"target": "tokens"}
    default_model = "transformer_decoder"
    fingerprints = staticmethod(named_files)

    def __init__(self, config: LanguageModellingConfig, data: LanguageModellingData, columns: Columns) -> None:
        target = columns["target"]
        if config.direction == "right_to_left" and isinstance(target, Tokens):
            columns = {"target": replace(target, tokenizer=RightToLeft(target.tokenizer))}
        super().__init__(config, data, columns)
        self.target = self.tokenizers["target"]

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: LanguageModellingData) -> Columns:
        """One tokenizer, from the training text; rows have no start and no end of their own."""
        return {
            "target": Tokens(
                train_text_tokenizer(config, shards_of(data.train, Path(data.root)), Path(data.root)), stream=True
            )
        }

    @property
    def max_source_length(self) -> int:
        """Half of the context: the other half is for the continuation. All of it where the text may go on behind it."""
        return self.config.context if self.config.carry_state else self.config.context // 2

    @property
    def context(self) -> str:
        """What a row holds."""
        if self.config.carry_state:
            return (
                f"all tokens before, by a state that is carried between rows of {self.config.context} (of keys and "
                "values, those of one row)"
            )
        return f"the tokens before in rows of {self.config.context} that do not overlap"

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Encode the recipe's files as rows of `context` predictions, or find them in the cache."""
        data = self.data
        groups = grouped_shards(data.train, self.root)
        train = [file for group in groups for file in group]
        if self.config.carry_state and len(train) > 1:
            raise InputError(
                f"task.carry_state reads one training text in order; {data.train[0].text} is {len(train)}."
            )
        stores = iter(opened([self._encoding(file, cache) for file in train], data.workers, tell))
        corpora: list[tuple[Store, float]] = []
        for entry, group in zip(data.train, groups, strict=True):
            found = list(islice(stores, len(group)))
            named = str(located(self.root, group[0].text)) if len(group) == 1 else f"{entry.text}: {len(group):,} files"
            tokens, rows = sum(each.metadata["predicted"] for each in found), sum(map(len, found))
            tell(f"{named}: {tokens:,} tokens in {rows:,} rows.")
            corpora += [(store, entry.weight) for store in found]
        validation = Dataset(self._store(data.validation, cache)) if data.validation else None
        tests = {name: Dataset(self._store(file, cache)) for name, file in data.test.items()}
        made_from = provenance(train, self.held_out, self.root)
        return TaskData(corpora, validation, tests, made_from, self.config.context if self.config.carry_state else None)

    def baseline(self, data: TaskData, tell: Tell) -> Baseline | None:
        """Counted n-grams with modified Kneser-Ney smoothing; none where lines begin with a token of their own."""
        from transduce.data.kneser_ney import MOST_TOKENS, ORDER, KneserNey

        if not self.config.baseline or self.start != self.end:
            return None
        rows = -(-MOST_TOKENS // self.config.context)
        tokens = np.concatenate([self._running_text(store, rows) for store, _ in data.corpora])[:MOST_TOKENS]
        model = KneserNey.of(tokens, self.target.size, self.target.end)

        def likelihood(store: Store) -> Likelihood:
            found = model.log_probabilities(self._running_text(store))
            return Likelihood(float(found.sum()), len(found))

        name = f"{ORDER}-grams, Kneser-Ney"
        return Baseline(name, None, {"order": ORDER, "tokens": len(tokens)}, likelihood)

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> Objective:
        """The next token's, with the state of the row before where it is carried."""
        plain = super().objective(model, config)
        if not self.config.carry_state:
            return plain
        if not isinstance(plain, NextToken) or not isinstance(model, Stateful):
            raise InputError(
                f"task.carry_state: {type(model).__name__} has no state that could be carried from one row to the next "
                "(see transduce.models.protocols.Stateful): leave it out, or use a recurrent or a Transformer decoder."
            )
        try:
            model.initial_state(1)
        except InputError as error:
            raise InputError(f"task.carry_state: {problem}" for problem in error.problems) from None
        return CarriedNextToken(plain.smoothing, sampled_words=plain.sampled_words, memory=self.config.context)

    def request(self, ids: Sequence[int], search: Search) -> Request:
        """The prompt is imposed; the output has at most the offset's tokens more, and stays within the context,
        beyond which a carried state reaches.
        """
        limit = len(ids) + search.max_length_offset
        if not self.config.carry_state:
            limit = min(limit, self.config.context)
        limit = max(limit, len(ids) + 1)
        return Request(limit, None, ids, len(ids) + search.min_length)

    @staticmethod
    def _running_text(store: Store, most: int | None = None) -> NDArray[np.int64]:
        """What the rows of a store predict, `most` of them at most; each begins with what the one before ends in."""
        rows = store.read("target", np.arange(len(store))[:most])
        return np.concatenate([row[1:] for row in rows]).astype(np.int64)

    def _encoding(self, file: TextFile, cache: Path) -> Encoding:
        context = self.config.context
        key = partial(text_store_key, file, self.root, self.target, context, self.start)
        return Encoding(lambda: is_cached(cache, key()), lambda: self._store(file, cache))

    def _store(self, file: TextFile, cache: Path) -> Store:
        if self.target.right_to_left and file.unit == "stream":
            raise InputError(
                f'{file.text}: task.direction = "right_to_left" reverses lines, and unit = "stream" has none: expected '
                'unit = "line".'
            )
        return open_text_store(file, self.root, self.target, self.config.context, cache, start=self.start)
