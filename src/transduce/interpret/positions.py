"""Data for figures of positions: tables and clocks of absolute positions, biases of relative ones.

Shapes: T positions, D width, H heads, E width of a head, K distinct distances.
"""

from typing import Any

import torch
from torch import Tensor, nn

from transduce.attention.heads import MultiHeadAttention
from transduce.attention.positions import Learned, Sinusoidal, clock, clock_of, dot_products, sinusoidal
from transduce.attention.relative import Relative, Rotary, Shaw
from transduce.interpret.numbers import in_base64

WIDTH = 128  # without a model


def placed(model: nn.Module | None, length: int, width: int | None = None) -> dict[str, Any]:
    """The positions of a model for `length` positions; without a model, sinusoidal positions of `width`.

    The result describes the first module with positions. It contains "kind", and for each kind:

        sinusoidal   table (T, D), clock (T, D / 2) in radians, dots (T, T) with the diagonal 0
        learned      table (T, D), dots (T, T); T no more than the model has
        rotary       clock (T, E / 2) in radians
        shaw         table (K, E) of the distances' vectors, dots (K, K)
        other relative positions, under their own name: bias (H, T, T)
        none         nothing
    """
    if model is None:
        return _sinusoidal(length, width or WIDTH)
    for module in model.modules():
        if isinstance(module, Sinusoidal):
            return _sinusoidal(length, module.width)
        if isinstance(module, Learned):
            return _table("learned", module.weight_TD[:length].detach())
        if isinstance(module, MultiHeadAttention) and module.positions is not None:
            return _relative(module.positions, module, length)
    return {"kind": "none", "length": length}


def _sinusoidal(length: int, width: int) -> dict[str, Any]:
    width += width % 2
    table = {"kind": "sinusoidal", "length": length, "width": width, "table": in_base64(sinusoidal(length, width))}
    return {**table, "clock": in_base64(clock(length, width)), "dots": in_base64(dot_products(length, width))}


def _table(kind: str, table_TD: Tensor) -> dict[str, Any]:
    dots_TT = (table_TD.double() @ table_TD.double().T).fill_diagonal_(0.0)
    length, width = table_TD.shape
    return {"kind": kind, "length": length, "width": width, "table": in_base64(table_TD), "dots": in_base64(dots_TT)}


@torch.inference_mode()
def _relative(positions: Relative, module: MultiHeadAttention, length: int) -> dict[str, Any]:
    if isinstance(positions, Rotary):
        hands = in_base64(clock_of(positions.frequencies, length))
        return {"kind": "rotary", "length": length, "width": module.head_width, "clock": hands}
    if isinstance(positions, Shaw):
        return _table("shaw", positions.key_KE.detach())
    nothing_BHTE = module.query.weight.new_zeros(1, module.heads, length, module.head_width)
    bias = positions.bias(nothing_BHTE, length, 0)
    known = {"kind": type(positions).__name__.lower(), "length": length, "heads": module.heads}
    if bias is None:
        return known
    return {**known, "bias": in_base64(bias.expand(1, module.heads, length, length)[0])}
