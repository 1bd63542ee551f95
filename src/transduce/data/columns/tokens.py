"""Text as the ids of a tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from transduce.core.padded import Padded
from transduce.data.collate import padded
from transduce.data.columns.protocols import Column, ColumnSpec, TextCut
from transduce.data.store import Ids
from transduce.data.tokenizers.framed_text import FramedText


@dataclass(frozen=True)
class Tokens(FramedText, Column):
    """A text a row, with what stands around it; see `FramedText`.

    positions: how many a model has for a row with what stands around it; None = any number. The model says so, not its
        file. A longer row is cut to its first tokens.
    """

    kind: ClassVar[str] = "tokens"
    is_text: ClassVar[bool] = True
    cuts: ClassVar[bool] = True
    positions: int | None = field(default=None, compare=False)

    @classmethod
    def of(cls, tokenizer: Any) -> Self:
        """Of this tokenizer, with the end token behind a row."""
        return cls(tokenizer, ends=True)

    @property
    def spec(self) -> ColumnSpec:
        return ColumnSpec(self.kind, self.tokenizer.size)

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self.tokenizer.encode(texts)

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(ids)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.tokens(ids)

    def ids(self, tokens: Sequence[str]) -> list[int]:
        return self.tokenizer.ids(tokens)

    @property
    def unknown(self) -> int:
        """The id of what the vocabulary does not have."""
        return self.tokenizer.unknown

    @property
    def room(self) -> int | None:
        """How many ids of a row a model has positions for."""
        return None if self.positions is None else max(1, self.positions - len(self.behind) - len(self.opening))

    def limited(self, positions: int) -> Self:
        """The column of a model that has so many positions."""
        return replace(self, positions=positions)

    def fitted(self, ids: Any) -> Any:
        """What of a row there is room for, as a list or an array of numbers, as the row is."""
        if self.room is None or len(ids) <= self.room:
            return ids
        parts = [ids[start:end] for start, end in self._kept(ids)]
        return np.concatenate(parts) if isinstance(ids, np.ndarray) else [each for part in parts for each in part]

    def cut_of(self, ids: Any) -> TextCut | None:
        """What of a row is read where there is no room for all of it."""
        if self.room is None or len(ids) <= self.room:
            return None
        before, kept = len(self.opening), self._kept(ids)
        last = before + len(ids)
        within = [(start + before, end + before) for start, end in kept]
        seen = ((0, before), *within, (last, last + len(self.behind)))
        return TextCut(len(ids), sum(end - start for start, end in kept), seen)

    def _kept(self, ids: Any) -> list[tuple[int, int]]:
        """The places [start, end) of a longer row that are read."""
        return [(0, self.room or 0)]

    def collate(self, rows: Sequence[Ids]) -> Padded:
        """(B, T) int64, padded with 0."""
        rows = rows if self.positions is None else [self.fitted(row) for row in rows]
        if self.stream:
            return padded(rows)
        if self.before or self.after:
            closed = [np.asarray(self.closed(row.tolist()), np.int32) for row in rows]
            return padded(closed, 0, self.start if self.starts else None)
        return padded(rows, 0, self.start if self.starts else None, self.end if self.ends else None)

    def collate_texts(self, rows: Sequence[Ids]) -> Padded:
        """The same of texts by themselves."""
        return padded(rows, 0, self.start, self.end) if self.stream else self.collate(rows)

    def closed(self, ids: Sequence[int]) -> list[int]:
        """With what stands before and behind it, the start token apart."""
        return super().closed(self.fitted(ids))

    def inputs(self, rows: Sequence[Ids]) -> Any:
        """What a model reads of texts by themselves, of rows that `closed` gave."""
        return padded(rows)

    def pieces(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a part of a text, and the characters [first, last) that each came from."""
        return self.tokenizer.encode([text])[0], self.tokenizer.offsets(text)

    def parts(self, text: str) -> list[tuple[int, int]]:
        """The characters [first, last) of each part of a text that an end token closes."""
        return [(0, len(text))]
