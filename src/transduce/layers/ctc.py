"""Connectionist temporal classification (CTC): outputs in more places than they have tokens (Graves et al. 2006).

Each place holds a token or a blank. An output is read from an alignment by merging equal neighbours and dropping
blanks. Many alignments give the same output, and its probability is the sum over them:

    p(y | x) = sum over alignments of y of prod_p P(place p)                              (equation 3)

    ┌──────┬──────┬───────┬───────┬─────┬──────┐
    │ the  │ the  │ blank │ blank │ cat │ blank│   reads "the cat"
    └──────┴──────┴───────┴───────┴─────┴──────┘

The sum is computed place by place, over the number of tokens emitted so far (section 4.1), in log space and for all
rows of a batch in parallel. With the maximum in place of the sum, the same lattice gives the likeliest alignment of a
given output: forced alignment, by the Viterbi algorithm (section 3.1 there; Kürzinger et al. 2020).

Shapes: B batch, P places, T tokens, U = T + 1 numbers of emitted tokens, V vocabulary, N rows of logits, C requested
    ids.

A second output on the encoder of an encoder-decoder, trained with CTC beside the decoder (Kim et al. 2017).

    loss = (1 - w) (attention's cross-entropy) + w (-log p_ctc(y | x))         w = `ctc_weight`

CTC aligns monotonically, which teaches the encoder and the attention above it where in the speech each token is.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from transduce.core.errors import InputError
from transduce.data.columns import Specs
from transduce.kernels.matmul import Linear
from transduce.layers.cross_entropy import CHUNK
from transduce.layers.subsampling import SubsamplingConfig

IMPOSSIBLE = -1e30  # a log-probability that can be added to and subtracted from, unlike -inf


class Written(NamedTuple):
    """The log-probabilities that the sum over alignments of a batch's targets needs.

    token: (B, P, T), log-probability of each target token in each place.
    blank: (B, P), log-probability of the blank in each place.
    again: (B, T) bool, True = the previous token is the same, so a blank must come in between.
    lengths: (B,), number of tokens of each target.
    """

    token: Tensor
    blank: Tensor
    again: Tensor
    lengths: Tensor


def blank_of(target_BT: Tensor) -> int:
    """The blank of targets with start and end tokens: the start token, with which all begin."""
    return int(target_BT[0, 0])


def ids_of(token_BT: Tensor, places: int, blank: int) -> Tensor:
    """(B, P, U): the ids whose log-probabilities `written` needs: for each place the target tokens, then the blank."""
    ids_BU = torch.cat([token_BT, token_BT.new_full((len(token_BT), 1), blank)], 1)
    return ids_BU[:, None].expand(-1, places, -1)


def written(of_BPU: Tensor, count_B: Tensor, token_BT: Tensor, length_B: Tensor) -> Written:
    """`Written` from the log-probabilities of `ids_of`, for rows of `count_B` places and `length_B` tokens.

    After a row's last place, the blank is certain, which does not change the output.
    """
    behind_BP = ~_real(count_B, of_BPU.shape[1])
    token_BPT = of_BPU[..., :-1].masked_fill(behind_BP[..., None], IMPOSSIBLE)
    return Written(token_BPT, of_BPU[..., -1].masked_fill(behind_BP, 0.0), again(token_BT), length_B)


def again(token_BT: Tensor) -> Tensor:
    """(B, T) bool: which tokens equal the previous one."""
    return torch.cat([torch.zeros_like(token_BT[:, :1], dtype=torch.bool), token_BT[:, 1:] == token_BT[:, :-1]], 1)


def least_places(token_BT: Tensor, length_B: Tensor) -> Tensor:
    """(B,) the minimum number of places for each target: one per token, and one between equal neighbours."""
    return length_B + (again(token_BT) & _real(length_B, token_BT.shape[1])).sum(1)


def _real(length_B: Tensor, longest: int) -> Tensor:
    return torch.arange(longest, device=length_B.device) < length_B[:, None]


def log_likelihood(of: Written) -> Tensor:
    """(B,) log p(y | x) in nats, differentiable (equation 3 of the paper). Hugely negative if there is no alignment."""
    for said_BU, _ in _trellis(of):
        last_BU = said_BU
    return last_BU.gather(1, of.lengths[:, None])[:, 0]


def token_log_probabilities(of: Written) -> Tensor:
    """(B, U): log-probability of each token given those before, then of the end, then 0. They sum to log p(y | x).

    The probability that an output begins with y_1 .. y_k is the sum over places of the probability that y_k is first
    emitted there, which counts each alignment once.
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


class CtcAlignment(NamedTuple):
    """The likeliest alignment of each row of a batch.

    first, last: (B, T), the first and the last place that holds each token; -1 behind a row's tokens, and in rows that
        have no alignment, as they have fewer places than `least_places`.
    log_probability: (B,) of the alignment itself, in nats; hugely negative where there is none.
    """

    first: Tensor
    last: Tensor
    log_probability: Tensor


def best_alignment(of: Written) -> CtcAlignment:
    """The likeliest alignment of each target, by the Viterbi algorithm.

    Of alignments that are equally likely, it is one that stays longest with what a place holds, read from the end.
    """
    token_BT = torch.full_like(of.token[:, 0], IMPOSSIBLE)
    blank_BU = of.token.new_full((len(token_BT), token_BT.shape[1] + 1), IMPOSSIBLE)
    blank_BU[:, 0] = 0.0
    token_from, blank_from = list[Tensor](), list[Tensor]()
    for place in range(of.token.shape[1]):
        before_BT = torch.cat([torch.full_like(token_BT[:, :1], IMPOSSIBLE), token_BT], 1)[:, :-1]
        moved_BT = before_BT.masked_fill(of.again, 2 * IMPOSSIBLE)
        best_BT, entered_BT = torch.stack([token_BT, blank_BU[:, :-1], moved_BT]).max(0)
        ended_BU = torch.cat([torch.full_like(blank_BU[:, :1], IMPOSSIBLE), token_BT], 1)
        token_from.append(entered_BT.to(torch.int8))
        blank_from.append(ended_BU > blank_BU)
        token_BT = best_BT + of.token[:, place]
        blank_BU = torch.maximum(blank_BU, ended_BU) + of.blank[:, place, None]
    return _traced(of, token_BT, blank_BU, token_from, blank_from)


def aligned_tokens(normed_BPV: Tensor, count_B: Tensor, token_BT: Tensor, length_B: Tensor, blank: int) -> CtcAlignment:
    """`best_alignment` of rows of `count_B` places, whose log-probabilities are given, and `length_B` tokens."""
    ids_BPU = ids_of(token_BT, normed_BPV.shape[1], blank)
    return best_alignment(written(normed_BPV.gather(2, ids_BPU), count_B, token_BT, length_B))


STAYS, FROM_BLANK = 0, 1  # how a place came to hold a token; 2 = from the token before


def _traced(
    of: Written, token_BT: Tensor, blank_BU: Tensor, token_from: list[Tensor], blank_from: list[Tensor]
) -> CtcAlignment:
    """The alignment, from the log-probabilities at its end and where each came from, place by place."""
    said_B = of.lengths.clone()  # tokens emitted up to this place
    ending_BU = torch.cat([torch.full_like(blank_BU[:, :1], IMPOSSIBLE), token_BT], 1).gather(1, said_B[:, None])
    resting_BU = blank_BU.gather(1, said_B[:, None])
    holds_B = (ending_BU > resting_BU)[:, 0]  # whether this place holds a token
    best_B = torch.maximum(ending_BU, resting_BU)[:, 0]
    possible_B = best_B > IMPOSSIBLE / 2
    first_BT, last_BT = (torch.full_like(token_BT, -1, dtype=torch.int64) for _ in range(2))
    row_B = torch.arange(len(said_B), device=said_B.device)
    for place in range(len(token_from) - 1, -1, -1):
        token_B = (said_B - 1).clamp(min=0)
        holding = row_B[holds_B & possible_B]
        first_BT[holding, token_B[holding]] = place
        last_BT[holding, token_B[holding]] = last_BT[holding, token_B[holding]].clamp(min=place)
        if not token_BT.shape[1]:
            break
        came_B = token_from[place].gather(1, token_B[:, None])[:, 0]
        begins_B = holds_B & (came_B != STAYS)
        rested_B = ~holds_B & blank_from[place].gather(1, said_B[:, None])[:, 0]
        holds_B = (holds_B & (came_B != FROM_BLANK)) | rested_B
        said_B = said_B - begins_B.long()
    return CtcAlignment(first_BT, last_BT, best_B)


def _trellis(of: Written) -> Iterator[tuple[Tensor, Tensor]]:
    """Place by place: log p (B, U) of the number of tokens emitted so far, (B, T) of each token's first emission."""
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
    """(.., C) log-probabilities of the requested ids, and (..) their mean over the vocabulary; fp32 or fp64."""
    rows = logits.flatten(0, -2), ids.flatten(0, -2)
    of_NC, mean_N = _LogProbabilitiesOf.apply(*rows)  # type: ignore[no-untyped-call]
    return of_NC.view(ids.shape), mean_N.view(ids.shape[:-1])


class _LogProbabilitiesOf(torch.autograd.Function):
    """Computes one chunk of rows at a time, which stays in the processor's cache. Never holds (N, V) log-probabilities.

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


class JointCtcConfig(SubsamplingConfig):
    """The settings of an encoder that reads frames, in a model with a decoder."""

    ctc_weight: float = Field(default=0.0, ge=0, lt=1)
    """Where the source is frames: weight w of CTC on the encoder, and 1 - w of attention. 0 = attention alone."""


def make_ctc_output(config: JointCtcConfig, specs: Specs, width: int) -> Linear | None:
    """The projection of encoder states (.., width) to logits of the target tokens and the blank; None without CTC.

    Raises:
        InputError: the source is no frames, and CTC has a weight.
    """
    if not config.ctc_weight:
        return None
    if specs.source is None or specs.source.kind != "frames":
        raise InputError("model.ctc_weight is for a source of frames, and this task reads tokens. Leave it out.")
    return Linear(width, specs.target.size)
