"""Linear-chain conditional random fields: the probability of a whole row of labels (Lafferty et al. 2001).

    s(x, y) = a_{y_1} + sum_n e_{n, y_n} + sum_n T_{y_{n-1}, y_n} + b_{y_N}       (Lample et al. 2016, section 2.2)
    p(y | x) = exp s(x, y) / Z(x),   Z(x) = sum over rows y' of exp s(x, y')

e are scores of the words' labels by an encoder, T scores that a label follows another, a and b that one begins or ends
a text. Z, the likeliest row (Viterbi 1967) and the probability of each label come from messages between neighbours
(Lafferty et al. 2001, section 3, there as products of matrices):

    forward   f_1 = a + e_1,   f_n(j) = e_{n,j} + log sum_i exp(f_{n-1}(i) + T_ij)
    backward  g_N = b,         g_n(i) = log sum_j exp(T_ij + e_{n+1,j} + g_{n+1}(j))
    log Z = log sum_j exp(f_N(j) + b_j),   log p(y_n = j | x) = f_n(j) + g_n(j) - log Z

What is forbidden has a score of -1e30, which can be added to and subtracted from, unlike -inf; as a result it is -inf.

Shapes: B texts, N words, C labels.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

IMPOSSIBLE = -1e30
POSSIBLE = -1e29  # what is less is impossible


class Chain(NamedTuple):
    """The scores of neighbouring labels, in fp32 or fp64: a (C,), T (C, C), b (C,)."""

    start_C: Tensor
    between_CC: Tensor
    end_C: Tensor


class LinearChain(nn.Module):
    """a, T and b of C labels, at first zeros; what may not follow each other is impossible.

    Args:
        labels: C.
        allowed: (C + 1, C + 1), as `transduce.data.structures.label_schemes.allowed_transitions` gives it; () = all.
        learned: whether the scores are parameters; else they stay 0, and only say what is allowed.
    """

    forbidden_DD: Tensor

    def __init__(self, labels: int, allowed: tuple[tuple[bool, ...], ...] = (), learned: bool = True) -> None:
        super().__init__()
        size = labels + 1
        mask_DD = ~torch.tensor(allowed) if allowed else torch.zeros(size, size, dtype=torch.bool)
        self.register_buffer("forbidden_DD", mask_DD, persistent=False)
        self.scores_DD = nn.Parameter(torch.zeros(size, size)) if learned else None

    def chain(self, dtype: torch.dtype = torch.float32) -> Chain:
        """a, T and b."""
        zeros_DD = torch.zeros(self.forbidden_DD.shape, device=self.forbidden_DD.device)
        scores_DD = (zeros_DD if self.scores_DD is None else self.scores_DD).to(dtype)
        kept_DD = scores_DD.masked_fill(self.forbidden_DD, IMPOSSIBLE)
        return Chain(kept_DD[-1, :-1], kept_DD[:-1, :-1], kept_DD[:-1, -1])


def log_partition(emission_BNC: Tensor, length_B: Tensor, chain: Chain) -> Tensor:
    """(B,): log Z."""
    *_, last_BC = _forward(emission_BNC, length_B, chain)
    return (last_BC + chain.end_C).logsumexp(1)


def row_score(emission_BNC: Tensor, label_BN: Tensor, length_B: Tensor, chain: Chain) -> Tensor:
    """(B,): s(x, y); of a row in which some labels are -1, the log of the sum of exp s over all rows that agree."""
    return possible(log_partition(_agreeing(emission_BNC, label_BN), length_B, chain))


def log_likelihood(emission_BNC: Tensor, label_BN: Tensor, length_B: Tensor, chain: Chain) -> Tensor:
    """(B,): log p(y | x), with gradient. A label of -1 is not known: the probability of all rows that agree."""
    both_ANC = torch.cat([_agreeing(emission_BNC, label_BN), emission_BNC])
    agreeing_B, all_B = log_partition(both_ANC, length_B.repeat(2), chain).chunk(2)
    return possible(agreeing_B - all_B)


def log_likelihood_terms(emission_BNC: Tensor, label_BN: Tensor, length_B: Tensor, chain: Chain) -> Tensor:
    """(B, N): log p(y_n | y_1 .. y_{n-1}, x), 0 behind the last word and where y_n is -1. They sum to log p(y | x).

    The rows that agree with y_1 .. y_n have the weight sum_j exp(f_n(j) + g_n(j)), with f of these rows alone.
    """
    agreeing_BNC = torch.stack([*_forward(_agreeing(emission_BNC, label_BN), length_B, chain)], 1)
    backward_BNC = _backward(emission_BNC, length_B, chain)
    weight_BN = (agreeing_BNC + backward_BNC).logsumexp(2)
    before_BN = torch.cat([log_partition(emission_BNC, length_B, chain)[:, None], weight_BN[:, :-1]], 1)
    known_BN = _real(length_B, label_BN.shape[1]) & (label_BN >= 0)
    return possible((weight_BN - before_BN).masked_fill(~known_BN, 0.0))


def log_marginals(emission_BNC: Tensor, length_B: Tensor, chain: Chain) -> Tensor:
    """(B, N, C): log p(y_n = c | x), -inf where it cannot be; behind the last word anything."""
    forward_BNC = torch.stack([*_forward(emission_BNC, length_B, chain)], 1)
    weight_BNC = forward_BNC + _backward(emission_BNC, length_B, chain)
    return possible(weight_BNC - weight_BNC.logsumexp(2, keepdim=True))


def best_rows(emission_BNC: Tensor, length_B: Tensor, chain: Chain) -> Tensor:
    """(B, N) int64: the likeliest row of labels, which no rule forbids; 0 behind the last word."""
    if not any(bool(each.any()) for each in chain):  # no pair of labels is better than another
        return emission_BNC.argmax(2).masked_fill(~_real(length_B, emission_BNC.shape[1]), 0)
    best_BC, came_from = chain.start_C + emission_BNC[:, 0], list[Tensor]()
    for place in range(1, emission_BNC.shape[1]):
        reached_BC, from_BC = (best_BC[:, :, None] + chain.between_CC).max(1)
        real_B1 = (place < length_B)[:, None]
        best_BC = torch.where(real_B1, reached_BC + emission_BNC[:, place], best_BC)
        came_from.append(torch.where(real_B1, from_BC, torch.arange(from_BC.shape[1], device=from_BC.device)))
    label_B = (best_BC + chain.end_C).argmax(1)
    row = [label_B]
    for from_BC in reversed(came_from):
        row.append(from_BC.gather(1, row[-1][:, None])[:, 0])
    return torch.stack(row[::-1], 1).masked_fill(~_real(length_B, len(row)), 0)


def possible(scores: Tensor) -> Tensor:
    """The same with -inf for what is impossible."""
    return scores.masked_fill(scores < POSSIBLE, -torch.inf)


def _forward(emission_BNC: Tensor, length_B: Tensor, chain: Chain) -> Iterator[Tensor]:
    """(B, C) for each word, f; behind a row's last word that of its last."""
    found_BC = chain.start_C + emission_BNC[:, 0]
    yield found_BC
    for place in range(1, emission_BNC.shape[1]):
        next_BC = (found_BC[:, :, None] + chain.between_CC).logsumexp(1) + emission_BNC[:, place]
        found_BC = torch.where((place < length_B)[:, None], next_BC, found_BC)
        yield found_BC


def _backward(emission_BNC: Tensor, length_B: Tensor, chain: Chain) -> Tensor:
    """(B, N, C): g; from a row's last word on, b."""
    end_BC = chain.end_C.expand_as(emission_BNC[:, 0])
    found = [end_BC]
    for place in range(emission_BNC.shape[1] - 1, 0, -1):
        next_BC = (chain.between_CC + (emission_BNC[:, place] + found[-1])[:, None]).logsumexp(2)
        found.append(torch.where((place < length_B)[:, None], next_BC, end_BC))
    return torch.stack(found[::-1], 1)


def _agreeing(emission_BNC: Tensor, label_BN: Tensor) -> Tensor:
    """The same with all labels impossible that are not those of the row, where these are known."""
    label_C = torch.arange(emission_BNC.shape[2], device=label_BN.device)
    other_BNC = (label_C != label_BN[..., None]) & (label_BN[..., None] >= 0)
    return emission_BNC.masked_fill(other_BNC, IMPOSSIBLE)


def _real(length_B: Tensor, longest: int) -> Tensor:
    return torch.arange(longest, device=length_B.device) < length_B[:, None]
