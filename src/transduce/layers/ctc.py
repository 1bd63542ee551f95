"""Connectionist temporal classification: outputs written into more places than they have tokens (Graves et al. 2006).

Each place holds a token or a blank. Reading a row of places, equal neighbours count once and blanks not at all, so
that many rows say the same output, and its probability is the sum over them:

    p(y | x) = sum over rows that say y of prod_p P(place p)                              (equation 3)

    ┌──────┬──────┬───────┬───────┬─────┬──────┐
    │ the  │ the  │ blank │ blank │ cat │ blank│   says "the cat"
    └──────┴──────┴───────┴───────┴─────┴──────┘

The sum is taken place by place over how many tokens were said (section 4.1). A batch's rows stand side by side, all in
log-probabilities.

Shapes: B batch, P places, T tokens, U T + 1: numbers of tokens said, V vocabulary, N rows of logits, C ids asked for.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.layers.cross_entropy import CHUNK

IMPOSSIBLE = -1e30  # a log-probability that can be added to and subtracted from, unlike -inf


class Written(NamedTuple):
    """What the places of a batch may say of its targets.

    token: (B, P, T) log-probability of each target token in each place. blank: (B, P) of the blank.
    again: (B, T) bool, True = the token before is the same, so that a blank must stand between.
    lengths: (B,) tokens of each target.
    """

    token: Tensor
    blank: Tensor
    again: Tensor
    lengths: Tensor


def blank_of(target_BT: Tensor) -> int:
    """The blank of targets that stand between start and end: the start token, with which all begin."""
    return int(target_BT[0, 0])


def ids_of(token_BT: Tensor, places: int, blank: int) -> Tensor:
    """(B, P, U): each target token, and the blank behind them, for each place; what `written` wants to know of."""
    ids_BU = torch.cat([token_BT, token_BT.new_full((len(token_BT), 1), blank)], 1)
    return ids_BU[:, None].expand(-1, places, -1)


def written(of_BPU: Tensor, count_B: Tensor, token_BT: Tensor, length_B: Tensor) -> Written:
    """From the log-probabilities of `ids_of`; each row has `count_B` places and `length_B` tokens.

    Behind a row's last place the blank is certain, which changes nothing of what was said.
    """
    behind_BP = ~_real(count_B, of_BPU.shape[1])
    token_BPT = of_BPU[..., :-1].masked_fill(behind_BP[..., None], IMPOSSIBLE)
    return Written(token_BPT, of_BPU[..., -1].masked_fill(behind_BP, 0.0), again(token_BT), length_B)


def again(token_BT: Tensor) -> Tensor:
    """(B, T) bool: which tokens equal the one before."""
    return torch.cat([torch.zeros_like(token_BT[:, :1], dtype=torch.bool), token_BT[:, 1:] == token_BT[:, :-1]], 1)


def least_places(token_BT: Tensor, length_B: Tensor) -> Tensor:
    """(B,) the fewest places that can say each target: one a token, and one between equal ones."""
    return length_B + (again(token_BT) & _real(length_B, token_BT.shape[1])).sum(1)


def _real(length_B: Tensor, longest: int) -> Tensor:
    return torch.arange(longest, device=length_B.device) < length_B[:, None]


def log_likelihood(of: Written) -> Tensor:
    """(B,) log p(y | x), with a gradient; far below any other where a target has more tokens than there are places."""
    for said_BU, _ in _trellis(of):
        last_BU = said_BU
    return last_BU.gather(1, of.lengths[:, None])[:, 0]


def token_log_probabilities(of: Written) -> Tensor:
    """(B, U): by the chain rule of each token given those before, then of the end; 0 behind. Their sum is log p(y | x).

    The probability that an output begins with y_1 .. y_k is the sum over places of the probability that y_k is said
    there and not before, which counts each row of places once, however it goes on.
    """
    begins_BT = torch.full_like(of.token[:, 0], IMPOSSIBLE)
    for said_BU, entered_BT in _trellis(of):
        begins_BT = torch.logaddexp(begins_BT, entered_BT)
        last_BU = said_BU
    certain_B1 = torch.zeros_like(last_BU[:, :1])
    begins_BU = torch.cat([certain_B1, begins_BT], 1)
    place_U, length_B1 = torch.arange(begins_BU.shape[1], device=begins_BU.device), of.lengths[:, None]
    next_BU = torch.where(place_U < length_B1, begins_BU.roll(-1, 1), last_BU)
    return (next_BU - begins_BU).masked_fill(place_U > length_B1, 0.0)


def _trellis(of: Written) -> Iterator[tuple[Tensor, Tensor]]:
    """Place by place: log p (B, U) of having said so many tokens so far, and (B, T) of saying each here first."""
    batch, places, length = of.token.shape
    token_BT = of.token.new_full((batch, length), IMPOSSIBLE)  # the last place held the token
    blank_BU = of.token.new_full((batch, length + 1), IMPOSSIBLE)  # it held the blank
    blank_BU[:, 0] = 0.0
    nothing_B1 = of.token.new_full((batch, 1), IMPOSSIBLE)
    said_BU = blank_BU
    for place in range(places):
        here_BT = of.token[:, place]
        entered_BT = torch.where(of.again, blank_BU[:, :-1], said_BU[:, :-1]) + here_BT
        token_BT = torch.logaddexp(token_BT + here_BT, entered_BT)
        blank_BU = said_BU + of.blank[:, place, None]
        said_BU = torch.logaddexp(blank_BU, torch.cat([nothing_B1, token_BT], 1))
        yield said_BU, entered_BT


def log_probabilities_of(logits: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """(.., C) log-probabilities of the ids asked for, and (..) their mean over the vocabulary (.., V); fp32 or fp64."""
    rows = logits.flatten(0, -2), ids.flatten(0, -2)
    of_NC, mean_N = _LogProbabilitiesOf.apply(*rows)  # type: ignore[no-untyped-call]
    return of_NC.view(ids.shape), mean_N.view(ids.shape[:-1])


class _LogProbabilitiesOf(torch.autograd.Function):
    """A chunk of rows at a time, which stays in the processor's cache; no log-probabilities (N, V) are held.

    d / d logits = onehot(ids) g + g_mean / V - softmax(logits) (sum g + g_mean)
    """

    @staticmethod
    def forward(ctx: Any, logits_NV: Tensor, ids_NC: Tensor) -> tuple[Tensor, Tensor]:
        kind = torch.float64 if logits_NV.dtype == torch.float64 else torch.float32
        of_NC = torch.empty(ids_NC.shape, dtype=kind, device=logits_NV.device)
        mean_N, total_N = (torch.empty(len(ids_NC), dtype=kind, device=logits_NV.device) for _ in range(2))
        for start in range(0, len(logits_NV), CHUNK):
            rows = slice(start, start + CHUNK)
            chunk_NV = logits_NV[rows].to(kind)
            total_N[rows] = chunk_NV.logsumexp(1)
            mean_N[rows] = chunk_NV.mean(1)
            of_NC[rows] = chunk_NV.gather(1, ids_NC[rows])
        ctx.save_for_backward(logits_NV, ids_NC, total_N)
        return of_NC - total_N[:, None], mean_N - total_N

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        logits_NV, ids_NC, total_N = ctx.saved_tensors
        of_NC, mean_N = gradients
        all_N1 = (of_NC.sum(1) + mean_N)[:, None]
        gradient_NV = torch.empty_like(logits_NV)
        for start in range(0, len(logits_NV), CHUNK):
            rows = slice(start, start + CHUNK)
            chunk_NV = (logits_NV[rows].to(total_N.dtype) - total_N[rows, None]).exp_().mul_(-all_N1[rows])
            chunk_NV.add_(mean_N[rows, None], alpha=1 / logits_NV.shape[1])
            gradient_NV[rows] = chunk_NV.scatter_add_(1, ids_NC[rows], of_NC[rows])
        return gradient_NV, None
