"""Mask-predict: predict all words at once, then the least certain ones again (Ghazvininejad et al. 2019, section 4).

The first of I iterations predicts all n words of an output. Iteration i = 1 .. I - 1 hides the

    floor(n (I - i) / I)

words with the lowest probability and predicts them again, given the others. This is done for several of the most likely
lengths of each source. The result is the best of these outputs by the length rule.

A word's probability is that of its last prediction, and the end token's probability is that of the length. With one
iteration, log p is therefore the model's log-probability of the output. With more iterations it is an approximation.

Shapes: B sources, P outputs (of all sources), T words, N hidden words, V vocabulary, L lengths.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.core.errors import InputError, TransduceError
from transduce.core.padded import Padded
from transduce.models.protocols import Fills, Tree, select
from transduce.search.batch_request import BatchRequest
from transduce.search.hypothesis import Hypothesis, hypothesis, rank
from transduce.search.settings import Search
from transduce.search.topk import top


def search(batch: BatchRequest, settings: Search) -> list[list[Hypothesis]]:
    """For each row the `nbest` best outputs, best first, of `settings.lengths` different lengths.

    Raises:
        InputError: a token is not in the vocabulary.
        TransduceError: the model returned NaN.
    """
    model: Fills = batch.model
    assert batch.source is not None
    memory = model.remember(batch.source)
    length_BL = model.lengths(memory, max(batch.limits) - 1)
    row_P, length_P, value_P = likeliest_lengths(length_BL, batch.limits, settings.lengths)
    memory = select(memory, row_P.to(batch.device))
    token_PT, value_PT = written(model, memory, length_P, settings.iterations, batch)
    found: list[list[Hypothesis]] = [[] for _ in range(batch.rows)]
    for row, length, ending, tokens, values in zip(
        row_P.tolist(), length_P.tolist(), value_P.tolist(), token_PT.tolist(), value_PT.tolist(), strict=True
    ):
        whole, each = [*tokens[:length], batch.end], [*values[:length], ending]
        found[row].append(hypothesis(whole, each, True, settings.length))
    return [rank(each, settings.nbest) for each in found]


def likeliest_lengths(length_BL: Tensor, limits: Sequence[int], count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Each row's `count` most likely numbers of words that leave room for the end token.

    Returns rows, lengths and log-probabilities, all (P,), ordered by row, then most likely first; ties go to the
    shorter.
    """
    limit_B1 = torch.tensor(limits)[:, None].to(length_BL.device)
    place_L = torch.arange(length_BL.shape[1], device=length_BL.device)
    value_BC, length_BC = top(length_BL.masked_fill(place_L >= limit_B1, -torch.inf), count)
    row_P, column_P = (value_BC > -torch.inf).nonzero(as_tuple=True)
    return row_P, length_BC[row_P, column_P], value_BC[row_P, column_P]


def written(
    model: Fills, memory: Tree, length_P: Tensor, iterations: int, batch: BatchRequest
) -> tuple[Tensor, Tensor]:
    """The words (P, T) and their log-probabilities (P, T) in float64, both on the CPU; 0 after the end of a row."""
    length_P = length_P.to(batch.device)
    token_PT = torch.zeros(len(length_P), max(1, int(length_P.max())), dtype=torch.int64, device=batch.device)
    value_PT = torch.zeros(token_PT.shape, dtype=torch.float64, device=batch.device)
    real_PT = torch.arange(token_PT.shape[1], device=batch.device) < length_P[:, None]
    for iteration in range(iterations):
        count_P = length_P * (iterations - iteration) // iterations
        hidden_PT = least_sure(value_PT, real_PT, count_P) if iteration else real_PT
        if not bool(hidden_PT.any()):
            break
        seen = Padded(token_PT, length_P.clamp(min=1))  # attention needs something to attend to
        token_N, value_N = best_words(model.fill(seen, hidden_PT, memory), batch)
        token_PT[hidden_PT], value_PT[hidden_PT] = token_N, value_N
    return token_PT.cpu(), value_PT.cpu()


def least_sure(value_PT: Tensor, real_PT: Tensor, count_P: Tensor) -> Tensor:
    """(P, T) bool: the `count_P` words of each row with the lowest log-probability; ties go to the earlier."""
    order_PT = value_PT.masked_fill(~real_PT, torch.inf).argsort(dim=1, stable=True)
    return (order_PT.argsort(dim=1) < count_P[:, None]) & real_PT


def best_words(logits_NV: Tensor, batch: BatchRequest) -> tuple[Tensor, Tensor]:
    """The most likely permitted tokens (N,) and their log-probabilities (N,) in float64; ties go to the lowest token.

    Raises:
        InputError: a forbidden token is not in the vocabulary.
        TransduceError: a log-probability is not a number.
    """
    outside = [token for token in (batch.end, *batch.forbidden) if token >= logits_NV.shape[1]]
    if outside:
        raise InputError(f"search: tokens {outside} are outside the model's vocabulary of {logits_NV.shape[1]}.")
    normed_NV = logits_NV.log_softmax(1)
    normed_NV[:, [batch.end, *batch.forbidden]] = -torch.inf
    value_N, token_N = normed_NV.max(dim=1)
    if bool(value_N.isnan().any()):
        raise TransduceError("search: the model gave a logit that is not a number: diverged weights or an overflow.")
    return token_N, value_N.double()
