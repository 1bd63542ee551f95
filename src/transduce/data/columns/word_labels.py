"""One of C labels for each word of a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

from transduce.core.errors import InputError
from transduce.data.columns.label import AlignedLabels, Label
from transduce.data.columns.protocols import Column, ColumnSpec
from transduce.data.structures.label_schemes import SCHEMES, allowed_transitions, most_labels


@dataclass(frozen=True)
class WordLabels(AlignedLabels):
    """The labels of a text's words a row, with one space between; one that is not known counts as none.

    scheme: of `transduce.data.structures.label_schemes`, which says what labels may follow each other.

    Raises:
        InputError: as `Label`; there are more than `most_labels`.
    """

    kind: ClassVar[str] = "word_labels"
    likelihood_unit: ClassVar[str] = "word"
    scheme: str = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.labels) > (most := most_labels(self.scheme)):
            raise InputError(f"labels of words: expected at most {most:,}; got {len(self.labels):,}.")

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: object = None) -> Self:
        """What `to_dict` gave. Raises InputError for anything else."""
        scheme = table.get("scheme")
        if scheme not in SCHEMES:
            raise InputError(f"the model file's column of labels: expected a scheme of {', '.join(SCHEMES)}.")
        return cls(Label.from_dict(table).labels, scheme=scheme)

    def covers(self, other: Column) -> bool:
        """Whether it has all labels of `other`, of the same scheme."""
        return super().covers(other) and isinstance(other, WordLabels) and self.scheme == other.scheme

    def to_dict(self) -> dict[str, Any]:
        """The labels in the order of their ids, and their scheme."""
        return {**super().to_dict(), "scheme": self.scheme}

    @property
    def spec(self) -> ColumnSpec:
        size = len(self.labels)
        return ColumnSpec(self.kind, size, ids=size + 1, follows=self._follows)

    @cached_property
    def _follows(self) -> tuple[tuple[bool, ...], ...]:
        return allowed_transitions(self.labels, self.scheme)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each row."""
        return [self.ids(text.split(" ") if text else []) for text in texts]

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """C for what is not known."""
        return [self._places.get(each, len(self.labels)) for each in tokens]
