"""Trees as the sequences that a model writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from transduce.data.columns.tokens import Tokens
from transduce.data.structures.trees import parse_tree


@dataclass(frozen=True)
class Trees(Tokens):
    """A tree a row, in brackets; see `transduce.data.structures.trees` for the sequence that its tokenizer reads."""

    kind: ClassVar[str] = "trees"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each tree, without start and end. Raises InputError for what is no tree."""
        return self.tokenizer.encode([" ".join(parse_tree(text).simplified().sequence()) for text in texts])
