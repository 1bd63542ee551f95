"""Switching off one attention head, to measure how much the model needs it.

    with without_head(model.encoder.blocks[0].self_attention, 2):
        model(source, target)

Inside the `with` block, the head's part of the concatenated outputs [head_1; ..; head_H] is set to 0, as if its columns
of W^O were 0 (Michel et al. 2019, section 3.1, xi_h = 0). Outside the block nothing is added to the computation.

Shapes: B batch, T queries, E width of a head, M = H E.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from transduce.attention.cross_attention import CrossAttention
from transduce.attention.heads import MultiHeadAttention
from transduce.attention.linear import LinearAttention
from transduce.core.errors import InputError

EVERY = slice(None)
HasHeads = MultiHeadAttention | LinearAttention | CrossAttention


@contextmanager
def without_head(attention: nn.Module, head: int, rows: slice = EVERY) -> Iterator[None]:
    """Set the output of one head of `attention` to 0 inside the `with` block.

    A `CrossAttention` has no W^O, so the head's part of the context is set to 0. The attention weights
    that it returns do not change.

    Args:
        attention: the module whose head is switched off.
        head: number of the head, counted from 0.
        rows: the rows of the batch in which the head is switched off; by default all.

    Raises:
        InputError: the module has no heads, or no head with this number.
    """
    if not isinstance(attention, HasHeads):
        raise InputError(f"{type(attention).__name__} has no separate heads to switch off.")
    if not 0 <= head < attention.heads:
        raise InputError(f"there is no head {head}; heads are numbered from 0 to {attention.heads - 1}.")

    def silent(joined_BTM: Tensor) -> Tensor:
        width = joined_BTM.shape[-1] // attention.heads
        silenced_BTM = joined_BTM.clone()
        silenced_BTM[rows, :, head * width : (head + 1) * width] = 0
        return silenced_BTM

    def before_output(module: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        return (silent(given[0]), *given[1:])

    def after_reading(module: nn.Module, given: tuple[Any, ...], read: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        return silent(read[0]), read[1]

    if isinstance(attention, CrossAttention):
        hook = attention.register_forward_hook(after_reading)
    else:
        hook = attention.output.register_forward_pre_hook(before_output)
    try:
        yield
    finally:
        hook.remove()
