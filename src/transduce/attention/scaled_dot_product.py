"""Attention as pure functions: score each key against the query, mask, normalize to weights, sum the weighted values.

    alpha = softmax(q K^T / sqrt(E) + bias),   output = alpha V   (Vaswani et al. 2017, equation 1, which has no bias)

Keys and values may have fewer heads than queries: G, a divisor of H. Query head h then reads their head h G // H.

Shapes: B batch, H heads, G heads of keys and values, T queries, S keys, E width of a head's keys, F of its values.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.attention.dropout import dropout
from transduce.attention.normalizers import Normalizer, softmax
from transduce.attention.scores import AttentionScore
from transduce.kernels.native import attention as native

# On a CPU the fused kernel's backward pass loses to plain matrix products while the score matrix is small
# (benchmarks/attention_kernels.py measures where they cross); on an accelerator it always wins.
FUSED_FROM_KEYS = 256


def attention_weights(
    query_BHTE: Tensor, key_BGSE: Tensor, allowed: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """The weights alpha (B, H, T, S) of scaled dot-product attention.

    The softmax is computed in fp32, or in fp64 for fp64 scores.

    Args:
        query_BHTE: the queries.
        key_BGSE: the keys.
        allowed: bool, broadcastable to (B, H, T, S), True = may attend; None = all may. Every query must have an
            allowed key.
        bias: added to the scores, broadcastable to (B, H, T, S); None = no bias.
    """
    scores_BHTS = _product(query_BHTE * query_BHTE.shape[-1] ** -0.5, key_BGSE.transpose(-1, -2))
    return softmax(scores_BHTS if bias is None else scores_BHTS + bias, allowed)


def attend(
    query_BHTE: Tensor,
    key_BGSE: Tensor,
    value_BGSF: Tensor,
    allowed: Tensor | None = None,
    dropout_rate: float = 0.0,
    bias: Tensor | None = None,
) -> Tensor:
    """The output (B, H, T, F) of scaled dot-product attention, by the fastest kernel for the size.

    All kernels give the same result up to rounding.

    Args:
        query_BHTE: the queries.
        key_BGSE: the keys.
        value_BGSF: the values.
        allowed: bool, broadcastable to (B, H, T, S), True = may attend; None = all may. Every query must have an
            allowed key.
        dropout_rate: dropout rate on the weights.
        bias: added to the scores, broadcastable to (B, H, T, S); None = no bias.
    """
    if query_BHTE.device.type != "cpu" or key_BGSE.shape[2] >= FUSED_FROM_KEYS:
        key_BHSE, value_BHSF = (spread(each, query_BHTE.shape[1]) for each in (key_BGSE, value_BGSF))
        mask = allowed if bias is None else _masking_bias(query_BHTE, key_BGSE, allowed, bias)
        return F.scaled_dot_product_attention(query_BHTE, key_BHSE, value_BHSF, mask, dropout_rate)
    if bias is None and not dropout_rate and native.can_attend(query_BHTE, key_BGSE, value_BGSF, allowed):
        return native.attend(query_BHTE, key_BGSE, value_BGSF, allowed)
    return attend_with_weights(query_BHTE, key_BGSE, value_BGSF, allowed, dropout_rate, bias)[0]


def attend_with_weights(
    query_BHTE: Tensor,
    key_BGSE: Tensor,
    value_BGSF: Tensor,
    allowed: Tensor | None = None,
    dropout_rate: float = 0.0,
    bias: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The output of `attend`, and the weights (B, H, T, S) before dropout."""
    alpha_BHTS = attention_weights(query_BHTE, key_BGSE, allowed, bias)
    output_BHTF = _product(dropout(alpha_BHTS.to(value_BGSF.dtype), dropout_rate), value_BGSF)
    return output_BHTF, alpha_BHTS


def attend_by(
    score: AttentionScore,
    weigh: Normalizer,
    query_BHTE: Tensor,
    keys: Tensor,
    value_BGSF: Tensor,
    allowed: Tensor | None,
    position_BT: Tensor,
    previous_BHTS: Tensor | None = None,
    bias: Tensor | None = None,
    dropout_rate: float = 0.0,
    also: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Key-value attention with any score and normalizer: the output (B, H, T, F) and the weights (B, H, T, S).

        alpha = weigh(score(q, k) + bias),   output = sum_s alpha_s v_s + also(alpha)

    Args:
        score: computes the scores.
        weigh: the normalizer.
        query_BHTE: the queries. For a sequential score or normalizer, T must be 1.
        keys: `score.keys(key)`, computed once for all queries.
        value_BGSF: the values.
        allowed, position_BT, previous_BHTS: see `Weighing.forward`.
        bias: added to the scores, broadcastable to (B, H, T, S); None = no bias.
        dropout_rate: dropout rate on the weights. The returned weights are those before dropout.
        also: a function of the weights that returns (B, H, T, F), which is added to the output; None = nothing.
    """
    assert query_BHTE.shape[2] == 1 or not (score.sequential or weigh.sequential)
    keys, value_BHSF = (spread(each, query_BHTE.shape[1]) for each in (keys, value_BGSF))
    scores_BHTS = score(query_BHTE, keys, previous_BHTS)
    scores_BHTS = scores_BHTS if bias is None else scores_BHTS + bias
    alpha_BHTS = weigh(scores_BHTS, allowed, query_BHTE, position_BT, previous_BHTS)
    kept_BHTS = dropout(alpha_BHTS.to(value_BHSF.dtype), dropout_rate)
    output_BHTF = kept_BHTS @ value_BHSF
    return output_BHTF if also is None else output_BHTF + also(kept_BHTS).to(output_BHTF.dtype), alpha_BHTS


def spread(x_BGSE: Tensor, heads: int) -> Tensor:
    """(B, H, S, E) from (B, G, S, E), with each head repeated H / G times; the tensor itself if G = H."""
    groups = x_BGSE.shape[1]
    return x_BGSE if groups == heads else x_BGSE[:, :, None].expand(-1, -1, heads // groups, -1, -1).flatten(1, 2)


def _product(left_BHTX: Tensor, right_BGXY: Tensor) -> Tensor:
    """left @ right, (B, H, T, Y). Heads of `left` that share a head of `right` are rows of the same product."""
    heads, groups = left_BHTX.shape[1], right_BGXY.shape[1]
    if heads == groups:
        return left_BHTX @ right_BGXY
    rows_BGRX = torch.unflatten(left_BHTX, 1, (groups, -1)).flatten(2, 3)
    return torch.unflatten(rows_BGRX @ right_BGXY, 2, (heads // groups, -1)).flatten(1, 2)


def _masking_bias(query_BHTE: Tensor, key_BGSE: Tensor, allowed: Tensor | None, bias: Tensor) -> Tensor:
    """Bias and mask combined in one tensor for the fused kernel, -inf where not allowed."""
    shape = (*query_BHTE.shape[:3], key_BGSE.shape[2])
    masked = bias if allowed is None else torch.where(allowed, bias, -torch.inf)
    return masked.to(query_BHTE.dtype).expand(shape)
