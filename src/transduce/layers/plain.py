"""Which blocks a kernel knows (`transduce.native.decoder`), and how they are handed over to it.

Shapes: D model width.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch.nn.functional as F
from torch import nn

from transduce.attention import MultiHeadAttention
from transduce.attention.relative import Rotary
from transduce.layers.block import Block
from transduce.layers.feedforward import FeedForward
from transduce.layers.norms import LayerNorm
from transduce.layers.residual import Residual
from transduce.linear import Linear
from transduce.native import decoder as native
from transduce.native.linear import Packed


def plain_blocks(blocks: Sequence[nn.Module]) -> list[Block] | None:
    """`blocks`, if all of them are made of parts that the kernel knows, and are packed; else None."""
    plain = [block for block in blocks if type(block) is Block and _is_plain(block)]
    return plain if plain and len(plain) == len(blocks) else None


class Parts:
    """What plain blocks are made of, as a kernel took it over."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._hooks = hooks_of([each for block in blocks for each in block.modules()])
        self._packed = [(each, each.packed) for block in blocks for each in _products(block) if each]

    def are_untouched(self) -> bool:
        """Whether nobody has hooked one or packed it anew since."""
        return not any(self._hooks) and all(each.packed is packed for each, packed in self._packed)


def in_kernel(blocks: Sequence[Block]) -> native.Blocks:
    """Plain blocks, whose parameters must not change any more."""
    first = blocks[0]
    norm = cast(LayerNorm, first.self_residual.norm)
    pre, own = first.self_residual.placement == "pre", first.self_attention
    turns = own.positions.turns if isinstance(own.positions, Rotary) else None
    return native.Blocks([_weights(block) for block in blocks], own.heads, pre, norm.eps, turns)


def norm_of(norm: nn.Module) -> native.Norm | None:
    """Its parameters, (D,) each."""
    return native.Norm(norm.weight, norm.bias) if isinstance(norm, LayerNorm) else None


def hooks_of(modules: Iterable[nn.Module]) -> list[dict[int, Any]]:
    """Where those who look on at what goes through these modules are entered."""
    return [hooks for each in modules for hooks in (each._forward_hooks, each._forward_pre_hooks)]


def _is_plain(block: Block) -> bool:
    attentions = (block.self_attention, block.cross_attention)
    feed_forward = block.feed_forward
    return (
        all(_is_plain_attention(each) for each in attentions if each)
        and all(type(each) is Residual and type(each.norm) is LayerNorm for each in _residuals(block) if each)
        and type(feed_forward) is FeedForward
        and feed_forward.linear is None
        and feed_forward.activation is F.relu
        and all(isinstance(each.packed, Packed) for each in _products(block) if each)
    )


def _is_plain_attention(attention: MultiHeadAttention) -> bool:
    one_to_one = attention.heads == attention.key_value_heads
    return type(attention) is MultiHeadAttention and attention.can_share and one_to_one


def _products(block: Block) -> list[Linear | None]:
    own, cross, forward = block.self_attention, block.cross_attention, block.feed_forward
    crossing = [cross.query, cross.output] if cross else [None, None]
    return [own.query, own.key_value, own.output, *crossing, forward.inner, forward.outer]


def _residuals(block: Block) -> list[Residual | None]:
    return [block.self_residual, block.cross_residual, block.feed_forward_residual]


def _weights(block: Block) -> native.Block:
    packed = [cast(Packed, each.packed) if each else None for each in _products(block)]
    own, cross, forward = (norm_of(each.norm) if each else None for each in _residuals(block))
    assert own and forward
    return native.Block((own, cross, forward), *packed)  # type: ignore[arg-type]  # only what crosses may be None
