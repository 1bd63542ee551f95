"""Attention as lecture notes write it, in either matrix layout and with several queries at once, is the core's.

Self-attention is `by_rows(x W_q, x W_k, x W_v)`; masked self-attention is the same with `masks.causal`;
cross-attention takes queries from a decoder, and keys and values from an encoder.

Shapes: T or M queries, S keys, E width of a key, F width of a value. Any axes may precede those named.
"""

import torch
from torch import Tensor

from transduce.attention import attend, masks
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


def qkv() -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(n, w, dtype=torch.float64, generator=generator) for n, w in ((3, 4), (5, 4), (5, 2)))  # type: ignore[return-value]


MASK_TS = torch.tensor([[True, False, True, True, False], [True] * 5, [False, False, False, True, False]])


def test_rows_are_the_core() -> None:
    query, key, value = qkv()
    for allowed in (None, MASK_TS):
        core = attend(query[None, None], key[None, None], value[None, None], allowed)[0, 0]
        torch.testing.assert_close(by_rows(query, key, value, allowed), core)


def test_columns_are_rows_transposed() -> None:
    query, key, value = qkv()
    for allowed in (None, MASK_TS):
        columns = by_columns(query.T, key.T, value.T, None if allowed is None else allowed.T)
        torch.testing.assert_close(columns, by_rows(query, key, value, allowed).T)
    # Written out: a softmax down each column.
    alpha = torch.softmax(key @ query.T / 2, 0)
    torch.testing.assert_close(by_columns(query.T, key.T, value.T), value.T @ alpha)


def test_several_queries_are_what_each_reads_end_to_end() -> None:
    query, key, value = qkv()
    together = by_several_queries(key, value, query)
    one_by_one = [attend(q[None, None, None], key[None, None], value[None, None]).flatten() for q in query]
    torch.testing.assert_close(together, torch.cat(one_by_one))
    assert together.shape == (3 * 2,)


def test_self_attention_in_both_layouts_with_and_without_a_causal_mask() -> None:
    generator = torch.Generator().manual_seed(1)
    x, to_query, to_key, to_value = (torch.randn(4, 4, dtype=torch.float64, generator=generator) for _ in range(4))
    for allowed in (None, masks.causal(4)[0, 0]):
        rows = by_rows(x @ to_query, x @ to_key, x @ to_value, allowed)
        columns = by_columns(to_query.T @ x.T, to_key.T @ x.T, to_value.T @ x.T, None if allowed is None else allowed.T)
        torch.testing.assert_close(columns, rows.T)


def test_axes_before_are_a_batch() -> None:
    query, key, value = (each.expand(2, 3, *each.shape) for each in qkv())
    assert by_rows(query, key, value).shape == (2, 3, 3, 2)
    torch.testing.assert_close(by_columns(query.mT, key.mT, value.mT).mT, by_rows(query, key, value))
    torch.testing.assert_close(
        by_several_queries(key, value, query)[1, 2], by_several_queries(*(e[0, 0] for e in (key, value, query)))
    )
