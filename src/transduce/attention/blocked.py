"""Attention of long texts without a matrix of all weights, also in training: a block of queries after the other.

    output_t = sum_s drop(softmax(q_t K^T / sqrt(E)))_s v_s,   for t in a block, s among the keys that it may see

The backward pass computes each block again, with the same dropout (Chen et al. 2016, "Training deep nets with sublinear
memory cost"). Memory is that of one block. Where a block sees a window of keys, time is linear in the length.

Shapes: B batch, H heads, G heads of keys and values, T queries, S keys, E width of a head's keys, F of its values, N
queries of a block.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.random import fork_rng

from transduce.attention.scaled_dot_product import attend, attend_with_weights
from transduce.attention.sparse import (
    Allowed,
    CausalPattern,
    Pattern,
    compiled_flex_attention,
    flex_attend,
    mask_of,
)

LONG = 1024  # keys from which texts are read in blocks
QUERIES = 128  # N


def attend_text(
    query_BHTE: Tensor,
    key_BGSE: Tensor,
    value_BGSF: Tensor,
    allowed: Allowed,
    dropout_rate: float = 0.0,
    bias: Tensor | None = None,
) -> Tensor:
    """The output (B, H, T, F) of scaled dot-product attention, as `attend`; of long texts without a matrix of weights.

    Args:
        allowed: as there; or the causal pattern of a text that is read from its beginning.
    """
    pattern = allowed if isinstance(allowed, CausalPattern) else None
    in_blocks = (dropout_rate and key_BGSE.shape[2] >= LONG) or (pattern and pattern.pattern == "local")
    if in_blocks and bias is None and query_BHTE.device.type == "cpu":
        found: Tensor = _InBlocks.apply(query_BHTE, key_BGSE, value_BGSF, allowed, dropout_rate)  # type: ignore[no-untyped-call]
        return found
    return attend(query_BHTE, key_BGSE, value_BGSF, mask_of(allowed), dropout_rate, bias)


def attend_sparsely(query_BHTE: Tensor, key_BHTE: Tensor, value_BHTF: Tensor, pattern: Pattern, stride: int) -> Tensor:
    """Sparse causal self-attention (B, H, T, F), equal to `attend` with `causal_mask` up to rounding.

    On CUDA it uses compiled FlexAttention (Dong et al. 2024), which skips completely masked blocks and never holds T x
    T scores. On other devices it is `attend_text`, because FlexAttention has no gradient on CPUs.
    """
    if query_BHTE.device.type == "cuda":
        return flex_attend(query_BHTE, key_BHTE, value_BHTF, pattern, stride, compiled_flex_attention())
    allowed = CausalPattern(pattern, stride, query_BHTE.shape[2], query_BHTE.device)
    return attend_text(query_BHTE, key_BHTE, value_BHTF, allowed)


class _Block(NamedTuple):
    """Queries [first, last), the keys [low, high) that they see, and which of these see which; None = all see all."""

    first: int
    last: int
    low: int
    high: int
    mask: Tensor | None

    def of(self, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The parts that take part."""
        keys = slice(self.low, self.high)
        return query[:, :, self.first : self.last], key[:, :, keys], value[:, :, keys]


class _InBlocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, allowed: Allowed, rate: float) -> Tensor:
        ctx.save_for_backward(query, key, value)
        ctx.allowed, ctx.rate, ctx.random = allowed, rate, torch.get_rng_state() if rate else None
        ctx.precision = torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cpu")
        blocks = _blocks(query.shape[2], key.shape[2], allowed)
        outputs = [attend_with_weights(*each.of(query, key, value), each.mask, rate)[0] for each in blocks]
        return torch.cat(outputs, 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BHTF: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value = ctx.saved_tensors
        dtype, mixed = ctx.precision
        dquery = torch.empty_like(query)
        sums = torch.promote_types(key.dtype, torch.float32)
        dkey, dvalue = torch.zeros(key.shape, dtype=sums), torch.zeros(value.shape, dtype=sums)
        with fork_rng(devices=[], enabled=ctx.random is not None), torch.autocast("cpu", dtype, enabled=mixed):
            if ctx.random is not None:
                torch.set_rng_state(ctx.random)  # so that dropout draws the same once more
            for block in _blocks(query.shape[2], key.shape[2], ctx.allowed):
                queries, keys, values = (each.detach().requires_grad_() for each in block.of(query, key, value))
                parts = queries, keys, values
                with torch.enable_grad():
                    output, _ = attend_with_weights(*parts, block.mask, ctx.rate)
                found = torch.autograd.grad(output, parts, gradient_BHTF[:, :, block.first : block.last])
                of_query, of_key, of_value = block.of(dquery, dkey, dvalue)
                of_query.copy_(found[0])
                of_key += found[1]
                of_value += found[2]
        return dquery, dkey.to(key.dtype), dvalue.to(value.dtype), None, None


def _blocks(queries: int, keys: int, allowed: Allowed) -> Iterator[_Block]:
    for first in range(0, queries, QUERIES):
        last = min(first + QUERIES, queries)
        if isinstance(allowed, CausalPattern):
            low, mask = allowed.rows(first, last)
            yield _Block(first, last, low, last, mask)
        else:
            cut = allowed is not None and allowed.shape[2] > 1
            yield _Block(first, last, 0, keys, allowed[:, :, first:last] if cut and allowed is not None else allowed)
