"""Text of which a model sees some words and predicts the others.

Shapes: B examples of a batch, S positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch

from transduce.core.padded import Padded
from transduce.data.collate import padded
from transduce.data.columns.protocols import ColumnSpec, random_tokens
from transduce.data.columns.tokens import Tokens
from transduce.data.store import Ids
from transduce.data.tokenizers.tokenizer import Tokenizer

LONGEST = 8  # pieces of a word; what is longer, such as a Chinese sentence, counts as one word a piece


class WordsOfText(NamedTuple):
    """A text as a model reads it, and to which word each piece belongs.

    pieces: ids (B, S). words: (B, S) the word of each piece, from 0; -1 of tokens around the text.
    """

    pieces: Padded
    words: Padded

    def known(self) -> torch.Tensor:
        """(B, S) bool: the pieces of words."""
        return (self.words.values >= 0) & self.words.mask()


@dataclass(frozen=True)
class MaskedText(Tokens):
    """A text a row. In stores the first piece of each word is its id + V."""

    kind: ClassVar[str] = "masked_text"
    cuts: ClassVar[bool] = False

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Self:
        """With a token for what is hidden, and the end token behind a row."""
        return cls(tokenizer.with_mask(), ends=True)

    @property
    def spec(self) -> ColumnSpec:
        return ColumnSpec(self.kind, self.tokenizer.size, ids=2 * self.tokenizer.size)

    def limited(self, positions: int) -> Self:
        """Itself: rows are no longer than the context, and each has an answer as long."""
        return self

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The pieces of each text, word by word; the name of the mask is the mask."""
        return [self._joined(words) for words in self.tokenizer.encode_words(texts, masked=True)]

    def encode_plain(self, texts: Sequence[str]) -> list[list[int]]:
        """The same of texts to be learnt from, in which nothing is a mask."""
        return [self._joined(words) for words in self.tokenizer.encode_words(texts)]

    def _joined(self, words: Sequence[Sequence[int]]) -> list[int]:
        return [each for word in words for each in self._marked(word)]

    def _marked(self, word: Sequence[int]) -> list[int]:
        size = self.tokenizer.size
        if len(word) > LONGEST:
            return [each + size for each in word]
        return [word[0] + size, *word[1:]] if word else []

    def decode(self, ids: Sequence[int]) -> str:
        return self.tokenizer.decode(self.pieces_of(ids))

    def tokens(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.tokens(self.pieces_of(ids))

    def pieces_of(self, ids: Sequence[int]) -> list[int]:
        """Without the marks of words."""
        return [int(each) % self.tokenizer.size for each in ids]

    def collate(self, rows: Sequence[Ids]) -> Any:
        """`WordsOfText`."""
        size, before, behind = self.tokenizer.size, len(self.opening), len(self.closed([])) - len(self.opening)
        words = [np.cumsum(np.asarray(row, np.int64) >= size) - 1 for row in rows]
        around = [np.pad(each, (before, behind), constant_values=-1).astype(np.int32) for each in words]
        pieces = [np.asarray(self.pieces_of(self.closed(row.tolist())), np.int32) for row in rows]
        return WordsOfText(padded(pieces), padded(around, -1))

    collate_texts = collate

    def inputs(self, rows: Sequence[Ids]) -> Any:
        """What a model reads of rows that `closed` gave; to which words their pieces belong is not said."""
        pieces = padded([row % self.tokenizer.size for row in rows])
        return WordsOfText(pieces, Padded(torch.full_like(pieces.values, -1), pieces.lengths))

    def pieces(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        return self.pieces_of(self.encode([text])[0]), self.tokenizer.offsets(text, masked=True)

    @classmethod
    def drawn(cls, length: int, size: int, generator: torch.Generator) -> WordsOfText:
        """Words of one piece."""
        pieces = random_tokens(length, size, generator)
        return WordsOfText(pieces, Padded(torch.arange(length)[None], pieces.lengths))
