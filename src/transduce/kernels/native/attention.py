"""Attention over short sequences in one kernel for the whole of it (`attention.h`).

Shapes: B batch, H heads, G heads of keys and values, T queries, S keys, E width of a head.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from transduce.kernels.native import kernel
from transduce.kernels.native.tensors import serves


def can_attend(query_BHTE: Tensor, key_BGSE: Tensor, value_BGSE: Tensor, allowed: Tensor | None) -> bool:
    """Whether `attend` takes these: of one type and one width, all heads with one mask."""
    types = {each.dtype for each in (query_BHTE, key_BGSE, value_BGSE)}
    alike = len(types) == 1 and key_BGSE.shape == value_BGSE.shape
    one_mask = allowed is None or allowed.ndim < 3 or allowed.shape[-3] == 1
    return alike and one_mask and 0 not in key_BGSE.shape and serves(query_BHTE, key_BGSE, value_BGSE)


def attend(query_BHTE: Tensor, key_BGSE: Tensor, value_BGSE: Tensor, allowed: Tensor | None = None) -> Tensor:
    """softmax(q k^T / sqrt(E)) v, (B, H, T, E); `allowed` as in `scaled_dot_product`, the same for all heads."""
    read: Tensor = _Attention.apply(query_BHTE, key_BGSE, value_BGSE, allowed)  # type: ignore[no-untyped-call]
    return read


class _Attention(torch.autograd.Function):
    """Weights are computed anew on the way back: for short sequences that is cheaper than to keep them."""

    @staticmethod
    def forward(ctx: Any, query_BHTE: Tensor, key_BGSE: Tensor, value_BGSE: Tensor, allowed: Tensor | None) -> Tensor:
        inputs = [_by_rows(each) for each in (query_BHTE, key_BGSE, value_BGSE)]
        ctx.allowed = _mask(allowed, query_BHTE, key_BGSE)
        ctx.save_for_backward(*inputs)
        read_BHTE = _like(query_BHTE)
        arguments = [*_views(*inputs), *_allowed(ctx.allowed), *_views(read_BHTE)]
        kernel("attention", query_BHTE.dtype)(*arguments, *_sizes(query_BHTE, key_BGSE))
        return read_BHTE

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dread_BHTE: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        inputs = ctx.saved_tensors
        query_BHTE, key_BGSE, _ = inputs
        gradients = dquery, dkey, dvalue = tuple(_like(each) for each in inputs)
        arguments = [*_views(*inputs), *_allowed(ctx.allowed), *_views(_by_rows(dread_BHTE), *gradients)]
        kernel("attention_gradient", query_BHTE.dtype)(*arguments, *_sizes(query_BHTE, key_BGSE))
        return dquery, dkey, dvalue, None


def _by_rows(x_BHTE: Tensor) -> Tensor:
    """x, laid out anew where the elements of a row do not lie side by side."""
    return x_BHTE if x_BHTE.stride(-1) == 1 else x_BHTE.contiguous()


def _like(x_BHTE: Tensor) -> Tensor:
    """Room for so much, with a position's heads side by side, as the projections want it."""
    return x_BHTE.new_empty(x_BHTE.transpose(1, 2).shape).transpose(1, 2)


def _mask(allowed: Tensor | None, query_BHTE: Tensor, key_BGSE: Tensor) -> Tensor | None:
    """(B, 1, T, S), its rows lying side by side."""
    if allowed is None:
        return None
    keys = key_BGSE.shape[2]
    allowed = allowed.expand(*allowed.shape[:-1], keys)
    allowed = allowed if allowed.stride(-1) == 1 or keys == 1 else allowed.contiguous()
    return allowed.expand(len(query_BHTE), 1, query_BHTE.shape[2], keys)


def _views(*tensors_BHTE: Tensor) -> list[Tensor | int]:
    """Each with its strides of batch, position and head."""
    return [part for each in tensors_BHTE for part in (each, each.stride(0), each.stride(2), each.stride(1))]


def _allowed(mask_B1TS: Tensor | None) -> list[Tensor | int | None]:
    return [None, 0, 0] if mask_B1TS is None else [mask_B1TS, mask_B1TS.stride(0), mask_B1TS.stride(2)]


def _sizes(query_BHTE: Tensor, key_BGSE: Tensor) -> list[int]:
    batch, heads, queries, width = query_BHTE.shape
    return [batch, heads, key_BGSE.shape[1], queries, key_BGSE.shape[2], width]
