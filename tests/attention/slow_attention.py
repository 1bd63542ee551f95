"""Attention one number at a time, from the paper, for the tests of this room."""

import math

import torch
from torch import Tensor


def slow_attention(
    query_BHTE: Tensor, key_BHSE: Tensor, value_BHSF: Tensor, allowed_BHTS: Tensor
) -> tuple[Tensor, Tensor]:
    """softmax(q K^T / sqrt(E)) V (Vaswani et al. 2017, equation 1) in Python floats: the output and the weights."""
    batch, heads, queries, width = query_BHTE.shape
    output_BHTF = torch.zeros(batch, heads, queries, value_BHSF.shape[-1], dtype=torch.float64)
    alpha_BHTS = torch.zeros(batch, heads, queries, key_BHSE.shape[2], dtype=torch.float64)
    q, k, v, may = query_BHTE.tolist(), key_BHSE.tolist(), value_BHSF.tolist(), allowed_BHTS.tolist()
    for b in range(batch):
        for h in range(heads):
            for t in range(queries):
                scores = {
                    s: sum(q[b][h][t][e] * key[e] for e in range(width)) / math.sqrt(width)
                    for s, key in enumerate(k[b][h])
                    if may[b][h][t][s]
                }
                mass = sum(math.exp(score) for score in scores.values())
                for s, score in scores.items():
                    alpha_BHTS[b, h, t, s] = math.exp(score) / mass
                    for f, value in enumerate(v[b][h][s]):
                        output_BHTF[b, h, t, f] += math.exp(score) / mass * value
    return output_BHTF, alpha_BHTS


def random_mask(*shape: int) -> Tensor:
    """Random bool (.., T, S) in which every query may attend to some key."""
    allowed = torch.rand(*shape) < 0.6
    allowed[..., 0] |= ~allowed.any(-1)
    return allowed
