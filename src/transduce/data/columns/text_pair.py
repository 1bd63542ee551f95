"""Two texts that are read one after the other, as the ids of one tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from transduce.core.errors import every
from transduce.core.printable import PROBLEMS
from transduce.data.columns.protocols import ColumnSpec
from transduce.data.columns.tokens import Tokens
from transduce.data.labelled import pair_of


@dataclass(frozen=True)
class TextPair(Tokens):
    """A row: the first text's ids, the end token, the second text's ids; a model reads the end token behind it too."""

    kind: ClassVar[str] = "text_pair"

    @property
    def spec(self) -> ColumnSpec:
        """The tokenizer's vocabulary, and the token behind which the second text begins."""
        return super().spec._replace(separator=self.separator[-1])

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Of pairs with a tab between. Raises InputError for anything else, naming the lines."""
        pairs = every(pair_of, texts, "line", PROBLEMS)
        sides = (self.tokenizer.encode(side) for side in zip(*pairs, strict=True)) if pairs else ([], [])
        return [[*first, *self.separator, *second] for first, second in zip(*sides, strict=True)]

    def _kept(self, ids: Any) -> list[tuple[int, int]]:
        """As many of both texts as are left where tokens are dropped from the end of the longer one, one by one."""
        middle, room = len(self.separator), self.room or 0
        first = list(ids).index(self.separator[0])
        second, free = len(ids) - first - middle, max(0, room - middle)
        shorter = min(first, second, free // 2)
        kept = (shorter, free - shorter) if first <= second else (free - shorter, shorter)
        behind = first + middle
        return [(0, kept[0]), (first, behind), (behind, behind + kept[1])]

    def parts(self, text: str) -> list[tuple[int, int]]:
        first, _ = pair_of(text)
        return [(0, len(first)), (min(len(first) + 1, len(text)), len(text))]
