"""A fused implementation of a whole stack, used if its blocks are plain and packed, without captures and hooks.

Shapes: B batch, T positions, S source positions, D model width.

An encoder computes nothing for padding: its products process the N concatenated real positions of all sources.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar, cast

import torch
from torch import Tensor, nn

from transduce.attention import KeyValue
from transduce.attention.capture import active_record
from transduce.attention.positions import Learned, NoPositions, Sinusoidal, tensor2tensor
from transduce.attention.shared_kv_cache import BeamTree, DecoderCache, EncoderCache, Groups
from transduce.fused.spec import (
    CHANGES,
    AnyBlock,
    Parts,
    first_product,
    hooks_of,
    in_kernel,
    is_exactly,
    is_plain_norm,
    is_plain_pointer,
    norm_of,
    plain_blocks,
)
from transduce.kernels.matmul import PacksOwnWeight, Product, predicts
from transduce.kernels.native import beam, decoder
from transduce.kernels.native.beam import NativePointer, Writer
from transduce.kernels.native.decoder import NativeCopies, NativeRead
from transduce.kernels.native.linear import Packed
from transduce.layers.embedding import Embedding
from transduce.layers.fused_search import BeamRequest, Found, Mean
from transduce.layers.norms import LayerNorm, NoNorm, RMSNorm
from transduce.layers.pointer import Copies, Copying, Pointer
from transduce.layers.ssru_stack import SsruStack
from transduce.layers.stack import Sources, Stack, State

AnyStack = Stack | SsruStack
ADDED = (Sinusoidal, Learned, NoPositions)
PIECE = 512  # tokens that go through the blocks at once


class OneToken:
    """All blocks of a decoder as one kernel, made from the current packed blocks."""

    def __init__(self, blocks: Sequence[AnyBlock], around: nn.Module) -> None:
        self.decoder = in_kernel(blocks)
        self.parts = Parts(blocks, around)
        self._crosses = blocks[0].cross_attention is not None
        self.stands_in: tuple[object, ...] = ()
        """What fused search found out about the parts around the blocks; see `transduce.fused.stack`."""

    def serves(
        self, x_N1D: Tensor, past: Sequence[KeyValue | DecoderCache], sources: Sequence[KeyValue | EncoderCache] | None
    ) -> bool:
        """Whether it can run: hypotheses share caches, and there is no capture, hook or gradient."""
        return isinstance(past[0], DecoderCache) and self.reads(x_N1D, sources)

    def reads(self, x: Tensor, sources: Sequence[KeyValue | EncoderCache] | None) -> bool:
        """Whether it can run, judged by the sources only; None without cross-attention."""
        shared = isinstance(sources[0], EncoderCache) if sources else not self._crosses
        return shared and predicts(x) and active_record() is None and self.parts.are_untouched()

    def step(
        self, x_N1D: Tensor, past: Sequence[KeyValue | DecoderCache], sources: Sequence[KeyValue | EncoderCache] | None
    ) -> tuple[Tensor, tuple[DecoderCache, ...]]:
        """`Stack.extend_causally` with one token: the output of the last block (N, 1, D), and the new state."""
        past, sources = cast(Sequence[DecoderCache], past), cast(Sequence[EncoderCache] | None, sources)
        before = past[0].tree
        stores = [branch.store.grown(before.columns, before.groups.widest) for branch in past]
        said = decoder.Said(
            [store.room for store in stores], before.groups.source_N, before.groups.rank_N, before.past_NC
        )
        x_ND = self.decoder.step(x_N1D[:, 0], said, read_from(sources) if sources else None)
        return x_ND[:, None], tuple(DecoderCache(store, before.grown) for store in stores)

    def prefill(
        self, x_BTD: Tensor, past: Sequence[KeyValue | DecoderCache]
    ) -> tuple[Tensor, tuple[DecoderCache, ...]]:
        """The outputs of the last block (B, T, D) for the first T tokens, and the state after them, as after T steps.

        The kernel takes the tokens of a piece as it takes the hypotheses of a step: each sees its own past.
        """
        rows, length, _ = x_BTD.shape
        stores = [branch.store.grown(0, length) for branch in cast(tuple[DecoderCache, ...], past)]
        source_B, read_BTD = torch.arange(rows), torch.empty_like(x_BTD)
        for begin in range(0, length, PIECE):
            end = min(begin + PIECE, length)
            rank_T = torch.arange(begin - end, 0)  # each token's column is among the first `end`
            past_TC = torch.arange(end) < torch.arange(begin, end)[:, None]
            for some_B in torch.split(source_B, max(1, PIECE // (end - begin))):
                count = len(some_B)
                said = decoder.Said(
                    [store.room for store in stores],
                    some_B.repeat_interleave(end - begin),
                    rank_T.repeat(count),
                    past_TC.repeat(count, 1),
                )
                piece_ND = self.decoder.step(x_BTD[some_B, begin:end].flatten(0, 1), said, None)
                read_BTD[some_B, begin:end] = piece_ND.view(count, end - begin, -1)
        tree = BeamTree(Groups(source_B, rows), torch.ones(rows, length, dtype=torch.bool), length)
        return read_BTD, tuple(DecoderCache(store, tree) for store in stores)


def read_from(sources: Sequence[EncoderCache], copies: Copies | None = None) -> NativeRead:
    """The shared sources in the form that the kernel takes; copies: what a pointer may copy of them."""
    first = sources[0]
    real_BS = first.allowed_B11S[:, 0, 0]
    copied = NativeCopies(copies.read.key[:, 0], copies.ids, copies.place) if copies else None
    return NativeRead([shared.source for shared in sources], first.tree.groups.source_N, real_BS, copied)


def in_one_call(blocks: Sequence[nn.Module], around: nn.Module) -> OneToken | None:
    """The `blocks` of the module `around` as one kernel; None if a part is unsupported or not packed."""
    plain = plain_blocks(blocks)
    return OneToken(plain, around) if plain else None


@dataclass(frozen=True, slots=True)
class FusedBeamSearch:
    """One or more decoders, each with its source. With several, the mean of their predictions is searched."""

    decoders: tuple[tuple[Writer, NativeRead], ...]
    mean: Mean = "probability"

    @property
    def words(self) -> int:
        """The size of the vocabulary, which is the same for all decoders."""
        return self.decoders[0][0].output.outputs

    @property
    def members(self) -> int:
        """The number of decoders."""
        return len(self.decoders)

    @property
    def takes_lists(self) -> bool:
        """Whether a request may have `words`."""
        return self.members == 1 and self.decoders[0][0].pointer is None

    def joined(self, others: Sequence[Self], mean: Mean) -> Self:
        """An ensemble of these decoders and the others."""
        return replace(self, decoders=sum((other.decoders for other in others), self.decoders), mean=mean)

    def search(self, request: BeamRequest) -> tuple[list[list[Found]], float]:
        return beam.search(self.decoders, self.mean, request)


def search_of(
    kernel: OneToken,
    decoder: AnyStack,
    embedding: Embedding,
    output: Embedding,
    sources: Sources,
    longest: int,
    zero_start: bool,
    copying: Copying | None,
) -> FusedBeamSearch | None:
    """A search for outputs of up to `longest` tokens; None if a part is unsupported, not packed, hooked or captured.

    kernel: the fused step of the decoder's blocks.
    embedding, output: the embeddings of tokens and of the output layer.
    zero_start: whether outputs begin with a vector of zeros.
    copying: a pointer, and what it may copy; None = there is none.
    """
    if not kernel.reads(embedding.weight, sources):
        return None
    embedding_norm, pointer = decoder.embedding_norm, copying.pointer if copying else None
    if _is_hooked(decoder, embedding, output, *(pointer.modules() if pointer else ())):
        return None
    around = (CHANGES.count, decoder, embedding, output, pointer)
    if kernel.stands_in != around:
        width = embedding.weight.shape[1]
        if not _are_plain(decoder, embedding, output) or (pointer and not is_plain_pointer(pointer, width)):
            return None
        kernel.stands_in = around
    if not isinstance(output.up_to_date(), Packed) or (copying and not _can_copy(copying, len(output.weight))):
        return None
    position_TD = _first_positions(decoder, longest, embedding.weight)
    if position_TD is None:
        return None
    blocks, packed = kernel.decoder, cast(Packed, output.packed)
    turn_TE = blocks.turns(longest) if blocks.turns else None
    norm, first = norm_of(decoder.norm), None if embedding_norm is None else norm_of(embedding_norm)
    scaled = embedding.scaled
    writer = Writer(
        embedding.weight, position_TD, turn_TE, blocks, norm, packed, first, scaled, zero_start, _in_kernel(pointer)
    )
    read = read_from(cast(tuple[EncoderCache, ...], sources), copying.copies if copying else None)
    return FusedBeamSearch(((writer, read),))


def _can_copy(copying: Copying, words: int) -> bool:
    """Whether the kernel can read the pointer's numbers as they are, and all ids are of the vocabulary."""
    pointer, ids_BS = copying.pointer, copying.copies.ids
    floats = pointer.generate.weight, pointer.generate.bias, copying.copies.read.key
    return (
        isinstance(pointer.query.up_to_date(), Packed)
        and all(each.dtype is torch.float32 and each.device.type == "cpu" for each in floats)
        and ids_BS.dtype is torch.int64
        and ids_BS.numel() > 0
        and int(ids_BS.min()) >= 0
        and int(ids_BS.max()) < words
    )


def _in_kernel(pointer: Pointer | None) -> NativePointer | None:
    if pointer is None:
        return None
    generate = pointer.generate
    return NativePointer(cast(Packed, pointer.query.packed), generate.weight[0], generate.bias)


def _is_hooked(decoder: AnyStack, *parts: nn.Module) -> bool:
    """Whether there is a hook on one of these parts, or on those of the decoder around its blocks."""
    around = decoder.positions, decoder.norm, decoder.embedding_norm, *parts
    return any(hooks_of(part for part in around if part is not None))


def _are_plain(decoder: AnyStack, embedding: Embedding, output: Embedding) -> bool:
    """Whether the parts around the blocks are supported."""
    positions, norm, width = decoder.positions, decoder.norm, embedding.weight.shape[1]
    first, embedding_norm = next(iter(decoder.blocks)).feed_forward_residual.norm, decoder.embedding_norm
    epsilon = cast(LayerNorm | RMSNorm, first).eps
    return (
        _is_plain_embedding(embedding)
        and _is_plain_embedding(output)
        and embedding.weight.shape == output.weight.shape
        and (embedding_norm is None or _is_norm_of(embedding_norm, width, epsilon))
        and (is_exactly(norm, NoNorm) or _is_norm_of(norm, width, epsilon))
        and (positions is None or (type(positions) in ADDED and "forward" not in vars(positions)))
        and embedding.weight.is_contiguous()
    )


def _is_norm_of(norm: nn.Module, width: int, epsilon: float | None) -> bool:
    """Whether it is a supported norm with the blocks' epsilon, which is the kernel's for all."""
    return is_plain_norm(norm, width) and cast(LayerNorm | RMSNorm, norm).eps == epsilon


def _is_plain_embedding(module: Embedding) -> bool:
    """Whether it is exactly an embedding, with or without a bias for each token."""
    shape = tuple(module.weight.shape)
    return is_exactly(module, Embedding, weight=shape) or is_exactly(module, Embedding, weight=shape, bias=shape[:1])


def _first_positions(decoder: AnyStack, length: int, like: Tensor) -> Tensor | None:
    """What is added to the first positions, (T, D); None if there are not as many positions."""
    width = like.shape[1]
    if isinstance(decoder, SsruStack):
        first = decoder.first_position
        return like.new_zeros(length, width) if first is None else tensor2tensor(length, width, first)
    positions = decoder.positions
    if isinstance(positions, Learned) and length > len(positions.weight_TD):
        return None
    first_1TD: Tensor = positions(like.new_zeros(1, length, width))
    return first_1TD[0].contiguous()


class OnePass:
    """All blocks of an encoder as one kernel, made from the current packed blocks."""

    def __init__(self, blocks: Sequence[AnyBlock], around: nn.Module) -> None:
        self._blocks = in_kernel(blocks)
        self.parts = Parts(blocks, around)

    def serves(self, x_BSD: Tensor) -> bool:
        """Whether it can run: there is no capture, hook or gradient."""
        return predicts(x_BSD) and active_record() is None and self.parts.are_untouched()

    def __call__(self, x_BSD: Tensor, real_BS: Tensor) -> Tensor:
        """The output (B, S, D) of the last block at real positions, which come first in each source; 0 for padding."""
        length_B = real_BS.sum(1)
        if int(length_B.min()) == x_BSD.shape[1]:
            return self._blocks.encode(x_BSD.flatten(0, 1), length_B).view_as(x_BSD)
        encoded_BSD = x_BSD.new_zeros(x_BSD.shape)
        encoded_BSD[real_BS] = self._blocks.encode(x_BSD[real_BS], length_B)
        return encoded_BSD


def in_one_pass(blocks: Sequence[nn.Module], around: nn.Module) -> OnePass | None:
    """The `blocks` of the module `around` as one kernel; None if a part is unsupported or not packed."""
    plain = plain_blocks(blocks)
    return OnePass(plain, around) if plain and not any(block.cross_attention for block in plain) else None


Kernel = TypeVar("Kernel", OneToken, OnePass)


class FusedBlocks:
    """The kernels for one stack's blocks; see `transduce.layers.stack.FusedStack`."""

    def __init__(self) -> None:
        self._kernels: dict[Callable[..., Any], tuple[Product, Any]] = {}

    def encode(self, stack: Stack, embedded_BSD: Tensor, real_BS: Tensor) -> Tensor | None:
        """The result of `Stack.encode`; None if the stack must compute it itself."""
        kernel = self._kernel(stack, in_one_pass)
        if kernel is None or not kernel.serves(embedded_BSD) or any(hooks_of((stack, stack.dropout))):
            return None
        return stack.norm(kernel(stack.placed(embedded_BSD, 0, real_BS), real_BS))

    def step(
        self, stack: Stack, embedded_B1D: Tensor, past: State | None, sources: Sources | None
    ) -> tuple[Tensor, State] | None:
        """The result of `Stack.extend_causally` with one token; None if the stack must compute it itself."""
        if not past:
            return None
        kernel = self.decoder(stack, searching=past[0].length > 0)
        if kernel is None or not kernel.serves(embedded_B1D, past, sources):
            return None
        x_B1D, state = kernel.step(stack.placed(embedded_B1D, past[0].length), past, sources)
        return stack.norm(x_B1D), state

    def prefill(
        self, stack: Stack, token_BT: Tensor, embedding: Embedding, output: Embedding
    ) -> tuple[Tensor, State] | None:
        """The result of `Stack.prefill`; None if it must go step by step."""
        kernel, past = self.decoder(stack), stack.begin(len(token_BT))
        if kernel is None or not kernel.serves(embedding.weight, past, None) or "extend_causally" in vars(stack):
            return None
        if _is_hooked(stack, embedding, output) or not _are_plain(stack, embedding, output):
            return None
        if not isinstance(output.up_to_date(), Packed):
            return None
        x_BTD, state = kernel.prefill(stack.placed(embedding(token_BT), 0), past)
        return stack.norm(x_BTD), state

    def search(
        self,
        stack: AnyStack,
        embedding: Embedding,
        output: Embedding,
        sources: Sources,
        longest: int,
        zero_start: bool = False,
        copying: Copying | None = None,
    ) -> FusedBeamSearch | None:
        """A search for outputs of up to `longest` tokens in one call; None if it must go step by step."""
        kernel = self.decoder(stack)
        if kernel is None:
            return None
        return search_of(kernel, stack, embedding, output, sources, longest, zero_start, copying)

    def decoder(self, stack: AnyStack, searching: bool = False) -> OneToken | None:
        """All blocks in one call, if they are packed and plain, and each token attends to all earlier ones; else None.

        searching: a search is running, during which weights do not change.
        """
        thinned = isinstance(stack, Stack) and stack.pattern != "full"
        return None if thinned else self._kernel(stack, in_one_call, searching)

    def _kernel(
        self,
        stack: AnyStack,
        make: Callable[[Sequence[nn.Module], nn.Module], Kernel | None],
        unchanged: bool = False,
    ) -> Kernel | None:
        """The result of `make` for the packed blocks, cached until they change.

        unchanged: the blocks are known to be unchanged.
        """
        product = first_product(next(iter(stack.blocks)))
        if not isinstance(product, PacksOwnWeight) or product.packed is None:
            return None
        made_of, kernel = self._kernels.get(make, (None, None))
        stale = kernel is not None and not unchanged and not kernel.parts.are_unchanged()
        if stale or made_of is not product.packed:
            kernel = make(list(stack.blocks), stack) if _is_plain(stack) else None  # which packs again what changed
            self._kernels[make] = product.packed, kernel
        return kernel


def _is_plain(stack: AnyStack) -> bool:
    """Whether the stack has no parts besides those of its class."""
    parts = "dropout blocks norm" + " positions" * (stack.positions is not None)
    parts += " embedding_norm" * (stack.embedding_norm is not None)
    kind = SsruStack if isinstance(stack, SsruStack) else Stack
    return is_exactly(stack, kind, parts) and "extend" not in vars(stack)
