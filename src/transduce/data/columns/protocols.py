"""The contract of a column: how what people write becomes ids, a store, a tensor, and text again.

Shapes: B examples of a batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.data.store import Field, FloatRows, Ids


class ColumnSpec(NamedTuple):
    """What a model needs to know of a column.

    kind: the name of its file in this folder.
    size: how many different ids it has: of a vocabulary, of a set of labels. Of frames, vectors and the nodes of
        graphs, how many numbers each has.
    characters: how many different characters its tokens are written with, padding included; 0 = models do not see them.
    ids: how many different ids a store holds, where they are more than `size`.
    words: of each label, its ids in the vocabulary of the source; () = they have none.
    """

    kind: str
    size: int
    characters: int = 0
    ids: int = 0
    words: tuple[tuple[int, ...], ...] = ()

    @property
    def stored(self) -> Field:
        """How a store holds it."""
        if self.kind == "graph":
            return FloatRows(max(self.size, 2))  # an edge is two numbers
        if self.kind == "node":
            return 1 << 31  # its number
        return FloatRows(self.size) if self.kind in ("frames", "vectors") else max(self.size, self.ids)


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
            InputError: the source is frames or graphs, which have no vocabulary; or a side is vectors.
        """
        if "vectors" in (self.target.kind, self.source.kind if self.source else ""):
            raise InputError(
                "[model] kind: this model reads or writes tokens, and the task has vectors; expected "
                '"neural_turing_machine" or "vector_decoder".'
            )
        if self.source is not None and self.source.kind == "frames":
            raise InputError(
                '[model] kind: this model reads tokens, and the task gives it frames; expected "transformer", "rnn" or '
                '"ctc".'
            )
        if self.source is not None and self.source.kind in ("graph", "node"):
            raise InputError(
                "[model] kind: this model reads tokens, and the task gives it graphs; expected a model that attends "
                'along edges, such as "graph_attention".'
            )
        return None if self.source is None else self.source.size, self.target.size

    @property
    def without_source(self) -> int:
        """The size of the target's vocabulary.

        Raises:
            InputError: there is a source, which a model that only continues texts would not see.
        """
        if self.source is not None and self.target.kind in ("tokens", "trees"):
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


class Column(Protocol):
    """One side of every example."""

    kind: ClassVar[str]

    @property
    def spec(self) -> ColumnSpec:
        """What models are built from."""
        ...

    @property
    def unknown(self) -> int:
        """The id that is counted as unknown; -1 where there is none."""
        ...

    def encode(self, texts: Sequence[str]) -> Sequence[Encoded]:
        """The ids of each, without start and end. Raises InputError for what cannot be one."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """The text again."""
        ...

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Each id as the text that stands for it."""
        ...

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """The other way round. Raises InputError for a token that there is none of."""
        ...

    def collate(self, rows: Sequence[Ids]) -> Any:
        """Rows of a store as a model reads them: `Padded`, or one tensor with the batch on axis 0."""
        ...

    def collate_texts(self, rows: Sequence[Ids]) -> Any:
        """The same of what was encoded by itself: the rows of a stream are cut otherwise."""
        ...

    def closed(self, ids: Any) -> Any:
        """Everything of one example that has a probability of its own: its ids, and the end token of a text."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """For the model file, beside `kind`; a tokenizer has a place of its own there."""
        ...


class WithoutVocabulary:
    """What columns have in common whose rows are no ids of a vocabulary."""

    @property
    def unknown(self) -> int:
        """No id: what is unknown is an error."""
        return -1

    def closed(self, ids: Any) -> Any:
        """Nothing ends a row."""
        return ids


Columns = Mapping[str, Column]  # "target", and "source" for a task that has one
