"""Sparse attention (Child et al. 2019): each position attends to about sqrt(T) earlier positions instead of all.

    full       all earlier positions
    local      its own block and the previous block
    strided    the last `stride` positions, and every `stride`-th one before them (section 4.3, strided attention)
    fixed      its own block, and the last position of each earlier block         (section 4.3, fixed attention, c = 1)

A block is `stride` positions. In the paper's two patterns, strided and fixed, information can travel from every earlier
position within two layers; with the local pattern it takes as many layers as there are blocks in between. One head
attends to both parts of a pattern.

A pattern is a rule (query position, key position) -> may attend. There are two ways to use it: `causal_mask`, a mask
for any attention of this package, and `attend_sparsely`, in which FlexAttention skips blocks that are masked
completely.

Shapes: B batch, H heads, T queries, S keys, E width of a head's keys, F width of its values.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, Literal

import torch
from torch import Tensor

Pattern = Literal["full", "local", "strided", "fixed"]
Rule = Callable[[Tensor, Tensor], Tensor]


def rule(pattern: Pattern, stride: int) -> Rule:
    """The rule (query position, key position) -> bool, True = may attend, for int64 tensors that broadcast."""

    def may_attend(query: Tensor, key: Tensor) -> Tensor:
        if pattern == "local":
            return (key <= query) & (query // stride - key // stride <= 1)
        if pattern == "strided":
            return (key <= query) & ((query - key < stride) | ((query - key) % stride == 0))
        if pattern == "fixed":
            return (key <= query) & ((query // stride == key // stride) | (key % stride == stride - 1))
        return key <= query

    return may_attend


def causal_mask(
    pattern: Pattern, stride: int, queries: int, past: int = 0, device: torch.device | None = None
) -> Tensor:
    """(1, 1, T, past + T) bool, True = may attend: a sparse `masks.causal`. Query t is at position past + t."""
    position_T = torch.arange(past, past + queries, device=device)
    key_S = torch.arange(past + queries, device=device)
    return rule(pattern, stride)(position_T[:, None], key_S)[None, None]


@dataclass(frozen=True)
class CausalPattern:
    """A pattern of a text of `length` positions that is read from its beginning, in place of a mask of all pairs."""

    pattern: Pattern
    stride: int
    length: int
    device: torch.device

    @cached_property
    def mask(self) -> Tensor:
        """(1, 1, T, T), as `causal_mask`, for attention that needs it: one for all layers."""
        return causal_mask(self.pattern, self.stride, self.length, 0, self.device)

    def rows(self, first: int, last: int) -> tuple[int, Tensor]:
        """The first key that the queries [first, last) see, and which of the keys from there on each of them sees.

        The latter is (1, 1, last - first, last - key) bool.
        """
        low = max(0, (first // self.stride - 1) * self.stride) if self.pattern == "local" else 0
        query_T, key_S = torch.arange(first, last, device=self.device), torch.arange(low, last, device=self.device)
        return low, rule(self.pattern, self.stride)(query_T[:, None], key_S)[None, None]


Allowed = Tensor | CausalPattern | None
"""Which keys a query may see: a mask; of a long text read from its beginning, a pattern; None = all."""


def mask_of(allowed: Allowed) -> Tensor | None:
    """A mask as it is, and that of a pattern."""
    return allowed.mask if isinstance(allowed, CausalPattern) else allowed


def flex_attend(
    query_BHTE: Tensor, key_BHTE: Tensor, value_BHTF: Tensor, pattern: Pattern, stride: int, kernel: Any = None
) -> Tensor:
    """`transduce.attention.blocked.attend_sparsely` by FlexAttention on any device.

    Args:
        query_BHTE: the queries.
        key_BHTE: the keys.
        value_BHTF: the values.
        pattern: see the module's table.
        stride: length of a block.
        kernel: `flex_attention`, compiled or not; None = not compiled, which is exact and slow.
    """
    from torch.nn.attention.flex_attention import flex_attention

    blocks = _block_mask(pattern, stride, query_BHTE.shape[2], str(query_BHTE.device))
    return (kernel or flex_attention)(query_BHTE, key_BHTE, value_BHTF, block_mask=blocks)


@cache
def compiled_flex_attention() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention)


@lru_cache(maxsize=64)
def _block_mask(pattern: Pattern, stride: int, length: int, device: str) -> Any:
    from torch.nn.attention.flex_attention import create_block_mask

    may_attend = rule(pattern, stride)

    def allowed(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return may_attend(query, key)

    return create_block_mask(allowed, None, None, length, length, device=device)
