"""The characters that tokens add to a text, and automata over characters that read token by token.

Shapes: V vocabulary, L characters of the longest token, U distinct characters.
"""

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from transduce.search.automaton import Automaton, Ints
from transduce.search.phrases import Kind, kind, spread


@dataclass(frozen=True)
class Letters:
    """The characters that each token adds after a given partial character.

    alphabet: the U characters, in NFD, with white space as " ".
    kinds: their kinds.
    number_VL: the characters of each token as indices into the alphabet, padded with U.
    columns: for each of the L positions, the tokens that have a character there.
    begun_V: the number of the partial character that is left after each token.
    """

    alphabet: list[str]
    kinds: list[Kind]
    number_VL: Ints
    columns: list[Ints]
    begun_V: Ints


class Spelling:
    """The texts of a vocabulary's tokens.

    In some vocabularies a token may end within a character. Such a partial character is identified by a number; 0 =
    none.

    Args:
        pieces: for each token id the UTF-8 bytes that it adds to a text; see `Tokenizer.spellings`.
    """

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces
        self._begun = [b""]
        self._number = {b"": 0}
        self._letters: dict[int, Letters] = {}
        self.glues = any(self._begins_inside_a_word(piece) for piece in pieces)

    @property
    def size(self) -> int:
        """V."""
        return len(self.pieces)

    def begun(self, number: int) -> bytes:
        """The bytes of a partial character."""
        return self._begun[number]

    def read(self, partial: int, token: int) -> tuple[str, int]:
        """The characters that `token` completes, in NFD, and the partial character that it leaves."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(self._begun[partial] + self.pieces[token])
        rest = decoder.getstate()[0]
        if rest not in self._number:
            self._number[rest] = len(self._begun)
            self._begun.append(rest)
        return spread(text), self._number[rest]

    def letters(self, partial: int) -> Letters:
        """The characters that all tokens add after this partial character."""
        if partial not in self._letters:
            self._letters[partial] = self._made(partial)
        return self._letters[partial]

    def _made(self, partial: int) -> Letters:
        read = [self.read(partial, token) for token in range(self.size)]
        texts = [re.sub(" +", " ", text) for text, _ in read]  # a run of spaces equals one space
        alphabet = sorted(set("".join(texts)))
        number = {character: place for place, character in enumerate(alphabet)}
        number_VL = np.full((self.size, max(map(len, texts), default=0)), len(alphabet))
        for token, text in enumerate(texts):
            number_VL[token, : len(text)] = [number[character] for character in text]
        columns = [np.flatnonzero(number_VL[:, place] < len(alphabet)) for place in range(number_VL.shape[1])]
        begun_V = np.array([rest for _, rest in read])
        return Letters(alphabet, [kind(character) for character in alphabet], number_VL, columns, begun_V)

    def _begins_inside_a_word(self, piece: bytes) -> bool:
        """Whether a word could continue with this token. A partial character may belong to a letter."""
        text = piece.decode("utf-8", "replace")
        return text != "" and (text[0] == "\ufffd" or kind(spread(text)[0]) in ("word", "mark"))


class SpellingReader:
    """An automaton that reads tokens. Its state consists of the automaton's state and a partial character."""

    def __init__(self, automaton: Automaton, spelling: Spelling) -> None:
        self.automaton = automaton
        self.spelling = spelling
        self._columns: dict[int, Ints] = {}
        self._after: dict[tuple[int, int], Ints] = {}

    def after(self, state: int, partial: int) -> Ints:
        """(V,) the automaton's state after each token, from `state` and the partial character `partial`."""
        key = (state, partial)
        if key not in self._after:
            self._after[key] = self._read(state, self.spelling.letters(partial), self._table(partial))
        return self._after[key]

    def at_end(self, state: int, partial: int) -> int:
        """The state if the text ends here; a partial character reads as U+FFFD."""
        return self.automaton.run("\ufffd", state) if partial else state

    def _read(self, state: int, letters: Letters, after_SU: Any) -> Ints:
        state_V = np.full(self.spelling.size, state)
        for place, tokens in enumerate(letters.columns):
            state_V[tokens] = after_SU[state_V[tokens], letters.number_VL[tokens, place]]
        return state_V

    def _table(self, partial: int) -> Ints:
        """(states, U) the automaton's state after each character of the alphabet."""
        if partial not in self._columns:
            letters, automaton = self.spelling.letters(partial), self.automaton
            classes = [
                automaton.class_of.get(character, automaton.other_class[its_kind])
                for character, its_kind in zip(letters.alphabet, letters.kinds, strict=True)
            ]
            self._columns[partial] = automaton.after[:, classes]
        return self._columns[partial]
