"""Phrases as a finite automaton over characters, which reads a text once and never goes back.

It is the automaton of Aho and Corasick 1975 with two things more: a place where a phrase stands has to begin and end
with a word, so that a phrase whose last character was read waits for the next one; and places that were counted are
not used again. Its states are the sets of phrases begun, found as they are reached (the subset construction): a phrase
that breaks off falls back to what of it, or of another, the text still ends with.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transduce.search.phrases import Kind, goes_on, kind, spread

Ints = npt.NDArray[np.int64]
OTHERS: list[Kind] = ["space", "word", "mark", "other"]  # classes of the characters that are in no phrase

Begun = frozenset[tuple[int, int]]  # (phrase, characters of it that were read); whole ones wait for a word's end


@dataclass(frozen=True, slots=True)
class State:
    """What matters of the text so far.

    found: places counted. before: the kind of the last character that is no mark.
    """

    found: int
    before: Kind
    begun: Begun


class Automaton:
    """Counts the places of a text where one of `phrases` stands, up to `times`.

    State 0 is that of the empty text; `FULL` is the state after `times` places, which is never left.

    class_of: the column of `after` for each character of a phrase; others have that of their kind, `other_class`.
    after: (states, classes) the state after a character. The last class is no character: the state stays.
    found: (states,) places counted.
    whole: (states,) bool: here a phrase ends, if the text or the word ends now.
    """

    FULL = 1

    def __init__(self, phrases: Sequence[str], times: int = 1) -> None:
        self.phrases, self.times = list(phrases), times
        characters = sorted(set("".join(phrases)))
        self.class_of = {character: number for number, character in enumerate(characters)}
        self.other_class = {other: len(characters) + number for number, other in enumerate(OTHERS)}
        self.no_class = len(characters) + len(OTHERS)
        self._symbols: list[tuple[str, Kind]] = [(c, kind(c)) for c in characters] + [("", other) for other in OTHERS]
        self._starting: dict[str, list[int]] = {}
        for number, phrase in enumerate(self.phrases):
            self._starting.setdefault(phrase[0], []).append(number)
        self.states: list[State] = []
        self.after = self._explored()
        self.found = np.array([state.found for state in self.states])
        self.whole = np.array([self._has_whole(state) for state in self.states])

    def run(self, text: str, state: int = 0) -> int:
        """The state after a text."""
        for character in spread(text):
            column = self.class_of.get(character, self.other_class[kind(character)])
            state = int(self.after[state, column])
        return state

    def total(self, state: int) -> int:
        """The places counted if the text ends here."""
        return min(self.times, int(self.found[state]) + int(self.whole[state]))

    def _explored(self) -> Ints:
        numbers = {State(0, "space", frozenset()): 0, State(self.times, "space", frozenset()): self.FULL}
        self.states = list(numbers)
        rows: list[list[int]] = []
        while len(rows) < len(self.states):
            state, row = self.states[len(rows)], []
            for character, its_kind in self._symbols:
                following = self._step(state, character, its_kind)
                if following not in numbers:
                    numbers[following] = len(self.states)
                    self.states.append(following)
                row.append(numbers[following])
            rows.append([*row, len(rows)])
        return np.array(rows)

    def _step(self, state: State, character: str, its_kind: Kind) -> State:
        if state.found == self.times or (its_kind == "space" and state.before == "space"):
            return state
        found, begun = state.found, state.begun
        inside = goes_on(state.before, its_kind)
        if not inside and self._has_whole(state):
            found, begun = found + 1, frozenset()
            if found == self.times:
                return self.states[self.FULL]
        longer = {
            (number, read + 1)
            for number, read in begun
            if read < len(self.phrases[number]) and self.phrases[number][read] == character
        }
        if not inside:
            longer |= {(number, 1) for number in self._starting.get(character, ())}
        return State(found, _base(state.before, its_kind), frozenset(longer))

    def _has_whole(self, state: State) -> bool:
        return any(read == len(self.phrases[number]) for number, read in state.begun)


def _base(before: Kind, its_kind: Kind) -> Kind:
    if its_kind != "mark":
        return its_kind
    return "other" if before == "space" else before
