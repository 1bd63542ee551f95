"""Phrases that must or must not stand in one input's output, as a state that every token of a hypothesis advances.

What counts is the text that the tokens write, however it is cut into tokens: each set of alternatives and the forbidden
phrases together are an automaton over characters (`automaton`), which a `Reader` takes from token to token.

Shapes: V vocabulary.
"""

import unicodedata
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from transduce.search.automaton import Automaton, Ints
from transduce.search.phrases import Phrases, goes_on, kind
from transduce.search.spelling import Reader, Spelling

Bools = npt.NDArray[np.bool_]
State = tuple[int, ...]  # what of a character has begun, then the state of each automaton: a value, never changed
Encode = Callable[[str], Sequence[int]]


class Constraint:
    """The rules that `phrases` make for an output.

    Args:
        encode: text -> tokens, as the model's tokenizer writes it: the way to write a phrase that is proposed first,
            and by whose tokens progress is counted. Each phrase of `must` has to come out of it whole.
    """

    def __init__(self, phrases: Phrases, spelling: Spelling, encode: Encode) -> None:
        self.phrases = phrases
        self.spelling = spelling
        self.must = [
            Wanted(alternatives, phrases.must.count(alternatives), spelling, encode)
            for alternatives in dict.fromkeys(phrases.must)
        ]
        self.must_not = Reader(Automaton(phrases.must_not), spelling) if phrases.must_not else None
        self._readers = [each.reader for each in self.must] + ([self.must_not] if self.must_not else [])
        self.start: State = (0,) * (1 + len(self._readers))
        self._refused: dict[tuple[State, bool], Bools] = {}
        self._needed: dict[State, Ints] = {}

    def after(self, state: State, token: int) -> State:
        """The state of a hypothesis with one more token."""
        begun = state[0]
        states = (int(reader.after(each, begun)[token]) for each, reader in zip(state[1:], self._readers, strict=True))
        return (int(self.spelling.letters(begun).begun_V[token]), *states)

    def behind(self, tokens: Sequence[int]) -> State:
        """The state of a hypothesis of these tokens."""
        state = self.start
        for token in tokens:
            state = self.after(state, token)
        return state

    def refused(self, state: State, last: bool) -> Bools | None:
        """(V,) which tokens complete a phrase that must not be, or None for none; of the end token see `may_end`.

        A phrase at the end of the text is complete when no letter follows: at once where no token can begin with one,
        or when no token may follow at all.

        Args:
            last: the next token is the last.
        """
        if self.must_not is None:
            return None
        key = (state, last)
        if key not in self._refused:
            after_V = self.must_not.after(state[-1], state[0])
            refused_V = after_V == Automaton.FULL
            if last or not self.spelling.glues:
                refused_V |= self.must_not.automaton.whole[after_V]
            self._refused[key] = refused_V
        return self._refused[key]

    def may_end(self, state: State) -> bool:
        """Whether the text, if it ends here, holds all that it must and nothing that it must not."""
        begun, *states = state
        ends = [
            reader.automaton.total(reader.at_end(each, begun))
            for each, reader in zip(states, self._readers, strict=True)
        ]
        return ends[: len(self.must)] == [each.times for each in self.must] and not any(ends[len(self.must) :])

    def holds_forbidden(self, state: State) -> bool:
        """Whether nothing that follows can undo that a forbidden phrase stands here."""
        if self.must_not is None:
            return False
        whole = bool(self.must_not.automaton.whole[state[-1]]) and not self.spelling.glues
        return state[-1] == Automaton.FULL or whole

    def needed(self, state: State) -> int:
        """Tokens that the phrases still missing have, what has begun of them left out."""
        return sum(wanted.needed(each, state[0]) for wanted, each in zip(self.must, state[1:], strict=False))

    def needed_after(self, state: State) -> Ints:
        """(V,) the same after each token."""
        if state not in self._needed:
            begun_V = self.spelling.letters(state[0]).begun_V
            each = [
                wanted.needed_by(wanted.reader.after(one, state[0]), begun_V)
                for wanted, one in zip(self.must, state[1:], strict=False)
            ]
            self._needed[state] = sum(each, np.zeros(self.spelling.size, dtype=np.int64))
        return self._needed[state]


class Wanted:
    """One set of alternatives that has to stand in `times` places, and how many tokens that still takes."""

    def __init__(self, alternatives: Sequence[str], times: int, spelling: Spelling, encode: Encode) -> None:
        self.times = times
        self.spelling = spelling
        self.reader = Reader(Automaton(alternatives, times), spelling)
        self._marks = [marks(phrase, spelling, encode) for phrase in alternatives]
        self._known: dict[tuple[int, int], int] = {}

    def needed(self, state: int, begun: int) -> int:
        """Tokens still to be written: of the alternative that has the fewest left, and of the places after it."""
        key = (state, begun)
        if key not in self._known:
            self._known[key] = self._count(state, begun)
        return self._known[key]

    def needed_by(self, state_V: Ints, begun_V: Ints) -> Ints:
        """(V,) the same for many states."""
        pairs, place_V = np.unique(np.stack([state_V, begun_V]), axis=1, return_inverse=True)
        counts: Any = np.array([self.needed(int(state), int(begun)) for state, begun in pairs.T])
        return np.asarray(counts[place_V.reshape(-1)], dtype=np.int64)

    def _count(self, state: int, begun: int) -> int:
        automaton, beginning = self.reader.automaton, self.spelling.begun(begun)
        now = automaton.states[state]
        if now.found == self.times:
            return 0
        left = [sum(not mark.passed(read, beginning) for mark in self._marks[number]) for number, read in now.begun]
        for phrase, places in zip(automaton.phrases, self._marks, strict=True):
            stuck = goes_on(now.before, kind(phrase[0]))  # inside a word, where no phrase begins
            left.append(len(places) if stuck else sum(not mark.passed(0, beginning) for mark in places))
        return min(left) + (self.times - now.found - 1) * min(map(len, self._marks))


class Mark(NamedTuple):
    """Where a token of a phrase ends: behind so many of its characters, and this beginning of the next."""

    characters: int
    beginning: bytes

    def passed(self, read: int, begun: bytes) -> bool:
        """Whether a hypothesis is there that has read so many characters, and begun the next."""
        return self.characters < read or (self.characters == read and begun.startswith(self.beginning))


def marks(phrase: str, spelling: Spelling, encode: Encode) -> list[Mark]:
    """The ends of the phrase's tokens; a token that is but the space before it, real or not, ends before it begins."""
    text, begun, found = "", 0, []
    tokens = encode(unicodedata.normalize("NFC", phrase))  # as training texts are
    if not spelling.pieces[tokens[0]].strip() or not spelling.pieces[tokens[0]].startswith(b" "):
        found.append(Mark(0, b""))
    for token in tokens:
        characters, begun = spelling.read(begun, token)
        text = (text + characters).lstrip()
        if text or begun:
            found.append(Mark(len(text), spelling.begun(begun)))
    assert text == phrase, f"{phrase!r} is written {text!r}"
    return found
