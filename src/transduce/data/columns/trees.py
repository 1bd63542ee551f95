"""Trees as the sequences that a model writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from transduce.data.columns.tokens import Tokens
from transduce.data.trees import parse_tree, spelled


@dataclass(frozen=True)
class Trees(Tokens):
    """A tree a row, in brackets; see `transduce.data.trees` for the sequence that its tokenizer reads."""

    kind: ClassVar[str] = "trees"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each tree, without start and end. Raises InputError for what is no tree."""
        sequences = (parse_tree(text).simplified().sequence(self.known) for text in texts)
        return [[self._number.get(token, self.unknown) for token in tokens] for tokens in sequences]

    @cached_property
    def known(self) -> frozenset[str]:
        """The words that are tokens of their own."""
        special = self.tokenizer.tokens((self.tokenizer.pad, self.start, self.end, self.unknown))
        return frozenset(token for token in self._number if token not in special and token[:1] not in "()")

    def words(self, sentence: Sequence[str]) -> list[int]:
        """The id of each word of a sentence."""
        return [self._number[spelled(word, self.known)] for word in sentence]

    @cached_property
    def _number(self) -> dict[str, int]:
        return {token: place for place, token in enumerate(self.tokenizer.tokens(range(self.tokenizer.size)))}
