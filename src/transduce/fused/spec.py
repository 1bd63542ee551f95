"""Which blocks the kernel supports (`transduce.kernels.native.decoder`), and how they are passed to it.

Shapes: D model width, or that of a head.
"""

from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any, cast

from torch import nn
from torch.nn.modules.module import (
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.utils.hooks import RemovableHandle

from transduce.attention import MultiHeadAttention
from transduce.attention.cross_attention import CrossAttention
from transduce.attention.dropout import Dropout
from transduce.attention.normalizers import Softmax
from transduce.attention.relative import Rotary
from transduce.attention.scores import ScaledDot
from transduce.kernels.matmul import Linear, Snapshot
from transduce.kernels.native import decoder as native
from transduce.kernels.native.linear import Packed
from transduce.layers.block import Block
from transduce.layers.feedforward import GATED, PLAIN, FeedForward
from transduce.layers.norms import LayerNorm, RMSNorm
from transduce.layers.pointer import Pointer
from transduce.layers.residual import Residual
from transduce.layers.ssru_stack import Ssru, SsruBlock

SETTINGS = {
    MultiHeadAttention: ("heads", "key_value_heads", "head_width", "can_share"),
    Rotary: ("head_width", "base", "scaling"),
    Residual: ("placement",),
    LayerNorm: ("eps",),
    RMSNorm: ("eps",),
    nn.RMSNorm: ("eps",),
    FeedForward: ("activation",),
}
"""For each kind of part, the attributes that determine its behaviour. After changing one, call `pack_all` again."""
ACTIVATIONS = {(PLAIN | GATED)[name]: activation for name, activation in native.FEED_FORWARDS.items()}
"""The kernel's name of each activation of `transduce.layers.feedforward`."""


AnyBlock = Block | SsruBlock


def plain_blocks(blocks: Sequence[nn.Module]) -> list[AnyBlock] | None:
    """`blocks`, if all are equal, packed and made of supported parts; else None."""
    plain = [block for block in blocks if isinstance(block, AnyBlock) and _is_plain(block)]
    alike = len({(type(block), _settings(block), _hidden(block)) for block in plain}) == 1
    return plain if alike and len(plain) == len(blocks) else None


def is_exactly(module: nn.Module | None, kind: type[nn.Module], parts: str = "", **shapes: tuple[int, ...]) -> bool:
    """Whether a module is exactly of this class, unmodified, with these parameters and submodules and nothing else.

    parts: the names of its submodules, separated by spaces.
    shapes: the shapes of its parameters, by name.
    """
    if type(module) is not kind or "forward" in vars(module):
        return False
    parameters = {name: tuple(each.shape) for name, each in module._parameters.items() if each is not None}
    modules = {name for name, each in module._modules.items() if each is not None}
    return parameters == shapes and modules == set(parts.split()) and not module._buffers


class Parts:
    """The parts of plain blocks when a kernel was made from them. Checking all of them takes 0.1 ms.

    around: the module that contains the blocks.
    """

    def __init__(self, blocks: Sequence[AnyBlock], around: nn.Module) -> None:
        modules = [around, *(each for block in blocks for each in block.modules())]
        self._hooks = hooks_of(modules[1:])
        self._products = [each for block in blocks for each in _products(block) if each]
        self._packed = [each.packed for each in self._products]
        self._linears = [each._parameters for each in self._products]
        self._norms = [each._parameters for block in blocks for each in _norms(block)]
        tables = [table for each in modules for table in (each._parameters, each._modules, each._buffers)]
        self._tables = [(table, dict(table)) for table in tables if table]
        self._empty = [table for table in tables if not table]
        self._changes, self._hooked = CHANGES.count, -1
        self._made_of = Snapshot(*self._tensors())

    def are_untouched(self) -> bool:
        """Whether no part has been hooked or packed again since."""
        hooked = RemovableHandle.next_id  # of the next hook of all
        if hooked != self._hooked:
            if any(self._hooks):
                return False
            self._hooked = hooked
        return all(each.packed is packed for each, packed in zip(self._products, self._packed, strict=True))

    def are_unchanged(self) -> bool:
        """Whether all parts and their values are unchanged, and nothing was added."""
        if self._changes != CHANGES.count:
            if any(self._empty) or any(not _same(*each) for each in self._tables):
                return False
            self._changes = CHANGES.count
        return self._made_of.shows(*self._tensors())

    def _tensors(self) -> tuple[list[Any], list[Any]]:
        """The tensors that the kernel has copied, and those that it reads in place."""
        biases = [table["bias"] for table in self._linears if table["bias"] is not None]
        return [table["weight"] for table in self._linears], biases + [
            x for table in self._norms for x in table.values()
        ]


class _Changes:
    """Counts the parameters, buffers and submodules that were assigned to any module since this was imported."""

    count = 0

    def __call__(self, *given: object) -> None:
        self.count += 1


CHANGES = _Changes()
register_module_parameter_registration_hook(CHANGES)
register_module_buffer_registration_hook(CHANGES)
register_module_module_registration_hook(CHANGES)


def _same(table: dict[str, Any], then: dict[str, Any]) -> bool:
    return list(table) == list(then) and all(map(is_, table.values(), then.values()))


def in_kernel(blocks: Sequence[AnyBlock]) -> native.Blocks:
    """Plain blocks in the form that the kernel takes."""
    first = blocks[0]
    residual = first.feed_forward_residual
    norm, pre = cast(LayerNorm | RMSNorm, residual.norm), residual.placement == "pre"
    own = first.self_attention if isinstance(first, Block) else first.cross_attention
    turns = own.positions.turns if isinstance(own.positions, Rotary) else None
    activation = ACTIVATIONS[first.feed_forward.activation]
    return native.Blocks(
        [_weights(block) for block in blocks], _heads(own), pre, cast(float, norm.eps), turns, activation
    )


def norm_of(norm: nn.Module) -> native.Norm | None:
    """Its parameters, (D,) each; None where it is none."""
    if isinstance(norm, nn.RMSNorm):
        return native.Norm(norm.weight, None)
    return native.Norm(norm.weight, norm.bias) if isinstance(norm, LayerNorm) else None


def hooks_of(modules: Iterable[nn.Module]) -> list[dict[int, Any]]:
    """The dictionaries that hold the hooks of these modules."""
    return [hooks for each in modules for hooks in (each._forward_hooks, each._forward_pre_hooks)]


def _is_plain(block: AnyBlock) -> bool:
    return (_attends_plainly(block) if isinstance(block, Block) else _recurs_plainly(block)) and _is_plain_around(block)


def _is_plain_around(block: AnyBlock) -> bool:
    """The same of what stands around attention, which is plain."""
    residuals = [each for each in _residuals(block) if each]
    width = _width(block)
    return (
        all(_is_plain_residual(each, width) for each in residuals)
        and _is_plain_feed_forward(block.feed_forward, width)
        and len({each.placement for each in residuals}) == 1
        and len({each.eps for each in _norms(block)}) == 1
        and all(isinstance(each.up_to_date(), Packed) for each in _products(block) if each)
    )


def _width(block: AnyBlock) -> int:
    """D, by an attention that is plain."""
    attention = block.self_attention if isinstance(block, Block) else block.cross_attention
    return attention.query.in_features


def _attends_plainly(block: Block) -> bool:
    own, cross = block.self_attention, block.cross_attention
    crossing = " cross_attention cross_residual" if cross else ""
    return (
        is_exactly(block, Block, "self_attention self_residual feed_forward feed_forward_residual" + crossing)
        and all(_is_plain_attention(each) for each in (own, cross) if each)
        and (cross is None or (_heads(cross) == _heads(own) and cross.positions is None and cross.query_norm is None))
    )


def _recurs_plainly(block: SsruBlock) -> bool:
    unit, cross = block.unit, block.cross_attention
    parts = "unit unit_residual cross_attention cross_residual feed_forward feed_forward_residual"
    return (
        is_exactly(block, SsruBlock, parts)
        and _is_plain_attention(cross)
        and cross.positions is None
        and is_exactly(unit, Ssru, "forget value")
        and _is_plain_linear(unit.forget, _width(block), _width(block))
        and is_exactly(unit.value, Linear, weight=(_width(block), _width(block)))
    )


def _is_plain_attention(attention: MultiHeadAttention) -> bool:
    if type(attention) is not MultiHeadAttention:
        return False
    positions, head_norms = attention.positions, [attention.query_norm, attention.key_norm]
    normed = any(head_norms)
    parts = "query key_value output score weigh" + " positions" * bool(positions) + " query_norm key_norm" * normed
    heads, groups, head = _heads(attention)
    width = attention.output.out_features
    return (
        is_exactly(attention, MultiHeadAttention, parts)
        and attention.can_share
        and heads % groups == 0
        and _is_plain_linear(attention.query, width, heads * head)
        and _is_plain_linear(attention.key_value, width, 2 * groups * head)
        and _is_plain_linear(attention.output, heads * head, width)
        and is_exactly(attention.score, ScaledDot)
        and is_exactly(attention.weigh, Softmax)
        and (positions is None or is_exactly(positions, Rotary))
        and (not normed or all(is_exactly(each, nn.RMSNorm, weight=(head,)) for each in head_norms))
    )


def _heads(attention: MultiHeadAttention) -> native.Heads:
    return native.Heads(attention.heads, attention.key_value_heads, attention.head_width)


def _is_plain_feed_forward(layer: FeedForward, width: int) -> bool:
    gated = layer.linear is not None
    if not is_exactly(layer, FeedForward, "inner outer dropout" + " linear" * gated) or type(layer.inner) is not Linear:
        return False
    hidden = layer.inner.out_features
    return (
        _is_plain_linear(layer.inner, width, hidden)
        and (layer.linear is None or _is_plain_linear(layer.linear, width, hidden))
        and _is_plain_linear(layer.outer, hidden, width)
        and is_exactly(layer.dropout, Dropout)
        and layer.activation in ACTIVATIONS
    )


def _is_plain_residual(residual: Residual, width: int) -> bool:
    return is_exactly(residual, Residual, "norm") and is_plain_norm(residual.norm, width)


def is_plain_norm(norm: nn.Module, width: int) -> bool:
    """Whether it is exactly a layer norm or RMS norm over `width` features, whose parameters lie side by side."""
    plain = is_exactly(norm, LayerNorm, weight=(width,), bias=(width,)) or is_exactly(norm, RMSNorm, weight=(width,))
    return plain and norm.normalized_shape == (width,) and all(each.is_contiguous() for each in norm.parameters())


def is_plain_pointer(pointer: Pointer, width: int) -> bool:
    """Whether it is exactly a pointer, between a decoder and an encoder of this width."""
    if not is_exactly(pointer, Pointer, "query reader generate") or type(pointer.query) is not Linear:
        return False
    reader = pointer.reader
    return (
        _is_plain_linear(pointer.query, width, width)
        and is_exactly(reader, CrossAttention, "query key value score weigh")
        and reader.heads == 1
        and all(is_exactly(each, nn.Identity) for each in (reader.query, reader.key, reader.value))
        and is_exactly(reader.score, ScaledDot)
        and is_exactly(reader.weigh, Softmax)
        and is_exactly(pointer.generate, nn.Linear, weight=(1, 2 * width), bias=(1,))
        and pointer.generate.weight.is_contiguous()
    )


def _is_plain_linear(linear: Linear, inputs: int, outputs: int) -> bool:
    return is_exactly(linear, Linear, weight=(outputs, inputs), bias=(outputs,)) and linear.bias.is_contiguous()


def _settings(block: AnyBlock) -> tuple[Any, ...]:
    """The attributes that determine the behaviour of plain parts; equal in all blocks of a kernel."""
    return tuple((name, getattr(part, name)) for part in block.modules() for name in SETTINGS.get(type(part), ()))


def _hidden(block: AnyBlock) -> tuple[int, bool]:
    """The hidden width of the feed-forward, and whether it is gated."""
    return block.feed_forward.inner.out_features, block.feed_forward.linear is not None


def first_product(block: nn.Module) -> nn.Module | None:
    """The first of a block's products, or what stands in its place; None of other modules."""
    if isinstance(block, SsruBlock):
        return block.unit.forget
    return getattr(getattr(block, "self_attention", None), "query", None)


def _products(block: AnyBlock) -> list[Linear | None]:
    """In the order of `NativeBlock`."""
    cross, forward = block.cross_attention, block.feed_forward
    crossing = [cross.query, cross.output] if cross else [None, None]
    if isinstance(block, Block):
        own = block.self_attention
        before = [own.query, own.key_value, own.output, None, None]
    else:
        before = [None, None, None, block.unit.forget, block.unit.value]
    return [*before, *crossing, forward.inner, forward.linear, forward.outer]


def _residuals(block: AnyBlock) -> list[Residual | None]:
    first = block.self_residual if isinstance(block, Block) else block.unit_residual
    return [first, block.cross_residual, block.feed_forward_residual]


def _norms(block: AnyBlock) -> list[nn.Module]:
    """All of a block, those of heads behind those of residual connections."""
    own = block.self_attention if isinstance(block, Block) else None
    of_heads = [own.query_norm, own.key_norm] if own else []
    return [each for each in (*(residual.norm for residual in _residuals(block) if residual), *of_heads) if each]


def _weights(block: AnyBlock) -> native.NativeBlock:
    packed = [cast(Packed, each.packed) if each else None for each in _products(block)]
    own, cross, forward = (norm_of(each.norm) if each else None for each in _residuals(block))
    assert own and forward
    made = native.NativeBlock((own, cross, forward), *packed)  # type: ignore[arg-type]  # only what crosses or gates may be None
    return made._replace(head_norms=_head_norms(block))


def _head_norms(block: AnyBlock) -> tuple[native.Norm, native.Norm] | None:
    attention = block.self_attention if isinstance(block, Block) else None
    if attention is None or attention.query_norm is None or attention.key_norm is None:
        return None
    return native.Norm(attention.query_norm.weight, None), native.Norm(attention.key_norm.weight, None)
