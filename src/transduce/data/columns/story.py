"""A story and a question, sentence by sentence, as the ids of one tokenizer.

Shapes: B examples, M sentences of a story, W words of a sentence, Q words of a question.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from transduce.core.errors import InputError, every
from transduce.core.padded import Padded
from transduce.core.printable import PROBLEMS
from transduce.data.columns.protocols import random_tokens
from transduce.data.columns.tokens import Tokens
from transduce.data.store import Ids
from transduce.data.structures.stories import StoryText, story_of

SENTENCE = 6  # tokens of a sentence that is drawn


class Sentences(NamedTuple):
    """What a model reads.

    story: ids (B, M, W), the oldest sentence first. words: (B, M) how many words each sentence has, maybe none.
    question: ids (B, Q). All lengths are at least 1; a question without a word is one unknown word.
    """

    story: Padded
    words: Padded
    question: Padded


@dataclass(frozen=True)
class Story(Tokens):
    """A row: the ids of each sentence with the end token behind it, then those of the question."""

    kind: ClassVar[str] = "story"

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Of what `story_of` reads. Raises InputError for anything else, naming the lines."""
        return self.rows(every(story_of, texts, "line", PROBLEMS))

    def rows(self, read: Sequence[StoryText]) -> list[list[int]]:
        sentences = [each.sentences for each in read]
        every = list(dict.fromkeys(sentence for several in sentences for sentence in several))  # most come often
        ids = dict(zip(every, self.tokenizer.encode(every), strict=True))
        found = []
        for several in sentences:
            row = [each for sentence in several for each in (*ids[sentence], self.end)]
            found.append(row[:-1])
        return found

    def parts(self, text: str) -> list[tuple[int, int]]:
        """The characters of each sentence, and of the question. Raises InputError for JSON."""
        found = story_of(text)
        if found.text != text:
            raise InputError(
                "a story in JSON has no words to point at: write its sentences, and behind them the question."
            )
        return list(found.parts)

    def collate(self, rows: Sequence[Ids]) -> Any:
        filler = max(0, self.unknown)  # what stands behind a sentence is hidden by its length
        return _collated([np.append(np.asarray(row, np.int64), self.end) for row in rows], self.end, filler)

    collate_texts = collate

    @classmethod
    def drawn(cls, length: int, size: int, generator: torch.Generator) -> Sentences:
        """Tokens in sentences of `SENTENCE`, and a question of one sentence."""
        return _sentences(random_tokens(length, size, generator), size)

    def inputs(self, rows: Sequence[Ids]) -> Any:
        return self.collate([row[:-1] for row in rows])


def _collated(rows: Sequence[NDArray[np.int64]], end: int, filler: int) -> Sentences:
    """Of rows in which an end token stands behind every part, the question's too."""
    flat_N = np.concatenate(rows)
    ends_P = np.flatnonzero(flat_N == end)  # of P parts of all rows
    words_P = np.diff(ends_P, prepend=-1) - 1
    parts_B = np.array([np.count_nonzero(row == end) for row in rows])
    first_B = np.cumsum(parts_B) - parts_B
    row_P = np.repeat(np.arange(len(rows)), parts_B)
    place_P = np.arange(len(ends_P)) - first_B[row_P]
    table_PW = np.full((len(ends_P), max(1, int(words_P.max()))), filler, np.int64)
    table_PW[np.arange(table_PW.shape[1]) < words_P[:, None]] = flat_N[flat_N != end]
    asked = place_P == parts_B[row_P] - 1
    most = max(1, int(parts_B.max()) - 1)
    story_BMW = np.zeros((len(rows), most, table_PW.shape[1]), np.int64)
    words_BM = np.zeros((len(rows), most), np.int64)
    story_BMW[row_P[~asked], place_P[~asked]] = table_PW[~asked]
    words_BM[row_P[~asked], place_P[~asked]] = words_P[~asked]
    lengths_B = torch.from_numpy(np.maximum(1, parts_B - 1))
    asked_B = np.maximum(1, words_P[asked])
    question_BQ = np.ascontiguousarray(table_PW[asked][:, : int(asked_B.max())])
    return Sentences(
        Padded(torch.from_numpy(story_BMW), lengths_B),
        Padded(torch.from_numpy(words_BM), lengths_B),
        Padded(torch.from_numpy(question_BQ), torch.from_numpy(asked_B)),
    )


def _sentences(tokens: Padded, size: int) -> Sentences:
    count = -(-tokens.values.shape[1] // SENTENCE)
    filled_N = F.pad(tokens.values[0], (0, count * SENTENCE - tokens.values.shape[1]), value=size - 1)
    lengths, words = torch.tensor([count]), torch.full((1, count), SENTENCE)
    question = Padded(filled_N[None, :SENTENCE], torch.tensor([SENTENCE]))
    return Sentences(Padded(filled_N.view(1, count, SENTENCE), lengths), Padded(words, lengths), question)
