"""Sampling from the model's distribution, with temperature, top-k and top-p.

Sources: Fan et al. 2018 (top-k); Holtzman et al. 2020, section 3.1 (top-p).

The random numbers of a source depend only on (seed, line number, draw), so its samples are the same in any batch and in
any order. Shapes: P paths, N paths that have not ended, V vocabulary, T positions.
"""

import numpy as np
import torch
from torch import Tensor

from transduce.search.batch_request import BatchRequest
from transduce.search.hypothesis import Hypothesis, rank
from transduce.search.settings import Search
from transduce.search.stepwise import follow


def search(batch: BatchRequest, settings: Search) -> list[list[Hypothesis]]:
    """`nbest` independent draws for each row, best first; the same output may be drawn twice."""
    draws = settings.nbest
    uniform_PT = uniforms(batch, settings.seed, draws)

    def choose(log_probabilities_NV: Tensor, path_N: Tensor, time: int) -> Tensor:
        return drawn(log_probabilities_NV, uniform_PT[path_N, time], settings)

    found = follow(batch, choose, settings.length, copies=draws)
    return [rank(found[row * draws : (row + 1) * draws], draws) for row in range(batch.rows)]


def uniforms(batch: BatchRequest, seed: int, draws: int) -> Tensor:
    """(P, T) numbers in [0, 1): all random numbers of each path, drawn before the first step."""
    uniform_PT = np.zeros((batch.rows * draws, max(batch.limits)))
    for row, request in enumerate(batch.requests):
        for draw in range(draws):
            generator = np.random.default_rng([seed, request.line, draw])
            uniform_PT[row * draws + draw, : request.limit] = generator.random(request.limit)
    return torch.from_numpy(uniform_PT)


def drawn(log_probabilities_NV: Tensor, uniform_N: Tensor, settings: Search) -> Tensor:
    """The tokens (N,) at which the cumulative probability first exceeds `uniform_N`, computed in float64."""
    warm_NV = log_probabilities_NV.cpu().double() / settings.temperature
    if settings.top_k is None and settings.top_p is None:
        return inverse(warm_NV.softmax(dim=1), uniform_N)
    sorted_NV, token_NV = warm_NV.sort(dim=1, descending=True, stable=True)
    place_N = inverse(cut(sorted_NV, settings.top_k, settings.top_p), uniform_N)
    return token_NV.gather(1, place_N[:, None])[:, 0]


def cut(sorted_NV: Tensor, top_k: int | None, top_p: float | None) -> Tensor:
    """Probabilities (N, V) of the tokens that pass top-k and then top-p, not normalized again; 0 for all others.

    sorted_NV: log-probabilities in descending order.
    top_k: keep this many tokens; None = all.
    top_p: of these, keep the smallest number whose share is at least `top_p`; None = all.
    """
    probability_NV = sorted_NV.softmax(dim=1)
    if top_k is not None:
        probability_NV[:, top_k:] = 0
    if top_p is not None:
        before_NV = probability_NV.cumsum(dim=1) - probability_NV
        total_N1 = probability_NV.sum(dim=1, keepdim=True)
        probability_NV = probability_NV.where(before_NV < top_p * total_N1, 0.0)
    return probability_NV


def inverse(probability_NV: Tensor, uniform_N: Tensor) -> Tensor:
    """The first columns (N,) where the cumulative sum exceeds `uniform_N` times the total. Never an impossible one.

    uniform_N: float64 in [0, 1). Its product with the total stays below the total, even after rounding.
    """
    cumulative_NV = probability_NV.cumsum(dim=1)
    threshold_N1 = uniform_N[:, None] * cumulative_NV[:, -1:]
    column_N = torch.searchsorted(cumulative_NV, threshold_N1, right=True)[:, 0]
    return column_N.clamp(max=probability_NV.shape[1] - 1)  # if nothing is possible and the total is NaN
