"""Grammars of outputs: which tokens may follow, so that every finished output has the form that is wanted.

`Rules` asks a grammar in every step of a search. The only grammar here is that of bracketed trees.

Shapes: V vocabulary.
"""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from transduce.core.errors import InputError

Bools = npt.NDArray[np.bool_]
GrammarState = tuple[int, ...]  # immutable, of a hypothesis


class OutputGrammar(Protocol):
    """The form of one output. At every state that can be reached some token is allowed."""

    start: GrammarState

    @property
    def size(self) -> int:
        """V."""
        ...

    @property
    def shortest(self) -> int:
        """The number of tokens of the shortest output, with the end token."""
        ...

    def after(self, state: GrammarState, token: int) -> GrammarState:
        """The state after a token that was allowed."""
        ...

    def refused(self, state: GrammarState, left: int) -> Bools:
        """(V,) True = the token may not follow. After it the output can still be finished.

        Args:
            state: the state of the hypothesis.
            left: how many tokens it may still get, this one and the end token included.
        """
        ...


class BracketTokens:
    """What the tokens of a vocabulary are in sequences of brackets; see `transduce.data.structures.trees`.

    Args:
        tokens: how the vocabulary spells each id.
        end: the id that ends an output.
        special: other ids that are no part of a sequence.

    Raises:
        InputError: no label has both of its brackets there, or words have no tags.
    """

    def __init__(self, tokens: Sequence[str], end: int, special: Collection[int] = ()) -> None:
        number = {token: place for place, token in enumerate(tokens)}
        labels = [token[1:] for token in tokens if len(token) > 1 and token[0] == "(" and f"){token[1:]}" in number]
        tags = [place for token, place in number.items() if token[:1] not in "()" and place not in {end, *special}]
        if not labels or not tags:
            raise InputError("the vocabulary has no brackets such as (S and )S, or no token for the tag of a word.")
        self.size, self.end, self.tags = len(tokens), end, frozenset(tags)
        self.closing = {number[f"({label}"]: number[f"){label}"] for label in labels}  # by the bracket that it closes
        self.opening = {closing: opening for opening, closing in self.closing.items()}

    @cached_property
    def opens(self) -> Bools:
        """(V,) True = an opening bracket."""
        return np.isin(np.arange(self.size), list(self.closing))

    @cached_property
    def words(self) -> Bools:
        """(V,) True = the tag of a word."""
        return np.isin(np.arange(self.size), list(self.tags))


class TreeGrammar:
    """One tree over `words` words: brackets balance, every phrase has a word, and one phrase holds them all.

    A state is the number of words so far, whether a bracket was opened last, and the open brackets.

    Raises:
        InputError: there are no words.
    """

    start: GrammarState = (0, 0)

    def __init__(self, tokens: BracketTokens, words: int) -> None:
        if words < 1:
            raise InputError("a tree has at least one word.")
        self.tokens, self.words = tokens, words

    @property
    def size(self) -> int:
        """V."""
        return self.tokens.size

    @property
    def shortest(self) -> int:
        """All words in one phrase."""
        return self.words + 3

    def after(self, state: GrammarState, token: int) -> GrammarState:
        """The state after a token that was allowed."""
        words, _, *opened = state
        if token in self.tokens.closing:
            return (words, 1, *opened, token)
        if token in self.tokens.tags:
            return (words + 1, 0, *opened)
        return (words, 0, *opened[:-1])

    def refused(self, state: GrammarState, left: int) -> Bools:
        """See `OutputGrammar`."""
        words, just_opened, *opened = state
        to_come = self.words - words
        refused_V = np.ones(self.tokens.size, dtype=np.bool_)
        if not opened and words:
            refused_V[self.tokens.end] = False
            return refused_V
        spare = left - (to_come + len(opened) + 1)  # what is not needed for words, closing brackets and the end
        if to_come and spare >= 2:
            refused_V &= ~self.tokens.opens
        if to_come and opened:
            refused_V &= ~self.tokens.words
        if opened and not just_opened and (len(opened) > 1 or not to_come):
            refused_V[self.tokens.closing[opened[-1]]] = False
        return refused_V
