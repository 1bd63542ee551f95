"""Phrases that must or must not stand in one input's output, as a state that every token of a hypothesis advances.

What counts is the text that the tokens write, however it is cut into tokens: each set of alternatives and the forbidden
phrases together are an automaton over characters (`automaton`), which a `Reader` takes from token to token.

Shapes: V vocabulary, C pairs of a state and of what has begun.
"""

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from transduce.search.automaton import Automaton, Ints
from transduce.search.phrases import Phrases, goes_on, kind
from transduce.search.token_text import Reader, Spelling

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
            RequiredPhrase(alternatives, phrases.must.count(alternatives), spelling, encode)
            for alternatives in dict.fromkeys(phrases.must)
        ]
        self.tokens = {
            token
            for phrase in {each for alternatives in phrases.must for each in alternatives}
            for token in encode(unicodedata.normalize("NFC", phrase))
        }
        self.must_not = Reader(Automaton(phrases.must_not), spelling) if phrases.must_not else None
        self._readers = [each.reader for each in self.must] + ([self.must_not] if self.must_not else [])
        self.start: State = (0,) * (1 + len(self._readers))
        self._refused: dict[tuple[State, bool], Bools] = {}
        self._distance: dict[State, Ints] = {}

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

    def distance(self, state: State) -> int:
        """How far the text is from all that it must hold: twice the tokens still missing, and 1 inside a word.

        Inside a word, also one that ends a phrase, none of those missing can begin. So every token that has to be
        written brings the text nearer, if only from inside a word to its end: else a beam of few slots could replace,
        time and again, a hypothesis that has to end a word by a likelier one that has just come as far.
        """
        left = [wanted.left(each, state[0]) for wanted, each in zip(self.must, state[1:], strict=False)]
        missing = sum(tokens for tokens, _ in left)
        return 2 * missing + int(missing > 0 and all(stuck for _, stuck in left))

    def distance_after(self, state: State) -> Ints:
        """(V,) the same after each token."""
        if state not in self._distance:
            begun_V = self.spelling.letters(state[0]).begun_V
            missing_V, stuck_V = np.zeros(self.spelling.size, dtype=np.int64), np.ones(self.spelling.size, dtype=bool)
            for wanted, each in zip(self.must, state[1:], strict=False):
                left_V, its_stuck_V = wanted.left_by(wanted.reader.after(each, state[0]), begun_V)
                missing_V, stuck_V = missing_V + left_V, stuck_V & its_stuck_V
            self._distance[state] = 2 * missing_V + (stuck_V & (missing_V > 0))
        return self._distance[state]

    def bank_after(self, state: State) -> Ints:
        """(V,) the bank of a beam that a hypothesis is in after each token: the nearer, the greater, 0 at the most.

        One that a forbidden phrase ends is a little behind. It can only go on with more letters, mostly unlikely ones,
        and would leave no slot to others, which are seen to be better as soon as that has happened.
        """
        return -2 * self.distance_after(state) - self.ends_forbidden(state)

    def ends_forbidden(self, state: State) -> Bools:
        """(V,) whether a forbidden phrase ends the text after each token, so that a word has to go on."""
        if self.must_not is None:
            return np.zeros(self.spelling.size, dtype=bool)
        return self.must_not.automaton.whole[self.must_not.after(state[-1], state[0])]


class RequiredPhrase:
    """One set of alternatives that has to stand in `times` places, and how many tokens that still takes."""

    def __init__(self, alternatives: Sequence[str], times: int, spelling: Spelling, encode: Encode) -> None:
        self.times = times
        self.spelling = spelling
        self.reader = Reader(Automaton(alternatives, times), spelling)
        self._marks = [marks(phrase, spelling, encode) for phrase in alternatives]
        self._fewest = min(map(len, self._marks))
        self._known: dict[tuple[int, int], tuple[int, bool]] = {}

    def left(self, state: int, begun: int) -> tuple[int, bool]:
        """Tokens still to be written, and whether none of that can be written here: True if there are none.

        They are those of the alternative that has the fewest left, and of the places after it.
        """
        key = (state, begun)
        if key not in self._known:
            self._known[key] = self._count(state, begun)
        return self._known[key]

    def left_by(self, state_V: Ints, begun_V: Ints) -> tuple[Ints, Bools]:
        """(V,) the same for many states."""
        kinds = int(begun_V.max()) + 1
        code_V = state_V * kinds + begun_V
        count_C, stuck_C = np.zeros(int(code_V.max()) + 1, dtype=np.int64), np.zeros(int(code_V.max()) + 1, dtype=bool)
        for code in np.flatnonzero(np.bincount(code_V)):
            count_C[code], stuck_C[code] = self.left(int(code) // kinds, int(code) % kinds)
        return count_C[code_V], stuck_C[code_V]

    def _count(self, state: int, begun: int) -> tuple[int, bool]:
        automaton, beginning = self.reader.automaton, self.spelling.begun(begun)
        now = automaton.states[state]
        if now.found == self.times:
            return 0, True
        can_begin = [not goes_on(now.before, kind(phrase[0])) for phrase in automaton.phrases]
        begins = {(number, 0) for number, can in enumerate(can_begin) if can}
        goes_on_so = {each for each in now.begun if self._may_be_of(*each, beginning)}
        left = [
            sum(not mark.passed(read, beginning) for mark in self._marks[number])
            for number, read in goes_on_so | begins
        ]
        later = (self.times - now.found - 1) * self._fewest
        unfinished = any(read < len(automaton.phrases[number]) for number, read in goes_on_so)
        return min([self._fewest, *left]) + later, not unfinished and not any(can_begin)

    def _may_be_of(self, number: int, read: int, beginning: bytes) -> bool:
        """Whether the character that was begun may be the next of a phrase: as the tokenizer writes it, it is."""
        marks = self._marks[number]
        return not beginning or any(mark.characters == read and mark.beginning.startswith(beginning) for mark in marks)


class Mark(NamedTuple):
    """Where a token of a phrase ends: behind so many of its characters, and this beginning of the next."""

    characters: int
    beginning: bytes

    def passed(self, read: int, begun: bytes) -> bool:
        """Whether a hypothesis is there that has read so many characters, and begun the next."""
        return self.characters < read or (self.characters == read and begun.startswith(self.beginning))


def marks(phrase: str, spelling: Spelling, encode: Encode) -> list[Mark]:
    """The ends of the phrase's tokens; a token that is but the space before it has none."""
    text, begun, found = "", 0, []
    for token in encode(unicodedata.normalize("NFC", phrase)):  # as training texts are
        characters, begun = spelling.read(begun, token)
        text = (text + characters).lstrip()
        if text or begun:
            found.append(Mark(len(text), spelling.begun(begun)))
    assert text == phrase, f"{phrase!r} is written {text!r}"
    return found
