"""Attention as one pure function: score every key against the query, mask, weigh, read out the values.

    alpha = softmax(q K^T / sqrt(E)),   output = alpha V        (Vaswani et al. 2017, equation 1)

Shapes: B batch, H heads, T queries, S keys, E width of a head's keys, F width of its values.
"""

import torch.nn.functional as F
from torch import Tensor

from transduce.attention.dropout import dropout
from transduce.attention.scores import Score
from transduce.attention.weighing import Weighing, softmax

# On a CPU the fused kernel's backward pass loses to plain matrix products while the score matrix is small
# (benchmarks/attention_kernels.py measures where they cross); on an accelerator it always wins.
FUSED_FROM_KEYS = 256


def attention_weights(query_BHTE: Tensor, key_BHSE: Tensor, allowed: Tensor | None = None) -> Tensor:
    """alpha (B, H, T, S): scaled dot-product scores, masked, through a softmax in fp32, or in fp64 for fp64 scores.

    Args:
        allowed: bool, broadcastable to (B, H, T, S), True = may attend. Every query must be allowed some key.
    """
    return softmax((query_BHTE * query_BHTE.shape[-1] ** -0.5) @ key_BHSE.transpose(-1, -2), allowed)


def attend(
    query_BHTE: Tensor,
    key_BHSE: Tensor,
    value_BHSF: Tensor,
    allowed: Tensor | None = None,
    dropout_rate: float = 0.0,
) -> Tensor:
    """Output (B, H, T, F) by the fastest kernel for the size: both give the same up to rounding."""
    if _fused_is_faster(query_BHTE, key_BHSE):
        return F.scaled_dot_product_attention(query_BHTE, key_BHSE, value_BHSF, allowed, dropout_rate)
    return attend_visibly(query_BHTE, key_BHSE, value_BHSF, allowed, dropout_rate)[0]


def attend_visibly(
    query_BHTE: Tensor,
    key_BHSE: Tensor,
    value_BHSF: Tensor,
    allowed: Tensor | None = None,
    dropout_rate: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """`attend`, and the weights (B, H, T, S) that it read out with, before their dropout."""
    alpha_BHTS = attention_weights(query_BHTE, key_BHSE, allowed)
    output_BHTF = dropout(alpha_BHTS.to(value_BHSF.dtype), dropout_rate) @ value_BHSF
    return output_BHTF, alpha_BHTS


def attend_by(
    score: Score,
    weigh: Weighing,
    query_BHTE: Tensor,
    keys: Tensor,
    value_BHSF: Tensor,
    allowed: Tensor | None,
    position_BT: Tensor,
    previous_BHTS: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Key-value attention with any score and any weighing: the output (B, H, T, F) and the weights (B, H, T, S).

        alpha = weigh(score(q, k)),   output = sum_s alpha_s v_s

    Args:
        keys: `score.keys(key)`, computed once for all queries.
        position_BT, previous_BHTS: see `Weighing.forward`. Of a sequential score or weighing T must be 1.
    """
    assert query_BHTE.shape[2] == 1 or not (score.sequential or weigh.sequential)
    scores_BHTS = score(query_BHTE, keys, previous_BHTS)
    alpha_BHTS = weigh(scores_BHTS, allowed, query_BHTE, position_BT, previous_BHTS)
    return alpha_BHTS.to(value_BHSF.dtype) @ value_BHSF, alpha_BHTS


def _fused_is_faster(query_BHTE: Tensor, key_BHSE: Tensor) -> bool:
    return query_BHTE.device.type != "cpu" or key_BHSE.shape[2] >= FUSED_FROM_KEYS
