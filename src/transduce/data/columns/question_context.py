"""A question and the text that answers it, as the ids of one tokenizer.

Shapes: B examples, Q positions of questions, S positions of texts, W characters of a token, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import padded
from transduce.data.columns.protocols import ColumnSpec, random_tokens
from transduce.data.columns.tokens import Tokens
from transduce.data.store import Ids
from transduce.data.structures.squad import cut

LONGEST_TOKEN = 16  # characters of a token that a model sees
QUESTION = 16  # tokens of a question that is drawn


class Passage(NamedTuple):
    """What a model reads: both sides end with the end token, which in the text stands for "no answer".

    question: ids (B, Q), with what stands before it. context: ids (B, S).
    question_characters (B, Q, W), context_characters (B, S, W): of each token, 0 behind its last.
    """

    question: Padded
    context: Padded
    question_characters: Padded
    context_characters: Padded

    def as_read(self, question: Tensor, context: Tensor) -> Tensor:
        """(B, .., Q + S) of values (B, .., Q) and (B, .., S): row by row the question's, then the text's, then padding.

        This is the order of the tokens of one source, for display.
        """
        read = torch.cat((question, context), -1)
        for row, length in enumerate(self.question.lengths.tolist()):
            rest = torch.cat((context[row], question[row, ..., length:]), -1)
            read[row] = torch.cat((question[row, ..., :length], rest), -1)
        return read


@dataclass(frozen=True)
class QuestionContext(Tokens):
    """A row: the question's ids, the end token, or what stands between in its place, the text's ids."""

    kind: ClassVar[str] = "question_context"
    cuts: ClassVar[bool] = False

    @property
    def spec(self) -> ColumnSpec:
        """The tokenizer's vocabulary, how many characters it is written with, and the token before the text."""
        sizes = self.tokenizer.size, 1 + len(self._alphabet)
        return ColumnSpec(self.kind, *sizes, separator=self.separator[-1])

    def limited(self, positions: int) -> Self:
        """Itself: a longer text is read in windows."""
        return self

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Of questions and texts with a tab or a line break between. Raises InputError for anything else."""
        sides = [cut(text) for text in texts]
        questions, contexts = (self.tokenizer.encode(side) for side in zip(*sides, strict=True)) if sides else ([], [])
        return [self.row(*both) for both in zip(questions, contexts, strict=True)]

    def row(self, question: Sequence[int], context: Sequence[int]) -> list[int]:
        return [*question, *self.separator, *context]

    def parts(self, text: str) -> list[tuple[int, int]]:
        """The characters of the question, and those of the text."""
        question, context = cut(text)
        return [(0, len(question)), (len(text) - len(context), len(text))]

    def collate(self, rows: Sequence[Ids]) -> Any:
        cuts, before = [self._length(row) for row in rows], self.opening
        asked = [[*before, *row[:length]] for row, length in zip(rows, cuts, strict=True)]
        question = padded([np.asarray(each, np.int32) for each in asked])
        context = padded([row[length:] for row, length in zip(rows, cuts, strict=True)], end=self.end)
        spelled = [Padded(self._spellings[each.values], each.lengths) for each in (question, context)]
        return Passage(question, context, *spelled)

    collate_texts = collate

    @classmethod
    def drawn(cls, length: int, size: int, generator: torch.Generator) -> Passage:
        """A text, a question of `QUESTION` tokens, and as many characters as tokens have at most."""
        context, others = random_tokens(length, size, generator), torch.Generator().manual_seed(0)
        question = random_tokens(QUESTION, size, others)
        spelled = [
            Padded(torch.randint(1, size, (*side.values.shape, LONGEST_TOKEN), generator=others), side.lengths)
            for side in (question, context)
        ]
        return Passage(question, context, *spelled)

    def inputs(self, rows: Sequence[Ids]) -> Any:
        return self.collate([row[len(self.opening) : -1] for row in rows])

    def _length(self, row: Ids) -> int:
        """Of the question with what stands behind it; without an end token, the first token is the question."""
        ends = np.flatnonzero(np.asarray(row) == self.separator[0])
        return int(ends[0]) + len(self.separator) if len(ends) else 1

    @cached_property
    def _names(self) -> list[str]:
        return [name[:LONGEST_TOKEN] for name in self.tokenizer.tokens(range(self.tokenizer.size))]

    @cached_property
    def _alphabet(self) -> dict[str, int]:
        return {each: place for place, each in enumerate(sorted(set("".join(self._names))), 1)}

    @cached_property
    def _spellings(self) -> Tensor:
        spelled: NDArray[np.int64] = np.zeros((len(self._names), LONGEST_TOKEN), np.int64)
        for row, name in enumerate(self._names):
            spelled[row, : len(name)] = [self._alphabet[each] for each in name]
        return torch.from_numpy(spelled)


def check_passage(source: ColumnSpec | None, target: ColumnSpec, model: str) -> ColumnSpec:
    """The column of a model that points into a text. Raises InputError for another task."""
    if source is None or source.kind != QuestionContext.kind or target.kind != "span":
        raise InputError(f'[model] kind = "{model}": expected a task with questions, texts and spans; got another one.')
    return source
