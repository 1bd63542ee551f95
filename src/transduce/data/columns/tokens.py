"""Text as the ids of a tokenizer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from transduce.core.padded import Padded
from transduce.data.collate import padded
from transduce.data.columns.protocols import ColumnSpec
from transduce.data.store import Ids
from transduce.data.tokenizer import Tokenizer


@dataclass(frozen=True)
class Tokens:
    """A text a row.

    starts, ends: whether a model reads the start token before a row, and the end token behind it. Stores hold neither.
    stream: rows of a store are windows of running text, which nothing is added to; a text by itself stands between two
        end tokens, as a line does in a stream.
    """

    kind: ClassVar[str] = "tokens"
    tokenizer: Tokenizer
    starts: bool = False
    ends: bool = False
    stream: bool = False

    @classmethod
    def of(cls, tokenizer: Any) -> Self:
        """Of this tokenizer, with the end token behind a row."""
        return cls(tokenizer, ends=True)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: Tokenizer) -> Self:
        """What `to_dict` gave."""
        return cls(tokenizer, bool(table.get("starts")), bool(table.get("ends")), bool(table.get("stream")))

    @property
    def spec(self) -> ColumnSpec:
        """The tokenizer's vocabulary."""
        return ColumnSpec(self.kind, self.tokenizer.size)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """See `transduce.data.tokenizer.Tokenizer`."""
        return self.tokenizer.encode(texts)

    def decode(self, ids: Sequence[int]) -> str:
        """See `transduce.data.tokenizer.Tokenizer`."""
        return self.tokenizer.decode(ids)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """See `transduce.data.tokenizer.Tokenizer`."""
        return self.tokenizer.tokens(ids)

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """See `transduce.data.tokenizer.Tokenizer`."""
        return self.tokenizer.ids(tokens)

    @property
    def unknown(self) -> int:
        """The id of what the vocabulary does not have."""
        return self.tokenizer.unknown

    @property
    def start(self) -> int:
        """The id before the first token of a text."""
        return self.tokenizer.end if self.stream else self.tokenizer.start

    @property
    def end(self) -> int:
        """The id behind the last token of a text."""
        return self.tokenizer.end

    def collate(self, rows: Sequence[Ids]) -> Padded:
        """(B, T) int64, padded with 0."""
        return padded(rows, 0, self.start if self.starts else None, self.end if self.ends else None)

    def collate_texts(self, rows: Sequence[Ids]) -> Padded:
        """The same of texts by themselves."""
        return padded(rows, 0, self.start, self.end) if self.stream else self.collate(rows)

    def closed(self, ids: Sequence[int]) -> list[int]:
        """With the end token where there is one."""
        return [*ids, self.end] if self.ends or self.stream else list(ids)

    def inputs(self, rows: Sequence[Ids]) -> Any:
        """What a model reads of texts by themselves, of rows that `closed` gave."""
        return padded(rows)

    def parts(self, text: str) -> list[tuple[int, int]]:
        """The characters [first, last) of each part of a text that an end token closes."""
        return [(0, len(text))]

    def to_dict(self) -> dict[str, Any]:
        """Without the tokenizer."""
        return {"starts": self.starts, "ends": self.ends, "stream": self.stream}
