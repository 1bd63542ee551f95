"""Search for models with CTC output: best path, or prefix beam search.

beam = 1 takes the most likely token of each place (best path; Graves et al. 2006, section 3.2). A wider beam goes place
by place (Graves and Jaitly 2014, algorithm 1). It keeps two probabilities for each output, for alignments that end in a
blank and in the output's last token, because only the former can repeat that token. With `search.lm_weight` = w, it
keeps outputs by log p_ctc(y) + w log p_lm(y) (Hannun et al. 2014, without their bonus for words).

Every output that is found gets its exact log-probability, the sum over all its alignments, with the language model's
where there is one, and is ranked by the length rule. For each place, only the `beam` most likely tokens and the blank
are considered.

Shapes: B sources, P places, V vocabulary, K tokens of a place, N outputs of all sources, U tokens and the end.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from math import exp, inf, log1p

import numpy as np
import torch
from torch import Tensor

from transduce.core.errors import InputError, TransduceError
from transduce.core.padded import Padded
from transduce.data.collate import padded
from transduce.data.kneser_ney import KneserNey
from transduce.kernels.native import prefixes as native
from transduce.layers.ctc import ids_of, token_log_probabilities, written
from transduce.models.protocols import Aligns
from transduce.search.batch_request import BatchRequest
from transduce.search.hypothesis import Hypothesis, hypothesis, rank
from transduce.search.settings import Search
from transduce.search.topk import top

Output = tuple[int, ...]


def search(batch: BatchRequest, settings: Search) -> list[list[Hypothesis]]:
    """For each row the `nbest` best outputs found with `settings.beam`, best first.

    Raises:
        InputError: a token is not in the vocabulary.
        TransduceError: the model returned NaN.
    """
    model: Aligns = batch.model
    assert batch.source is not None
    places = model.align(batch.source)
    normed_BPV = places.values.log_softmax(-1, dtype=torch.float32)
    value_BPK, token_BPK = _likeliest(normed_BPV, batch, settings.beam)
    normed = Padded(normed_BPV, places.lengths)
    return _ranked(_outputs(value_BPK, token_BPK, normed, batch, settings), normed, batch, settings)


def _outputs(
    value_BPK: Tensor, token_BPK: Tensor, normed: Padded, batch: BatchRequest, settings: Search
) -> list[list[Output]]:
    """Of each row: the best path, or at most `beam` outputs."""
    blank, beam, blank_BP = batch.start, settings.beam, normed.values[..., batch.start]
    if beam > 1 and native.can_find(value_BPK):
        size, of = normed.values.shape[-1], batch.ngrams
        model = None
        if of is not None:
            model = native.packed_ngrams(of.levels, of.vocabulary, of.end, of.root, settings.lm_weight)
        return native.ctc_prefixes(value_BPK, token_BPK, blank_BP, normed.lengths, size, blank, beam, model)
    likely = _Likely(batch.ngrams, settings.lm_weight)
    rows = value_BPK.tolist(), token_BPK.tolist(), blank_BP.tolist(), normed.lengths.tolist()
    return [
        _best_row(tokens[:count], blank)
        if beam == 1
        else _beam(values[:count], tokens[:count], blanks[:count], blank, beam, likely)
        for values, tokens, blanks, count in zip(*rows, strict=True)
    ]


def _likeliest(normed_BPV: Tensor, batch: BatchRequest, count: int) -> tuple[Tensor, Tensor]:
    """The `count` most likely permitted tokens (B, P, K) of each place, the blank included; their log-probabilities.

    Raises:
        InputError: a forbidden token is not in the vocabulary.
        TransduceError: a log-probability is not a number.
    """
    size = normed_BPV.shape[-1]
    refused = [token for token in (batch.end, *batch.forbidden) if token != batch.start]
    outside = [token for token in (batch.start, *refused) if token >= size]
    if outside:
        raise InputError(f"search: tokens {outside} are outside the model's vocabulary of {size}.")
    value_NK, token_NK = top(normed_BPV.flatten(0, 1), min(count, size - len(refused)), refused)
    if bool(normed_BPV[..., 0].isnan().any()):  # one NaN logit makes the whole place NaN
        raise TransduceError("search: the model gave a logit that is not a number: diverged weights or an overflow.")
    shape = (*normed_BPV.shape[:2], -1)
    return value_NK.view(shape), token_NK.view(shape)


def _best_row(token_PK: Sequence[Sequence[int]], blank: int) -> list[Output]:
    return [tuple(token for token, _ in groupby(tokens[0] for tokens in token_PK) if token != blank)]


def _beam(
    value_PK: Sequence[Sequence[float]],
    token_PK: Sequence[Sequence[int]],
    blank_P: Sequence[float],
    blank: int,
    beam: int,
    likely: "_Likely",
) -> list[Output]:
    """At most `beam` outputs, most likely first; ties go to the lower ids."""
    kept: dict[Output, tuple[float, float]] = {(): (0.0, -inf)}  # log p, ending in a blank and in the last token
    for values, tokens, value in zip(value_PK, token_PK, blank_P, strict=True):
        after: dict[Output, list[float]] = defaultdict(lambda: [-inf, -inf])
        for output, (with_blank, with_token) in kept.items():
            whole = _plus(with_blank, with_token)
            after[output][0] = _plus(after[output][0], whole + value)
            for more, token in zip(values, tokens, strict=True):
                if token == blank or more == -inf:
                    continue
                repeats = bool(output) and output[-1] == token
                if repeats:
                    after[output][1] = _plus(after[output][1], with_token + more)
                longer = after[*output, token]
                longer[1] = _plus(longer[1], (with_blank if repeats else whole) + more)
        best = sorted(after.items(), key=lambda each: (-_plus(*each[1]) - likely.score(each[0]), each[0]))[:beam]
        kept = {output: (values[0], values[1]) for output, values in best}
    return list(kept)


class _Likely:
    """What a language model says of outputs, weighed; nothing where there is none."""

    def __init__(self, ngrams: KneserNey | None, weight: float) -> None:
        self.ngrams, self.weight = ngrams, weight
        self._known: dict[Output, float] = {(): 0.0}

    def score(self, output: Output) -> float:
        """Of the beginning of a line."""
        if self.ngrams is None:
            return 0.0
        if output not in self._known:
            last = float(self.ngrams.log_probabilities(output)[-1])
            self._known[output] = self.score(output[:-1]) + self.weight * last
        return self._known[output]


def _plus(one: float, other: float) -> float:
    """log(e^one + e^other); numpy's takes four times as long for two numbers."""
    less, more = (one, other) if one < other else (other, one)
    return more if less == -inf else more + log1p(exp(less - more))


def _with_model(own: Sequence[float], output: Output, ngrams: KneserNey, weight: float) -> list[float]:
    """The log-probabilities of an output's tokens, each with the language model's, weighed."""
    return [one + weight * more for one, more in zip(own, ngrams.log_probabilities(output).tolist(), strict=False)]


def _ranked(
    outputs: list[list[Output]], normed: Padded, batch: BatchRequest, settings: Search
) -> list[list[Hypothesis]]:
    """Each row's `nbest` best outputs with their exact log-probabilities; outputs over the limit are truncated."""
    row_N = [row for row, found in enumerate(outputs) for _ in found]
    every = [output for found in outputs for output in found]
    target = padded([np.asarray(output, np.int32) for output in every])
    token_NT, length_N = (each.to(batch.device) for each in target)
    rows, place_P = torch.tensor(row_N, device=batch.device), torch.arange(normed.values.shape[1], device=batch.device)
    of_NPU = normed.values[rows[:, None, None], place_P[:, None], ids_of(token_NT, len(place_P), batch.start)]
    of = written(of_NPU, normed.lengths[rows], token_NT, length_N)
    ranked: list[dict[Output, Hypothesis]] = [{} for _ in range(batch.rows)]
    for row, output, own in zip(row_N, every, token_log_probabilities(of).tolist(), strict=True):
        tokens = (*output, batch.end)[: batch.requests[row].limit]
        each = own if batch.ngrams is None else _with_model(own, (*output, batch.end), batch.ngrams, settings.lm_weight)
        ranked[row][tokens] = hypothesis(tokens, each[: len(tokens)], tokens[-1] == batch.end, settings.length)
    return [rank(found.values(), settings.nbest) for found in ranked]
