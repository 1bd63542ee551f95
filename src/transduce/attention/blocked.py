"""Attention of long texts without a matrix of all weights, also in training: a block of queries after the other.

    output_t = sum_s drop(softmax(q_t K^T / sqrt(E)))_s v_s,   for t in a block, s among the keys that it may see

The backward pass computes each block again, with the same dropout (Chen et al. 2016, "Training deep nets with sublinear
memory cost"). Memory is that of one block. Where a block sees a window of keys, time is linear in the length.

Shapes: B batch, H heads, G heads of keys and values, T queries, S keys, E width of a head's keys, F of its values, N
queries of a block.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transduce.attention.scaled_dot_product import attend, attend_with_weights
from transduce.attention.sparse import Allowed, CausalPattern

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
    causal = isinstance(allowed, CausalPattern)
    window = causal and allowed.pattern == "local"  # type: ignore[union-attr]
    in_blocks = (dropout_rate and key_BGSE.shape[2] >= LONG) or window
    if in_blocks and bias is None and query_BHTE.device.type == "cpu":
        found: Tensor = _InBlocks.apply(query_BHTE, key_BGSE, value_BGSF, allowed, dropout_rate)  # type: ignore[no-untyped-call]
        return found
    mask = allowed.mask(query_BHTE.device) if isinstance(allowed, CausalPattern) else allowed
    return attend(query_BHTE, key_BGSE, value_BGSF, mask, dropout_rate, bias)


class _InBlocks(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, allowed: Allowed, rate: float) -> Tensor:
        ctx.save_for_backward(query, key, value)
        ctx.allowed, ctx.rate = allowed, rate
        ctx.random = torch.get_rng_state() if rate else None
        ctx.precision = torch.get_autocast_dtype("cpu"), torch.is_autocast_enabled("cpu")
        blocks = _blocks(query.shape[2], key.shape[2], allowed, query.device)
        return torch.cat([_block(query, key, value, block, rate) for block in blocks], 2)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_BHTF: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value = ctx.saved_tensors
        dquery = torch.empty_like(query)
        sums = torch.promote_types(key.dtype, torch.float32)
        dkey, dvalue = torch.zeros(key.shape, dtype=sums), torch.zeros(value.shape, dtype=sums)
        dtype, mixed = ctx.precision
        with _random_numbers(ctx.random), torch.autocast("cpu", dtype, enabled=mixed):
            for block in _blocks(query.shape[2], key.shape[2], ctx.allowed, query.device):
                first, last, low, high, mask = block
                parts = query[:, :, first:last], key[:, :, low:high], value[:, :, low:high]
                queries, keys, values = (each.detach().requires_grad_() for each in parts)
                with torch.enable_grad():
                    output, _ = attend_with_weights(queries, keys, values, mask, ctx.rate)
                of_block = gradient_BHTF[:, :, first:last]
                dquery[:, :, first:last], dkeys, dvalues = torch.autograd.grad(
                    output, (queries, keys, values), of_block
                )
                dkey[:, :, low:high] += dkeys
                dvalue[:, :, low:high] += dvalues
        return dquery, dkey.to(key.dtype), dvalue.to(value.dtype), None, None


Block = tuple[int, int, int, int, Tensor | None]  # queries from, to; keys from, to; which of these may see which


def _blocks(queries: int, keys: int, allowed: Allowed, device: torch.device) -> Iterator[Block]:
    for first in range(0, queries, QUERIES):
        last = min(first + QUERIES, queries)
        if isinstance(allowed, CausalPattern):
            low, mask = allowed.rows(first, last, device)
            yield first, last, low, last, mask
        else:
            one_for_all = allowed is None or allowed.shape[2] == 1
            yield first, last, 0, keys, allowed if one_for_all else allowed[:, :, first:last]  # type: ignore[index]


def _block(query: Tensor, key: Tensor, value: Tensor, block: Block, rate: float) -> Tensor:
    """The output (B, H, N, F) of a block."""
    first, last, low, high, mask = block
    return attend_with_weights(query[:, :, first:last], key[:, :, low:high], value[:, :, low:high], mask, rate)[0]


@contextmanager
def _random_numbers(state: Tensor | None) -> Iterator[None]:
    """Draw again what was drawn from this state on, and then go on as before."""
    if state is None:
        yield
        return
    now = torch.get_rng_state()
    torch.set_rng_state(state)
    try:
        yield
    finally:
        torch.set_rng_state(now)
