"""Attention as lecture notes write it: in either matrix layout, and with several queries at once.

The usual kinds of attention are special cases:

- self-attention is `by_rows(x W_q, x W_k, x W_v)`;
- masked self-attention is the same with `masks.causal`;
- cross-attention takes queries from a decoder, and keys and values from an encoder;
- soft attention over vectors uses the keys as values.

Models compute all of them with `transduce.attention.scaled_dot_product`.

Shapes: T or M queries, S keys, E width of a key, F width of a value. Any axes may precede those named.
"""

from torch import Tensor

from transduce.attention.normalizers import softmax


def by_rows(query_TE: Tensor, key_SE: Tensor, value_SF: Tensor, allowed: Tensor | None = None) -> Tensor:
    """softmax(Q K^T / sqrt(E)) V, (T, F), with one vector per row (Vaswani et al. 2017, equation 1).

    Args:
        allowed: bool, broadcastable to (T, S), True = may attend.
    """
    return softmax(query_TE @ key_SE.mT * query_TE.shape[-1] ** -0.5, allowed).to(value_SF.dtype) @ value_SF


def by_columns(query_ET: Tensor, key_ES: Tensor, value_FS: Tensor, allowed: Tensor | None = None) -> Tensor:
    """V softmax(K^T Q / sqrt(E)), (F, T), with one vector per column: `by_rows` transposed.

    The softmax is taken over each column.

    Args:
        allowed: bool, broadcastable to (S, T), True = may attend.
    """
    scores_ST = key_ES.mT @ query_ET * query_ET.shape[-2] ** -0.5
    alpha_TS = softmax(scores_ST.mT, None if allowed is None else allowed.mT)
    return value_FS @ alpha_TS.mT.to(value_FS.dtype)


def by_several_queries(key_SE: Tensor, value_SF: Tensor, query_ME: Tensor, allowed: Tensor | None = None) -> Tensor:
    """att((K, V), Q) = att((K, V), q_1) (+) .. (+) att((K, V), q_M), (M F,): the outputs of all queries, concatenated.

    Some lecture notes call this multi-head attention. All queries use the same keys and values, while each head of
    Vaswani et al. 2017 uses its own projections (`MultiHeadAttention`).

    Args:
        allowed: bool, broadcastable to (M, S), True = may attend.
    """
    return by_rows(query_ME, key_SE, value_SF, allowed).flatten(-2)
