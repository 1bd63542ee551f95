"""Required and forbidden phrases of one output, as a state that each token of a hypothesis advances.

Phrases are matched on the text, however it is tokenized. Each set of alternatives, and all forbidden phrases together,
is an automaton over characters (`automaton`), which a `SpellingReader` advances token by token.

Shapes: V vocabulary, C pairs of an automaton state and a partial character.
"""

import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from transduce.search.automaton import Automaton, Ints
from transduce.search.phrases import Phrases, goes_on, kind
from transduce.search.token_text import Spelling, SpellingReader

Bools = npt.NDArray[np.bool_]
State = tuple[int, ...]  # the partial character, then the state of each automaton; immutable
Encode = Callable[[str], Sequence[int]]


class Constraint:
    """The required and forbidden phrases of an output.

    Args:
        phrases: the phrases.
        spelling: the texts of the vocabulary's tokens.
        encode: text -> tokens, as the model's tokenizer does it. Search proposes this way of writing a phrase, and
            counts progress in its tokens. Every required phrase must survive it unchanged.
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
        self.must_not = SpellingReader(Automaton(phrases.must_not), spelling) if phrases.must_not else None
        self._readers = [each.reader for each in self.must] + ([self.must_not] if self.must_not else [])
        self.start: State = (0,) * (1 + len(self._readers))
        self._refused: dict[tuple[State, bool], Bools] = {}
        self._distance: dict[State, Ints] = {}

    def after(self, state: State, token: int) -> State:
        """The state after one more token."""
        begun = state[0]
        states = (int(reader.after(each, begun)[token]) for each, reader in zip(state[1:], self._readers, strict=True))
        return (int(self.spelling.letters(begun).begun_V[token]), *states)

    def behind(self, tokens: Sequence[int]) -> State:
        """The state of a hypothesis with these tokens."""
        state = self.start
        for token in tokens:
            state = self.after(state, token)
        return state

    def refused(self, state: State, last: bool) -> Bools | None:
        """(V,) bool: which tokens would complete a forbidden phrase, or None for none. For the end token see `may_end`.

        A phrase at the end of the text is complete if no letter follows: at once if no token can begin with a letter,
        or if no further token may follow.

        Args:
            state: the state of the hypothesis.
            last: whether the next token is the last.
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
        """Whether the text, if it ends here, contains all required phrases and no forbidden one."""
        begun, *states = state
        ends = [
            reader.automaton.total(reader.at_end(each, begun))
            for each, reader in zip(states, self._readers, strict=True)
        ]
        return ends[: len(self.must)] == [each.times for each in self.must] and not any(ends[len(self.must) :])

    def holds_forbidden(self, state: State) -> bool:
        """Whether the text contains a forbidden phrase, whatever follows."""
        if self.must_not is None:
            return False
        whole = bool(self.must_not.automaton.whole[state[-1]]) and not self.spelling.glues
        return state[-1] == Automaton.FULL or whole

    def distance(self, state: State) -> int:
        """The distance to containing all required phrases: twice the number of missing tokens, plus 1 inside a word.

        A missing phrase cannot begin inside a word. Counting this makes every necessary token reduce the distance, even
        one that only ends a word. Otherwise, a small beam could repeatedly replace a hypothesis that must first end a
        word by a more likely one with the same progress.
        """
        left = [wanted.left(each, state[0]) for wanted, each in zip(self.must, state[1:], strict=False)]
        missing = sum(tokens for tokens, _ in left)
        return 2 * missing + int(missing > 0 and all(stuck for _, stuck in left))

    def distance_after(self, state: State) -> Ints:
        """(V,) the distance after each token."""
        if state not in self._distance:
            begun_V = self.spelling.letters(state[0]).begun_V
            missing_V, stuck_V = np.zeros(self.spelling.size, dtype=np.int64), np.ones(self.spelling.size, dtype=bool)
            for wanted, each in zip(self.must, state[1:], strict=False):
                left_V, its_stuck_V = wanted.left_by(wanted.reader.after(each, state[0]), begun_V)
                missing_V, stuck_V = missing_V + left_V, stuck_V & its_stuck_V
            self._distance[state] = 2 * missing_V + (stuck_V & (missing_V > 0))
        return self._distance[state]

    def bank_after(self, state: State) -> Ints:
        """(V,) the bank of a hypothesis after each token: at most 0, and higher the smaller the distance.

        A hypothesis that ends with a forbidden phrase gets a slightly lower bank. It can continue only with more
        letters, which are mostly unlikely, and would otherwise take slots from better hypotheses.
        """
        return -2 * self.distance_after(state) - self.ends_forbidden(state)

    def ends_forbidden(self, state: State) -> Bools:
        """(V,) bool: whether the text ends with a forbidden phrase after each token, so that its word must continue."""
        if self.must_not is None:
            return np.zeros(self.spelling.size, dtype=bool)
        return self.must_not.automaton.whole[self.must_not.after(state[-1], state[0])]


class RequiredPhrase:
    """A set of alternatives that must occur `times` times, and the number of tokens that this still takes."""

    def __init__(self, alternatives: Sequence[str], times: int, spelling: Spelling, encode: Encode) -> None:
        self.times = times
        self.spelling = spelling
        self.reader = SpellingReader(Automaton(alternatives, times), spelling)
        self._marks = [marks(phrase, spelling, encode) for phrase in alternatives]
        self._fewest = min(map(len, self._marks))
        self._known: dict[tuple[int, int], tuple[int, bool]] = {}

    def left(self, state: int, partial: int) -> tuple[int, bool]:
        """The number of missing tokens, and whether none of them can be written here (True if there are none).

        The tokens are those of the alternative with the fewest left, and of further occurrences.
        """
        key = (state, partial)
        if key not in self._known:
            self._known[key] = self._count(state, partial)
        return self._known[key]

    def left_by(self, state_V: Ints, begun_V: Ints) -> tuple[Ints, Bools]:
        """(V,) the same for many states."""
        kinds = int(begun_V.max()) + 1
        code_V = state_V * kinds + begun_V
        count_C, stuck_C = np.zeros(int(code_V.max()) + 1, dtype=np.int64), np.zeros(int(code_V.max()) + 1, dtype=bool)
        for code in np.flatnonzero(np.bincount(code_V)):
            count_C[code], stuck_C[code] = self.left(int(code) // kinds, int(code) % kinds)
        return count_C[code_V], stuck_C[code_V]

    def _count(self, state: int, partial: int) -> tuple[int, bool]:
        automaton, beginning = self.reader.automaton, self.spelling.begun(partial)
        now = automaton.states[state]
        if now.found == self.times:
            return 0, True
        can_begin = [not goes_on(now.before, kind(phrase[0])) for phrase in automaton.phrases]
        begins = {(number, 0) for number, can in enumerate(can_begin) if can}
        goes_on_so = {each for each in now.matches if self._may_be_of(*each, beginning)}
        left = [
            sum(not mark.passed(read, beginning) for mark in self._marks[number])
            for number, read in goes_on_so | begins
        ]
        later = (self.times - now.found - 1) * self._fewest
        unfinished = any(read < len(automaton.phrases[number]) for number, read in goes_on_so)
        return min([self._fewest, *left]) + later, not unfinished and not any(can_begin)

    def _may_be_of(self, number: int, read: int, beginning: bytes) -> bool:
        """Whether the partial character can be the next one of a phrase, as the tokenizer writes it."""
        marks = self._marks[number]
        return not beginning or any(mark.characters == read and mark.beginning.startswith(beginning) for mark in marks)


class Mark(NamedTuple):
    """The end of a token of a phrase: the number of complete characters, and the bytes of a partial one after them."""

    characters: int
    beginning: bytes

    def passed(self, read: int, partial: bytes) -> bool:
        """Whether a hypothesis with these characters and this partial character has reached this point."""
        return self.characters < read or (self.characters == read and partial.startswith(self.beginning))


def marks(phrase: str, spelling: Spelling, encode: Encode) -> list[Mark]:
    """The ends of the phrase's tokens, without a token that is only the space before it."""
    text, begun, found = "", 0, []
    for token in encode(unicodedata.normalize("NFC", phrase)):  # like the training texts
        characters, begun = spelling.read(begun, token)
        text = (text + characters).lstrip()
        if text or begun:
            found.append(Mark(len(text), spelling.begun(begun)))
    assert text == phrase, f"{phrase!r} is written {text!r}"
    return found
