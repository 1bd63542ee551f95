"""The contract of a column: how what people write becomes ids, a store, a tensor, and text again.

Shapes: B examples of a batch, S positions, F features.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.core.registry import resolve
from transduce.data.speech.cutting import HeardPart
from transduce.data.store import Field, Ids

PROBED = 3  # tokens of a probe


class ColumnSpec(NamedTuple):
    """What a model needs to know of a column.

    kind: the name of its file in this folder.
    size: how many different ids it has: of a vocabulary, of a set of labels. Of frames, vectors and the nodes of
        graphs, how many numbers each has.
    characters: how many different characters its tokens are written with, padding included; 0 = models do not see them.
    ids: how many different ids a store holds, where they are more than `size`.
    words: of each label, its ids in the vocabulary of the source; () = they have none.
    separator: the id of the token between two texts that are read as one; -1 = there is none.
    follows: of C labels, which may stand behind which (C + 1, C + 1), as
        `transduce.data.structures.label_schemes.allowed_transitions` gives it; () = any may.
    tags: how many tags a word of a tree may have; 0 = words have none.
    """

    kind: str
    size: int
    characters: int = 0
    ids: int = 0
    words: tuple[tuple[int, ...], ...] = ()
    separator: int = -1
    follows: tuple[tuple[bool, ...], ...] = ()
    tags: int = 0


class TextCut(NamedTuple):
    """What a model read of a text that has more tokens than its positions.

    tokens: of the whole text. read: of these, how many were read. seen: the places [start, end) of what was read, among
        all tokens and those around them.
    """

    tokens: int
    read: int
    seen: tuple[tuple[int, int], ...]


class Specs(NamedTuple):
    """The columns that a model is built for.

    source: None for a task without a source.
    joint: whether the ids of both sides are of one vocabulary; None = if they are equally many.
    """

    source: ColumnSpec | None
    target: ColumnSpec
    joint: bool | None = None

    @classmethod
    def of_tokens(cls, source: int | None, target: int) -> Self:
        """Text in, or nothing, and text out: the sizes of their vocabularies."""
        return cls(None if source is None else ColumnSpec("tokens", source), ColumnSpec("tokens", target))

    @property
    def sizes(self) -> tuple[int | None, int]:
        """Of the vocabularies of source and target.

        Raises:
            InputError: a side is no text, such as frames, graphs or vectors.
        """
        for spec in (self.target, self.source):
            if spec is not None and (problem := column_class(spec.kind).without_tokens):
                raise InputError(f"[model] kind: this model {problem}.")
        return None if self.source is None else self.source.size, self.target.size

    @property
    def without_source(self) -> int:
        """The size of the target's vocabulary.

        Raises:
            InputError: there is a source, which a model that only continues texts would not see.
        """
        if self.source is not None and column_class(self.target.kind).is_text:
            raise InputError(
                "[model] kind: this model reads no source, and the task has one; expected a model of both, such as "
                '"transformer" or "rnn".'
            )
        return self.target.size

    @property
    def one_vocabulary(self) -> bool:
        """Whether an id means the same on both sides, so that embeddings can be shared and ids copied."""
        source, target = self.sizes
        return source == target and self.joint is not False


Encoded = list[int] | NDArray[np.float32]  # ids, or frames (S, F)


class Column(ABC):
    """One side of every example. What has no default here, each kind of column states."""

    kind: ClassVar[str]
    """The name of its file in this folder, or `my_file:MyColumn`."""
    is_text: ClassVar[bool] = False
    """Whether an output of this column is written token by token, by a model that may go on from a text."""
    length_unit: ClassVar[str] = "token"
    """What the length of an input is counted in."""
    likelihood_unit: ClassVar[str] = "token"
    """What of an output has a probability of its own."""
    positions_a_token: ClassVar[int] = 1
    """About how many positions of an input one token of the output stands for."""
    encoded_at_once: ClassVar[int] = 10_000
    """How many examples are encoded at once."""
    is_sound: ClassVar[bool] = False
    """Whether an input is a recording, whose text is the name of its file."""
    cuts: ClassVar[bool] = False
    """Whether a model reads the first tokens of a row that has more than it has positions for."""
    without_tokens: ClassVar[str] = ""
    """What a model of tokens is told: what it reads, what the task has, what is expected; "" = it can read this."""
    without_words: ClassVar[str] = ""
    """Why there is no attention between words to be shown; "" = there is."""

    @property
    @abstractmethod
    def spec(self) -> ColumnSpec:
        """What models are built from."""

    @property
    def stored(self) -> Field:
        """How a store holds a row."""
        return max(self.spec.size, self.spec.ids)

    @property
    def unknown(self) -> int:
        """The id that is counted as unknown; -1 where there is none, as what is unknown is an error."""
        return -1

    @property
    def probe(self) -> Encoded:
        """A row of which every model makes a few positions: for finding its attention."""
        return [0] * PROBED

    @property
    def room(self) -> int | None:
        """How many ids of a row a model has positions for; None = any number."""
        return None

    def limited(self, positions: int) -> "Column":
        """The column of a model that has so many positions."""
        return self

    def fitted(self, ids: Any) -> Any:
        """What of a row there is room for."""
        return ids

    def cut_of(self, ids: Any) -> TextCut | None:
        """What of a row is read where there is no room for all of it."""
        return None

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Sequence[Encoded]:
        """The ids of each, without start and end. Raises InputError for what cannot be one."""

    def encode_audio(self, texts: Sequence[str]) -> Sequence[Sequence[HeardPart]] | None:
        """The parts of each recording that a model hears at once, in order; None = an input is text, or is not cut.

        Raises:
            InputError: what cannot be read.
        """
        return None

    def refuse_unheard(self, texts: Sequence[str], parts: Sequence[Sequence[HeardPart]]) -> None:
        """Raises InputError for recordings with nothing to hear. parts: what `encode_audio` gave."""
        del texts, parts  # texts are read as they are

    def served(self, seconds: float | None, files: bool) -> Self:
        """As a server reads it: sound of so many seconds at most, or any; `files`: whether inputs may name files."""
        return self

    @abstractmethod
    def decode(self, ids: Sequence[int]) -> str:
        """The text again."""

    @abstractmethod
    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Each id as the text that stands for it."""

    @abstractmethod
    def ids(self, tokens: Sequence[str]) -> list[int]:
        """The other way round. Raises InputError for a token that there is none of."""

    @abstractmethod
    def collate(self, rows: Sequence[Ids]) -> Any:
        """Rows of a store as a model reads them: `Padded`, or one tensor with the batch on axis 0."""

    def collate_texts(self, rows: Sequence[Ids]) -> Any:
        """The same of what was encoded by itself: the rows of a stream are cut otherwise."""
        return self.collate(rows)

    def closed(self, ids: Any) -> Any:
        """Everything of one example that has a probability of its own: its ids, and the end token of a text."""
        return ids

    def covers(self, other: "Column") -> bool:
        """Whether it has everything that `other` has, so that a model of this column also suits the other's data."""
        return self.kind == other.kind and self.to_dict() == other.to_dict()

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """For the model file, beside `kind`; a tokenizer has a place of its own there."""

    @classmethod
    def drawn(cls, length: int, size: int, generator: torch.Generator) -> Any:
        """One random input of `length`, as a model of this column reads it: for measuring how time grows with it.

        Args:
            size: of the vocabulary, and of that of characters; or numbers of a frame, or of a node.
        """
        return random_tokens(length, size, generator)


Columns = Mapping[str, Column]  # "target", and "source" for a task that has one


def column_class(kind: str) -> type[Column]:
    """The class of a kind of column; of one's own, what all columns have in common."""
    found: type[Column] = Column if ":" in kind else resolve("data.columns", kind)
    return found


def random_vectors(length: int, size: int, generator: torch.Generator) -> Padded:
    """(1, S, F) random numbers."""
    return Padded(torch.randn(1, length, size, generator=generator), torch.tensor([length]))


def random_tokens(length: int, size: int, generator: torch.Generator) -> Padded:
    """(1, S) ids behind those of special tokens."""
    values_BS = torch.randint(4, size, (1, length), generator=generator)
    return Padded(values_BS, torch.tensor([length]))
