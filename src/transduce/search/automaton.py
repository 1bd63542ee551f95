"""Phrases as a finite automaton over characters, which reads a text once from left to right.

It is the automaton of Aho and Corasick 1975 with two changes. An occurrence of a phrase must begin and end at a word
boundary, so after its last character the automaton waits for the next one. And occurrences that were counted do not
overlap. States are sets of partially read phrases, constructed when they are first reached (the subset construction).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from transduce.search.phrases import Kind, goes_on, kind, spread

Ints = npt.NDArray[np.int64]
OTHERS: list[Kind] = ["space", "word", "mark", "other"]  # classes of characters that occur in no phrase

Begun = frozenset[tuple[int, int]]  # (phrase, number of its characters read); complete ones wait for a word boundary


@dataclass(frozen=True, slots=True)
class AutomatonState:
    """What the automaton needs to know about the text so far.

    found: occurrences counted. before: the kind of the last character that is not a combining mark.
    matches: the partially read phrases.
    """

    found: int
    before: Kind
    matches: Begun


class Automaton:
    """Counts non-overlapping occurrences of `phrases` in a text, up to `times`.

    State 0 is the state of the empty text. `FULL` is the state after `times` occurrences, which is never left.

    class_of: the column of `after` for each character of a phrase; other characters use `other_class` of their kind.
    after: (states, classes) the next state for each class of characters. The last class means no character.
    found: (states,) the number of occurrences counted.
    whole: (states,) bool, True = a phrase is complete if the text or the word ends here.
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
        self.states: list[AutomatonState] = []
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
        """The number of occurrences if the text ends here."""
        return min(self.times, int(self.found[state]) + int(self.whole[state]))

    def _explored(self) -> Ints:
        numbers = {
            AutomatonState(0, "space", frozenset()): 0,
            AutomatonState(self.times, "space", frozenset()): self.FULL,
        }
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

    def _step(self, state: AutomatonState, character: str, character_kind: Kind) -> AutomatonState:
        if state.found == self.times or (character_kind == "space" and state.before == "space"):
            return state
        found, begun = state.found, state.matches
        inside = goes_on(state.before, character_kind)
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
        return AutomatonState(found, _base(state.before, character_kind), frozenset(longer))

    def _has_whole(self, state: AutomatonState) -> bool:
        return any(read == len(self.phrases[number]) for number, read in state.matches)


def _base(before: Kind, character_kind: Kind) -> Kind:
    if character_kind != "mark":
        return character_kind
    return "other" if before == "space" else before
