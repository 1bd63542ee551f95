"""Beam search in one call, for decoders with a fused step (`transduce.kernels.native.beam`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

from torch import Tensor

from transduce.attention.positions import Learned, NoPositions, Sinusoidal
from transduce.attention.shared_kv_cache import Shared
from transduce.fused.decoder_step import OneToken, read_from
from transduce.fused.spec import CHANGES, hooks_of, is_exactly, is_plain_norm, norm_of
from transduce.kernels.native import beam as native
from transduce.kernels.native.beam import Writer
from transduce.kernels.native.decoder import NativeRead
from transduce.kernels.native.linear import Packed
from transduce.layers.embedding import Embedding
from transduce.layers.fused_search import BeamRequest, Found, Mean
from transduce.layers.norms import NoNorm
from transduce.layers.stack import Sources, Stack


@dataclass(frozen=True, slots=True)
class FusedBeamSearch:
    """One or more decoders, each with its source. With several, the mean of their predictions is searched."""

    each: tuple[tuple[Writer, NativeRead], ...]
    mean: Mean = "probability"

    @property
    def words(self) -> int:
        """The size of the vocabulary, which is the same for all decoders."""
        return self.each[0][0].output.outputs

    @property
    def members(self) -> int:
        """The number of decoders."""
        return len(self.each)

    def joined(self, others: Sequence[Self], mean: Mean) -> Self:
        """An ensemble of these decoders and the others."""
        return replace(self, each=sum((other.each for other in others), self.each), mean=mean)

    def search(self, request: BeamRequest) -> tuple[list[list[Found]], float]:
        return native.search(self.each, self.mean, request)


def search_of(
    kernel: OneToken, decoder: Stack, embedding: Embedding, output: Embedding, sources: Sources, longest: int
) -> FusedBeamSearch | None:
    """A search for outputs of up to `longest` tokens; None if a part is unsupported, not packed, hooked or captured.

    kernel: the fused step of the decoder's blocks.
    embedding, output: the embeddings of tokens and of the output layer.
    """
    if not kernel.reads(embedding.weight, sources):
        return None
    if any(hooks_of((embedding, output, decoder.positions, decoder.norm))):
        return None
    around = (CHANGES.count, decoder, embedding, output)
    if kernel.stands_in != around:
        if not _are_plain(decoder, embedding, output):
            return None
        kernel.stands_in = around
    if not isinstance(output.up_to_date(), Packed):
        return None
    position_TD = _first_positions(decoder.positions, longest, embedding.weight)
    if position_TD is None:
        return None
    blocks, packed = kernel.decoder, cast(Packed, output.packed)
    turn_TE = blocks.turns(longest) if blocks.turns else None
    writer = Writer(embedding.weight, position_TD, turn_TE, blocks, norm_of(decoder.norm), packed)
    return FusedBeamSearch(((writer, read_from(cast(tuple[Shared, ...], sources))),))


def _are_plain(decoder: Stack, embedding: Embedding, output: Embedding) -> bool:
    """Whether the parts around the blocks are supported."""
    positions, norm, width = decoder.positions, decoder.norm, embedding.weight.shape[1]
    return (
        _is_plain_embedding(embedding)
        and _is_plain_embedding(output)
        and embedding.weight.shape == output.weight.shape
        and embedding.scaled
        and (is_exactly(norm, NoNorm) or is_plain_norm(norm, width))
        and type(positions) in (Sinusoidal, Learned, NoPositions)
        and "forward" not in vars(positions)
        and embedding.weight.is_contiguous()
    )


def _is_plain_embedding(each: Embedding) -> bool:
    """Whether it is exactly an embedding, with or without a bias for each token."""
    shape = tuple(each.weight.shape)
    return is_exactly(each, Embedding, weight=shape) or is_exactly(each, Embedding, weight=shape, bias=shape[:1])


def _first_positions(positions: Sinusoidal | Learned | NoPositions, length: int, like: Tensor) -> Tensor | None:
    """What is added to the first positions, (T, D); None if there are not as many positions."""
    if isinstance(positions, Learned) and length > len(positions.weight_TD):
        return None
    first_1TD: Tensor = positions(like.new_zeros(1, length, like.shape[1]))
    return first_1TD[0].contiguous()
