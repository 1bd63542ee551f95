"""Sparse attention (Child et al. 2019): each position looks back at about sqrt(T) others instead of at all of them.

    full       all before it
    local      its own block and the block before
    strided    the last `stride`, and each `stride`-th one before those          (section 4.3, strided attention)
    fixed      its own block, and the last position of each block before         (section 4.3, fixed attention, c = 1)

A block is `stride` positions. Both of the paper's patterns, whose two parts one head looks at together here, reach
every earlier position within two layers; local does in as many as there are blocks between.

A pattern is a rule (query position, key position) -> may look, which serves both ways there are to attend by it:
`causal_mask`, with which any attention of this package is exact, and `attend_sparsely`, which lets FlexAttention skip
the blocks in which nothing may be looked at.

Shapes: B batch, H heads, T queries, S keys, E width of a head's keys, F width of its values.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

from transduce.attention.scaled_dot_product import attend

Pattern = Literal["full", "local", "strided", "fixed"]
Rule = Callable[[Tensor, Tensor], Tensor]


def rule(pattern: Pattern, stride: int) -> Rule:
    """(query position, key position) -> bool, True = may look, never ahead; int64 tensors that broadcast."""

    def looks(query: Tensor, key: Tensor) -> Tensor:
        if pattern == "local":
            return (key <= query) & (query // stride - key // stride <= 1)
        if pattern == "strided":
            return (key <= query) & ((query - key < stride) | ((query - key) % stride == 0))
        if pattern == "fixed":
            return (key <= query) & ((query // stride == key // stride) | (key % stride == stride - 1))
        return key <= query

    return looks


def causal_mask(
    pattern: Pattern, stride: int, queries: int, past: int = 0, device: torch.device | None = None
) -> Tensor:
    """(1, 1, T, past + T) bool, True = may attend: `masks.causal` thinned out. Query t stands at position past + t."""
    position_T = torch.arange(past, past + queries, device=device)
    key_S = torch.arange(past + queries, device=device)
    return rule(pattern, stride)(position_T[:, None], key_S)[None, None]


def attend_sparsely(query_BHTE: Tensor, key_BHTE: Tensor, value_BHTF: Tensor, pattern: Pattern, stride: int) -> Tensor:
    """What each position reads by the pattern (B, H, T, F), equal to `attend` with `causal_mask` up to rounding.

    On CUDA by FlexAttention (Dong et al. 2024), compiled: it skips the blocks that are masked whole, and holds no T x T
    scores. Elsewhere by the mask: on a CPU FlexAttention has no gradient.
    """
    length = query_BHTE.shape[2]
    if query_BHTE.device.type != "cuda":
        return attend(query_BHTE, key_BHTE, value_BHTF, causal_mask(pattern, stride, length, 0, query_BHTE.device))
    return flex_attend(query_BHTE, key_BHTE, value_BHTF, pattern, stride, _compiled())


def flex_attend(
    query_BHTE: Tensor, key_BHTE: Tensor, value_BHTF: Tensor, pattern: Pattern, stride: int, kernel: Any = None
) -> Tensor:
    """`attend_sparsely` by FlexAttention on any device.

    Args:
        kernel: `flex_attention`, compiled or not; None = not, which is exact and slow.
    """
    from torch.nn.attention.flex_attention import flex_attention

    blocks = _block_mask(pattern, stride, query_BHTE.shape[2], str(query_BHTE.device))
    output_BHTF: Tensor = (kernel or flex_attention)(query_BHTE, key_BHTE, value_BHTF, block_mask=blocks)
    return output_BHTF


@cache
def _compiled() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)


@lru_cache(maxsize=64)
def _block_mask(pattern: Pattern, stride: int, length: int, device: str) -> Any:
    from torch.nn.attention.flex_attention import create_block_mask

    looks = rule(pattern, stride)

    def allowed(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return looks(query, key)

    return create_block_mask(allowed, None, None, length, length, device=device)
