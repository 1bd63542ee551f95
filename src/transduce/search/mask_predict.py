"""Mask-predict: all words at once, then again those that were least sure (Ghazvininejad et al. 2019, section 4).

Of I iterations the first writes all n words of an output, and iteration i = 1 .. I - 1 hides the

    floor(n (I - i) / I)

words of the lowest probability and writes them again, given the others. This is done for the likeliest few lengths of
each source; the best of these outputs, by the length rule, is what is found.

A word's probability is the one it had when it was written last, and the end token's is that of the length, so that
with one iteration log p is the model's own log-probability of the output, and with more, as the words see each other,
an approximation of it.

Shapes: B sources, P outputs (of all sources), T words, N hidden words, V vocabulary, L lengths.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.core.errors import InputError, TransduceError
from transduce.core.padded import Padded
from transduce.models.protocols import Fills, Tree, select
from transduce.search.hypothesis import Hypothesis, hypothesis, rank
from transduce.search.request import Job
from transduce.search.settings import Search
from transduce.search.topk import top


def search(job: Job, settings: Search) -> list[list[Hypothesis]]:
    """For each row the `nbest` best outputs, best first, of `settings.lengths` different lengths.

    Raises:
        InputError: a token is not in the vocabulary.
        TransduceError: the model gave no numbers.
    """
    model: Fills = job.model
    assert job.source is not None
    memory = model.remember(job.source)
    length_BL = model.lengths(memory, max(job.limits) - 1)
    row_P, length_P, value_P = likeliest_lengths(length_BL, job.limits, settings.lengths)
    memory = select(memory, row_P.to(job.device))
    token_PT, value_PT = written(model, memory, length_P, settings.iterations, job)
    found: list[list[Hypothesis]] = [[] for _ in range(job.rows)]
    for row, length, ending, tokens, values in zip(
        row_P.tolist(), length_P.tolist(), value_P.tolist(), token_PT.tolist(), value_PT.tolist(), strict=True
    ):
        whole, each = [*tokens[:length], job.end], [*values[:length], ending]
        found[row].append(hypothesis(whole, each, True, settings.length))
    return [rank(each, settings.nbest) for each in found]


def likeliest_lengths(length_BL: Tensor, limits: Sequence[int], count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Each row's `count` likeliest numbers of words that leave room for the end token.

    Rows, lengths and log-probabilities, all (P,), by row, then likeliest first; of equally likely ones the shorter.
    """
    limit_B1 = torch.tensor(limits)[:, None].to(length_BL.device)
    place_L = torch.arange(length_BL.shape[1], device=length_BL.device)
    value_BC, length_BC = top(length_BL.masked_fill(place_L >= limit_B1, -torch.inf), count)
    row_P, column_P = (value_BC > -torch.inf).nonzero(as_tuple=True)
    return row_P, length_BC[row_P, column_P], value_BC[row_P, column_P]


def written(model: Fills, memory: Tree, length_P: Tensor, iterations: int, job: Job) -> tuple[Tensor, Tensor]:
    """The words (P, T) and their log-probabilities (P, T), float64, both on the CPU; 0 behind a row's end."""
    length_P = length_P.to(job.device)
    token_PT = torch.zeros(len(length_P), max(1, int(length_P.max())), dtype=torch.int64, device=job.device)
    value_PT = torch.zeros(token_PT.shape, dtype=torch.float64, device=job.device)
    real_PT = torch.arange(token_PT.shape[1], device=job.device) < length_P[:, None]
    for iteration in range(iterations):
        count_P = length_P * (iterations - iteration) // iterations
        hidden_PT = least_sure(value_PT, real_PT, count_P) if iteration else real_PT
        if not bool(hidden_PT.any()):
            break
        seen = Padded(token_PT, length_P.clamp(min=1))  # attention needs something to attend to
        token_N, value_N = best_words(model.fill(seen, hidden_PT, memory), job)
        token_PT[hidden_PT], value_PT[hidden_PT] = token_N, value_N
    return token_PT.cpu(), value_PT.cpu()


def least_sure(value_PT: Tensor, real_PT: Tensor, count_P: Tensor) -> Tensor:
    """(P, T) bool: the `count_P` words of each row with the lowest log-probability; of equal ones the earlier."""
    order_PT = value_PT.masked_fill(~real_PT, torch.inf).argsort(dim=1, stable=True)
    return (order_PT.argsort(dim=1) < count_P[:, None]) & real_PT


def best_words(logits_NV: Tensor, job: Job) -> tuple[Tensor, Tensor]:
    """The likeliest permitted tokens (N,) and their log-probabilities (N,) float64; of equal ones the lowest token.

    Raises:
        InputError: a forbidden token is not in the vocabulary.
        TransduceError: a log-probability is not a number.
    """
    outside = [token for token in (job.end, *job.forbidden) if token >= logits_NV.shape[1]]
    if outside:
        raise InputError(f"search: tokens {outside} are outside the model's vocabulary of {logits_NV.shape[1]}.")
    normed_NV = logits_NV.log_softmax(1)
    normed_NV[:, [job.end, *job.forbidden]] = -torch.inf
    value_N, token_N = normed_NV.max(dim=1)
    if bool(value_N.isnan().any()):
        raise TransduceError("search: the model gave a logit that is not a number: diverged weights or an overflow.")
    return token_N, value_N.double()
