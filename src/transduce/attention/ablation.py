"""A head switched off, to see what the model is without it.

    with without_head(model.encoder.blocks[0].self_attention, 2):
        model(source, target)

The head's part of the joined outputs [head_1; ..; head_H] is 0 while the `with` lasts, which is what W^O without that
head's columns would give (Michel et al. 2019, section 3.1, xi_h = 0). Outside it nothing is computed for it.

Shapes: B batch, T queries, E width of a head, M = H E.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from transduce.attention.cross_attention import Reader
from transduce.attention.heads import MultiHeadAttention
from transduce.attention.linear import LinearAttention
from transduce.core.errors import InputError

EVERY = slice(None)
HasHeads = MultiHeadAttention | LinearAttention | Reader


@contextmanager
def without_head(attention: nn.Module, head: int, rows: slice = EVERY) -> Iterator[None]:
    """Head number `head`, from 0, of `attention` says 0 inside.

    Of a reader, which has no W^O, its part of the context is 0; the weights that it gives back stay.

    Args:
        rows: of the batch, those that go without it; by default all.

    Raises:
        InputError: there is no such head, or no heads at all.
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

    if isinstance(attention, Reader):
        hook = attention.register_forward_hook(after_reading)
    else:
        hook = attention.output.register_forward_pre_hook(before_output)
    try:
        yield
    finally:
        hook.remove()
