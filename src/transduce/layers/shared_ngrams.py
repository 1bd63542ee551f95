"""Which tokens of a text stand in another text too, such as a question, and the other way round.

    f_tn = 1 if token t is part of an n-gram of the text that is also one of the other, else 0

n = 1 is the exact match of Chen et al. 2017 (section 3.2). Where tokens are characters, longer ones tell words apart.

Shapes: B batch, S positions of the text, Q positions of the question, T either, N orders, D width.
"""

import torch
from torch import Tensor, nn

from transduce.core.padded import Padded
from transduce.data.columns.question_context import Passage


def shared_ngrams(passage: Passage, longest: int) -> tuple[Tensor, Tensor]:
    """f of the text (B, S, N) and of the question (B, Q, N), for n = 1 .. `longest`; 0 for end tokens and padding."""
    context, question = passage.context, passage.question
    equal_BSQ = context.values[:, :, None] == question.values[:, None]
    inside_BS, inside_BQ = _without_end(context.mask()), _without_end(question.mask())
    return _shared(equal_BSQ & inside_BS[:, :, None] & inside_BQ[:, None], longest)


def shared_in_pairs(pairs: Padded, separator: int, longest: int) -> Tensor:
    """f (B, T, N) of two texts that are read as one, each up to its separator; 0 for separators and padding."""
    ids_BT = pairs.values
    inside_BT = (ids_BT != separator) & pairs.mask()
    second_BT = (ids_BT == separator).cumsum(1) > 0
    apart_BTT = second_BT[:, :, None] != second_BT[:, None]
    equal_BTT = (ids_BT[:, :, None] == ids_BT[:, None]) & apart_BTT
    found, _ = _shared(equal_BTT & inside_BT[:, :, None] & inside_BT[:, None], longest)
    return found


class SharedInPairs(nn.Module):
    """U f_t: what a model is told of each token of a pair, as wide as an embedding."""

    def __init__(self, longest: int, width: int, separator: int) -> None:
        super().__init__()
        self.longest, self.separator = longest, separator
        self.output = nn.Linear(longest, width, bias=False)

    def forward(self, pairs: Padded) -> Tensor:
        """(B, T) ids -> (B, T, D)."""
        shared_BTN = shared_in_pairs(pairs, self.separator, self.longest)
        told_BTD: Tensor = self.output(shared_BTN.to(self.output.weight.dtype))
        return told_BTD


def _shared(equal_BSQ: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """f of both texts, of which these tokens are equal."""
    begins_BSQ, of_context, of_question = equal_BSQ, [], []
    for order in range(longest):
        if order:  # an n-gram begins where one of n - 1 does, and its last token is equal too
            # At (s, q) what stands at (s + steps, q + steps); False behind the ends.
            begins_BSQ = begins_BSQ & torch.nn.functional.pad(equal_BSQ, (0, order, 0, order))[:, order:, order:]
        of_context.append(_covered(begins_BSQ.any(2), order))
        of_question.append(_covered(begins_BSQ.any(1), order))
    return torch.stack(of_context, -1).float(), torch.stack(of_question, -1).float()


def with_shared(embedded_BTD: Tensor, shared_BTN: Tensor | None) -> Tensor:
    """[x_t; f_t], or x_t where nothing is told: (B, T, D + N)."""
    return embedded_BTD if shared_BTN is None else torch.cat((embedded_BTD, shared_BTN.to(embedded_BTD.dtype)), -1)


def _without_end(real_BT: Tensor) -> Tensor:
    """The mask of all but each row's last real position, which is its end token."""
    return torch.nn.functional.pad(real_BT[:, 1:], (0, 1))


def _covered(begins_BT: Tensor, order: int) -> Tensor:
    """The positions t, .., t + order of every t where an n-gram begins."""
    covered_BT = begins_BT
    for step in range(1, order + 1):
        covered_BT = covered_BT | torch.nn.functional.pad(begins_BT, (step, 0))[:, : begins_BT.shape[1]]
    return covered_BT
