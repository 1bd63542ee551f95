"""Text as the ids of a tokenizer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import padded
from transduce.data.columns.protocols import Column, ColumnSpec, TextCut
from transduce.data.store import Ids
from transduce.data.tokenizers.text_ids import ABSENT, USUAL_NAMES
from transduce.data.tokenizers.tokenizer import Tokenizer

TOKEN_KEYS = ("before", "between", "after", "never", "never_first")  # keys of a column whose values are tokens


@dataclass(frozen=True)
class Tokens(Column):
    """A text a row.

    starts, ends: whether a model reads the start token before a row, and the end token behind it. Stores hold neither.
    stream: rows of a store are windows of running text, which nothing is added to; a text by itself stands between two
        end tokens, as a line does in a stream; if it also starts, between a start token and an end token.
    before: in the place of the start token, what a model reads before a row; a row that does not start has none
        otherwise. What follows the first of them an output begins with, always.
    between: in the place of the end token, what stands between two texts that are read as one.
    after: in the place of the end token, what stands behind a row.
    never: tokens that search does not choose; None = padding, start and unknown. never_first: further ones that it does
        not choose first, behind what an output begins with; the end token may be one of them.
    positions: how many a model has for a row with what stands around it; None = any number. The model says so, not its
        file. A longer row is cut to its first tokens.
    """

    kind: ClassVar[str] = "tokens"
    is_text: ClassVar[bool] = True
    cuts: ClassVar[bool] = True
    tokenizer: Tokenizer
    starts: bool = False
    ends: bool = False
    stream: bool = False
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    never: tuple[str, ...] | None = None
    between: tuple[str, ...] = ()
    never_first: tuple[str, ...] = ()
    positions: int | None = field(default=None, compare=False)

    @classmethod
    def of(cls, tokenizer: Any) -> Self:
        """Of this tokenizer, with the end token behind a row."""
        return cls(tokenizer, ends=True)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: Tokenizer) -> Self:
        """What `to_dict` gave. Raises InputError for names that are no tokens of it."""
        tokenizer = tokenizer.with_roles(_roles(table))
        before, between, after, never, first = (_names(table, key, tokenizer) for key in TOKEN_KEYS)
        if never is not None and tokenizer.unknown not in tokenizer.ids(never):
            tokenizer = tokenizer.hiding_unknown()  # search may write it, and no reader should see its name
        starts, ends, stream = (bool(table.get(key)) for key in ("starts", "ends", "stream"))
        return cls(tokenizer, starts, ends, stream, before or (), after or (), never, between or (), first or ())

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
    def start(self) -> int:
        """The id before the first token of a text."""
        if self.before and self.starts:
            return self.tokenizer.ids(self.before[:1])[0]
        return self.tokenizer.end if self.stream and not self.starts else self.tokenizer.start

    @property
    def end(self) -> int:
        """The id behind the last token of a text."""
        return self.tokenizer.end

    @property
    def separator(self) -> list[int]:
        """The ids between two texts that are read as one."""
        return self.tokenizer.ids(self.between) if self.between else [self.end]

    @property
    def opening(self) -> list[int]:
        """The ids that every output begins with, or that stand before every row that a model reads."""
        return self.tokenizer.ids(self.before[self.starts :]) if self.before else []

    @property
    def unwritten(self) -> list[int]:
        """The ids that search does not choose, in order."""
        tokenizer = self.tokenizer
        never = (tokenizer.pad, tokenizer.start, tokenizer.unknown)
        return sorted(set(never if self.never is None else tokenizer.ids(self.never)) - {self.end, ABSENT})

    @property
    def unwritten_first(self) -> list[int]:
        """The ids that search does not choose first besides these, in order."""
        return sorted(set(self.tokenizer.ids(self.never_first)))

    @property
    def room(self) -> int | None:
        """How many ids of a row a model has positions for."""
        return None if self.positions is None else max(1, self.positions - len(self._behind) - len(self.opening))

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
        seen = ((0, before), *within, (last, last + len(self._behind)))
        return TextCut(len(ids), sum(end - start for start, end in kept), seen)

    def _kept(self, ids: Any) -> list[tuple[int, int]]:
        """The places [start, end) of a longer row that are read."""
        return [(0, self.room or 0)]

    @property
    def _behind(self) -> list[int]:
        """The ids behind a row."""
        return self.tokenizer.ids(self.after) if self.after else [self.end] * (self.ends or self.stream)

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
        return [*self.opening, *self.fitted(ids), *self._behind]

    def inputs(self, rows: Sequence[Ids]) -> Any:
        """What a model reads of texts by themselves, of rows that `closed` gave."""
        return padded(rows)

    def pieces(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a part of a text, and the characters [first, last) that each came from."""
        return self.tokenizer.encode([text])[0], self.tokenizer.offsets(text)

    def parts(self, text: str) -> list[tuple[int, int]]:
        """The characters [first, last) of each part of a text that an end token closes."""
        return [(0, len(text))]

    def to_dict(self) -> dict[str, Any]:
        named = {
            key: list(names) for key in TOKEN_KEYS if (names := getattr(self, key)) or (names == () and key == "never")
        }
        roles = {"roles": self.tokenizer.roles} if self.tokenizer.roles else {}
        return {"starts": self.starts, "ends": self.ends, "stream": self.stream, **named, **roles}


def _names(table: Mapping[str, Any], key: str, tokenizer: Tokenizer) -> tuple[str, ...] | None:
    """The tokens that a table names; None where it says nothing of them."""
    names = table.get(key)
    if names is None:
        return None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"the model file's column: expected the names of tokens as {key}; got {names!r:.80}.")
    tokenizer.ids(names)
    return tuple(names)


def _roles(table: Mapping[str, Any]) -> dict[str, str]:
    """Names of special tokens by what they are for, where a table has them."""
    roles = table.get("roles", {})
    if not isinstance(roles, dict) or not all(
        role in USUAL_NAMES and isinstance(name, str) for role, name in roles.items()
    ):
        raise InputError(f"the model file's column: expected the names of tokens as roles; got {roles!r:.80}.")
    return roles
