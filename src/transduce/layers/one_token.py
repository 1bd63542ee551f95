"""A decoder's next token in one call, where its blocks are made of the plainest parts (`transduce.native.decoder`).

Shapes: N hypotheses, B sources, S source positions, D model width.
"""

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention import KeyValue, MultiHeadAttention
from transduce.attention.branches import Branch, Shared
from transduce.attention.capture import active_record
from transduce.layers.block import Block
from transduce.layers.feedforward import FeedForward
from transduce.layers.norms import LayerNorm
from transduce.layers.residual import Residual
from transduce.linear import Linear, predicts
from transduce.native import decoder as native
from transduce.native.linear import Packed


class OneToken:
    """All blocks of a decoder as one kernel; made of packed blocks, whose parameters must not change any more."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        first = blocks[0]
        norm = cast(LayerNorm, first.self_residual.norm)
        weights = [_weights(block) for block in blocks]
        pre = first.self_residual.placement == "pre"
        self.decoder = native.Decoder(weights, first.self_attention.heads, pre, norm.eps)
        self._hooks = hooks_of([module for block in blocks for module in block.modules()])

    def serves(self, x_N1D: Tensor, past: Sequence[KeyValue | Branch], sources: Sequence[KeyValue | Shared]) -> bool:
        """Whether hypotheses share what they attend to, and nobody looks on: no capture, no hook, no gradient."""
        return isinstance(past[0], Branch) and self.reads(x_N1D, sources)

    def reads(self, x: Tensor, sources: Sequence[KeyValue | Shared]) -> bool:
        """The same of the sources alone."""
        shared = isinstance(sources[0], Shared)
        return shared and predicts(x) and active_record() is None and not any(self._hooks)

    def step(
        self, x_N1D: Tensor, past: Sequence[KeyValue | Branch], sources: Sequence[KeyValue | Shared]
    ) -> tuple[Tensor, tuple[Branch, ...]]:
        """As `Stack.extend_causally` with one token: what leaves the last block, (N, 1, D), and the state behind it."""
        past, sources = cast(Sequence[Branch], past), cast(Sequence[Shared], sources)
        before = past[0].family
        stores = [branch.store.grown(before.columns, before.groups.widest) for branch in past]
        said = native.Said(
            [store.room for store in stores], before.groups.source_N, before.groups.rank_N, before.past_NC
        )
        x_ND = self.decoder.step(x_N1D[:, 0], said, read_from(sources))
        return x_ND[:, None], tuple(Branch(store, before.grown) for store in stores)


def read_from(sources: Sequence[Shared]) -> native.Read:
    """What hypotheses share of their sources, for a kernel."""
    first = sources[0]
    real_BS = first.allowed_B11S[:, 0, 0]
    return native.Read([shared.source for shared in sources], first.family.groups.source_N, real_BS)


def norm_of(norm: nn.Module) -> native.Norm | None:
    """Its parameters."""
    return native.Norm(norm.weight, norm.bias) if isinstance(norm, LayerNorm) else None


def hooks_of(modules: Iterable[nn.Module]) -> list[dict[int, Any]]:
    """Where those who look on at what goes through these modules are entered."""
    return [hooks for each in modules for hooks in (each._forward_hooks, each._forward_pre_hooks)]


def in_one_call(blocks: Sequence[nn.Module]) -> OneToken | None:
    """`blocks` as one kernel; None where a part is none of those that it knows, or is not packed."""
    plain = [block for block in blocks if type(block) is Block and _is_plain(block)]
    return OneToken(plain) if plain and len(plain) == len(blocks) else None


def _is_plain(block: Block) -> bool:
    cross = block.cross_attention
    residuals = (block.self_residual, block.cross_residual, block.feed_forward_residual)
    feed_forward = block.feed_forward
    return (
        cross is not None
        and all(_is_plain_attention(each) for each in (block.self_attention, cross))
        and all(type(each) is Residual and type(each.norm) is LayerNorm for each in residuals)
        and type(feed_forward) is FeedForward
        and feed_forward.linear is None
        and feed_forward.activation is F.relu
        and all(isinstance(each.packed, Packed) for each in _products(block))
    )


def _is_plain_attention(attention: MultiHeadAttention) -> bool:
    one_to_one = attention.heads == attention.key_value_heads
    return type(attention) is MultiHeadAttention and attention.can_share and one_to_one and attention.positions is None


def _products(block: Block) -> list[Linear]:
    own, cross, forward = block.self_attention, block.cross_attention, block.feed_forward
    assert cross is not None
    return [own.query, own.key_value, own.output, cross.query, cross.output, forward.inner, forward.outer]


def _weights(block: Block) -> native.Block:
    packed = [cast(Packed, each.packed) for each in _products(block)]
    residuals = (block.self_residual, cast(Residual, block.cross_residual), block.feed_forward_residual)
    own, cross, forward = (cast(native.Norm, norm_of(each.norm)) for each in residuals)
    return native.Block((own, cross, forward), *packed)
