"""A text as ids with the tokens that a model reads around it; nothing here needs torch.

Models trained here have the start and the end token around a text. Those of others may have the code of a language
there, and tokens that their outputs never hold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from transduce.core.errors import InputError
from transduce.data.tokenizers.text_ids import ABSENT, USUAL_NAMES, Tokenizer

TOKEN_KEYS = ("before", "between", "after", "never", "never_first")  # keys of a column whose values are tokens


@dataclass(frozen=True)
class FramedText:
    """How one side of a model is read and written.

    starts, ends: whether a model reads the start token before a row, and the end token behind it. Stores hold neither.
    stream: rows of a store are windows of running text, which nothing is added to; a text by itself stands between two
        end tokens, as a line does in a stream; if it also starts, between a start token and an end token.
    before: in the place of the start token, what a model reads before a row; a row that does not start has none
        otherwise. What follows the first of them an output begins with, always.
    after: in the place of the end token, what stands behind a row.
    never: tokens that search does not choose; None = padding, start and unknown. never_first: further ones that it does
        not choose first, behind what an output begins with; the end token may be one of them.
    between: in the place of the end token, what stands between two texts that are read as one.
    """

    tokenizer: Tokenizer
    starts: bool = False
    ends: bool = False
    stream: bool = False
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    never: tuple[str, ...] | None = None
    between: tuple[str, ...] = ()
    never_first: tuple[str, ...] = ()

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
    def behind(self) -> list[int]:
        """The ids behind a row."""
        return self.tokenizer.ids(self.after) if self.after else [self.end] * (self.ends or self.stream)

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

    def closed(self, ids: Sequence[int]) -> list[int]:
        """With what stands before and behind it, the start token apart."""
        return [*self.opening, *ids, *self.behind]

    def roomy(self, limit: int) -> int:
        """A limit on the tokens of an output, raised where what it begins with and its end need more."""
        return max(limit, len(self.opening) + 1)

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
