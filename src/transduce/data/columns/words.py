"""Text whose words have labels, as the pieces of a tokenizer.

Shapes: B examples, S positions of pieces, N words, W characters of a word, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.core.padded import Padded
from transduce.data.collate import padded
from transduce.data.columns.protocols import PROBED, ColumnSpec, random_tokens
from transduce.data.columns.tokens import Tokens
from transduce.data.store import Ids
from transduce.data.structures.word_units import unit_bounds
from transduce.data.tokenizers.text_ids import ABSENT, Tokenizer

LONGEST_WORD = 20  # characters of a word that a model sees; of a longer one the first and the last ones
REMEMBERED = 100_000  # words whose characters were looked up
WORD_START = "▁"


class WordPieces(NamedTuple):
    """What a model reads of words.

    pieces: ids (B, S). words: (B, S), which of the words each piece belongs to, from 0; -1 for tokens around the text.
    firsts: (B, N), the place of each word's first piece. characters: (B, N, W), of each word, 0 behind its last.
    """

    pieces: Padded
    words: Padded
    firsts: Padded
    characters: Padded


@dataclass(frozen=True)
class Words(Tokens):
    """A text a row: the ids of its words' pieces. A word's first piece is stored as its id + V.

    unit: how a text is cut into words; see `transduce.data.structures.word_units.unit_bounds`.
    spaced: whether a word behind a space is read with it, for tokenizers of which it is a part; a text's first word
        is, where the tokenizer puts a space before a text.
    """

    kind: ClassVar[str] = "words"
    length_unit: ClassVar[str] = "word"
    cuts: ClassVar[bool] = False
    unit: str = "word"
    spaced: bool = False

    @classmethod
    def of(cls, tokenizer: Any) -> Self:
        """Of this tokenizer, with nothing before or behind a row."""
        return cls(tokenizer)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any], tokenizer: Tokenizer) -> Self:
        plain = Tokens.from_dict(table, tokenizer)
        unit, spaced = str(table.get("unit", "word")), table.get("spaced") is True
        return cls(tokenizer, before=plain.before, after=plain.after, unit=unit, spaced=spaced)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "unit": self.unit, **({"spaced": True} if self.spaced else {})}

    @property
    def spec(self) -> ColumnSpec:
        """The tokenizer's vocabulary, and how many characters it is written with; a store holds first pieces, too."""
        size = self.tokenizer.size
        return ColumnSpec(self.kind, size, 1 + len(self._alphabet), ids=2 * size)

    @property
    def unknown(self) -> int:
        """As a word's first piece."""
        unknown = self.tokenizer.unknown
        return unknown if unknown == ABSENT else self.tokenizer.size + unknown

    def fitted(self, ids: Any) -> Any:
        """All of it: every word has a label, and a longer text is read in windows."""
        return ids

    def cut_of(self, ids: Any) -> None:
        """Nothing is cut."""

    @property
    def probe(self) -> list[int]:
        """Words of one piece."""
        return self.closed([self.tokenizer.size] * PROBED)

    def bounds(self, text: str) -> list[tuple[int, int]]:
        """The characters [start, end) of each word."""
        return unit_bounds(text, self.unit)

    def pieces(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of the words' pieces in the tokenizer's vocabulary, and the characters [start, end) of each."""
        [row], spans = self.encode([text]), list[tuple[int, int]]()
        for (start, end), given in zip(self.bounds(text), self._given(text), strict=True):
            before = start - (len(given) - (end - start))
            found = self._cutter.offsets(given) or [(0, len(given))]
            spans += [(max(start, before + first), before + last) for first, last in found]
        return [each % self.tokenizer.size for each in row], spans

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The pieces of each text's words; a word of which the tokenizer leaves nothing is unknown."""
        listed = [self._given(text) for text in texts]
        different = list(dict.fromkeys(word for words in listed for word in words))
        known = dict(zip(different, map(self._row, self._cutter.encode(different)), strict=True))
        return [[each for word in words for each in known[word]] for words in listed]

    @property
    def _cutter(self) -> Tokenizer:
        """What cuts words into pieces."""
        return self.tokenizer.within_texts if self.spaced else self.tokenizer

    def _given(self, text: str) -> list[str]:
        """The words as the tokenizer is given them."""
        bounds = self.bounds(text)
        if not self.spaced:
            return [text[start:end] for start, end in bounds]
        first = " " if self.tokenizer.spaces_texts else ""
        spaces = [(" " if text[start - 1].isspace() else "") if start else first for start, _ in bounds]
        return [space + text[start:end] for space, (start, end) in zip(spaces, bounds, strict=True)]

    def _row(self, ids: Sequence[int]) -> list[int]:
        first, *others = ids or [self._nothing]
        return [first + self.tokenizer.size, *others]

    def decode(self, ids: Sequence[int]) -> str:
        """The words, with a space between."""
        size = self.tokenizer.size
        starts = [place for place, each in enumerate(ids) if each >= size]
        parts = [ids[start:end] for start, end in zip(starts, [*starts[1:], len(ids)], strict=True)]
        return " ".join(self.tokenizer.decode([each % size for each in part]).strip(" ") for part in parts)

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.tokens([each % self.tokenizer.size for each in ids])

    def collate(self, rows: Sequence[Ids]) -> Any:
        """`WordPieces`."""
        before = self.opening
        after = self.tokenizer.ids(self.after) if self.after else []
        framed = [np.concatenate([before, np.asarray(row), after]).astype(np.int32) for row in rows]
        firsts = [np.flatnonzero(row >= self.tokenizer.size).astype(np.int32) for row in framed]
        words = [(np.cumsum(row >= self.tokenizer.size) - 1).astype(np.int32) for row in framed]
        for each in words if after else ():
            each[-len(after) :] = -1
        pieces = padded([row % self.tokenizer.size for row in framed])
        spelled = [each for row in framed for each in self._spelled(row)]
        places = padded(firsts)
        return WordPieces(pieces, padded(words, -1), places, self._characters(spelled, places))

    collate_texts = collate

    def inputs(self, rows: Sequence[Ids]) -> Any:
        return self.collate([row[len(self.opening) : len(row) - len(self.after)] for row in rows])

    @classmethod
    def drawn(cls, length: int, size: int, generator: torch.Generator) -> WordPieces:
        """Words of one piece and as many characters as words have at most."""
        pieces, others = random_tokens(length, size, generator), torch.Generator().manual_seed(0)
        place = Padded(torch.arange(length)[None], pieces.lengths)
        characters = torch.randint(1, size, (1, length, LONGEST_WORD), generator=others)
        return WordPieces(pieces, place, place, Padded(characters, pieces.lengths))

    def _characters(self, spelled: list[NDArray[np.int64]], places: Padded) -> Padded:
        """(B, N, W) of the words of all rows, one after the other."""
        values = torch.zeros(*places.values.shape, LONGEST_WORD, dtype=torch.int64)
        values[places.mask()] = torch.from_numpy(np.stack(spelled))
        return Padded(values, places.lengths)

    def _spelled(self, row: NDArray[np.int32]) -> list[NDArray[np.int64]]:
        """The characters (W,) of each word of a row."""
        inner = row[len(self.opening) : len(row) - len(self.after)].tolist()
        size, found = self.tokenizer.size, list[list[int]]()
        for each in inner:
            if each >= size:
                found.append([])
            found[-1].append(each % size)
        return [self._spelling(tuple(ids)) for ids in found]

    def _spelling(self, ids: tuple[int, ...]) -> NDArray[np.int64]:
        known = self._spellings
        if ids not in known:
            if len(known) >= REMEMBERED:
                known.clear()
            known[ids] = self._spell(ids)
        return known[ids]

    def _spell(self, ids: tuple[int, ...]) -> NDArray[np.int64]:
        letters = [self._alphabet[each] for index in ids for each in self._names[index]]
        half = LONGEST_WORD // 2
        kept = letters if len(letters) <= LONGEST_WORD else letters[:half] + letters[-half:]
        return np.array(kept + [0] * (LONGEST_WORD - len(kept)), np.int64)

    @cached_property
    def _spellings(self) -> dict[tuple[int, ...], NDArray[np.int64]]:
        return {}

    @cached_property
    def _nothing(self) -> int:
        """What stands for a word of which the tokenizer leaves nothing: unknown, or else a space."""
        unknown = self.tokenizer.unknown
        return next(iter(self.tokenizer.encode([" "])[0]), 0) if unknown == ABSENT else unknown

    @cached_property
    def _names(self) -> list[str]:
        """Of each piece, without the mark of a word's beginning; "" of special tokens."""
        special = set(self.tokenizer.special.values())
        names = self.tokenizer.tokens(range(self.tokenizer.size))
        return ["" if index in special else name.removeprefix(WORD_START) for index, name in enumerate(names)]

    @cached_property
    def _alphabet(self) -> dict[str, int]:
        return {each: place for place, each in enumerate(sorted(set("".join(self._names))), 1)}
