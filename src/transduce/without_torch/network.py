"""A Transformer as the kernels compute it, made of a file's weights, which NumPy holds.

Shapes: B sources, S positions of the longest, N positions of all, D width, H heads, E features a head, T target
positions, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.kernels.native import kernel
from transduce.kernels.native.arrays import empty, zeros
from transduce.kernels.native.beam import NativePointer, Writer
from transduce.kernels.native.decoder import (
    FEED_FORWARDS,
    GATES,
    Blocks,
    Heads,
    NativeBlock,
    NativeCopies,
    NativeRead,
    Norm,
)
from transduce.kernels.native.linear import Packed
from transduce.kernels.sinusoids import sinusoids, tensor2tensor, too_few, turns
from transduce.without_torch.supported import Sizes, output_of

FIRST = 128  # positions of a table, which doubles when more are asked for
TABLES = {"sinusoidal": sinusoids, "tensor2tensor": tensor2tensor}

Floats = NDArray[np.float32]


class Network:
    """Encoder and decoder, packed.

    Args:
        weights: by name, in fp32; those that are packed are taken out of the dictionary, so that none is there twice.
        whole: products in 8 bits.
    """

    def __init__(self, weights: dict[str, Floats], sizes: Sizes, int8: bool) -> None:
        self.sizes, self._weights, self._int8 = sizes, weights, int8
        target_VD = weights.pop("target_embedding.weight")
        source_VD = weights.pop("source_embedding.weight", target_VD)
        bias_V = weights.pop(f"{output_of(sizes)}.bias", None)
        output_VD = weights.pop("output.weight", target_VD)
        self._output = Packed(output_VD, bias_V, int8)
        # A matrix that is packed in fp32 holds the embeddings, too, so that none is there twice.
        self._target_VD = None if output_VD is target_VD and not int8 else target_VD
        self._source_VD = self._target_VD if source_VD is target_VD else source_VD
        self._position_TD = {side: weights.pop(f"{side}.positions.weight_TD", None) for side in ("encoder", "decoder")}
        self._turns = Turns(sizes.width // sizes.heads) if sizes.positions == "rotary" else None
        self._sources = [
            self._product(f"decoder.blocks.{layer}.cross_attention.key_value") for layer in range(sizes.decoder_layers)
        ]
        self._encoder, self._decoder = self._blocks("encoder"), self._blocks("decoder")
        self._norms = {side: self._norm(f"{side}.norm") if sizes.pre else None for side in ("encoder", "decoder")}
        self._embedding_norms = {
            side: self._norm(f"{side}.embedding_norm") if sizes.norms_embeddings(side) else None
            for side in ("encoder", "decoder")
        }
        self._pointer = self._copying() if sizes.pointer else None
        self._tables = {side: zeros((0, sizes.width)) for side in ("encoder", "decoder")}

    def read(self, sources: Sequence[Sequence[int]]) -> NativeRead:
        """The keys and values of these sources, each of at least one id, for every block of the decoder.

        Raises:
            InputError: a source is longer than the model's learned positions.
        """
        length_B = np.fromiter(map(len, sources), np.int64, len(sources))
        real_BS = np.arange(length_B.max()) < length_B[:, None]
        encoded_ND = self._encode(np.concatenate([np.asarray(ids, np.int64) for ids in sources]), length_B, real_BS)
        pairs = [self._keys_values(product(encoded_ND), real_BS) for product in self._sources]
        copies = _copies(sources, encoded_ND, real_BS) if self._pointer else None
        return NativeRead(pairs, np.arange(len(sources)), real_BS, copies)

    def writer(self, longest: int) -> Writer:
        """What writes outputs of up to `longest` tokens. Learned positions that are missing are NaN."""
        position_TD = self._positions("decoder", longest)
        if len(position_TD) < longest:
            missing_TD = np.full((longest - len(position_TD), self.sizes.width), np.nan, np.float32)
            position_TD = np.concatenate((position_TD, missing_TD))
        turn_TE, sizes = self._decoder.turns(longest) if self._decoder.turns else None, self.sizes
        return Writer(
            self._target_VD,
            position_TD,
            turn_TE,
            self._decoder,
            self._norms["decoder"],
            self._output,
            self._embedding_norms["decoder"],
            sizes.scaled,
            sizes.zero_start,
            self._pointer,
        )

    def check_length(self, length: int) -> None:
        """Raises InputError for a sequence that is longer than the model's learned positions."""
        if "learned" in (self.sizes.positions, self.sizes.decoder_positions) and length > self.sizes.max_length:
            raise InputError(too_few(self.sizes.max_length, length))

    def _encode(self, id_N: NDArray[np.int64], length_B: NDArray[np.int64], real_BS: NDArray[np.bool_]) -> Floats:
        longest = real_BS.shape[1]
        self.check_length(longest)
        x_ND = self._output.vectors(id_N) if self._source_VD is None else self._source_VD[id_N]
        if self.sizes.scaled:
            x_ND *= np.float32(self.sizes.width**0.5)
        if self.sizes.positions in (*TABLES, "learned"):
            x_ND += self._positions("encoder", longest)[real_BS.nonzero()[1]]
        encoded_ND: Floats = self._encoder.encode(self._normed(x_ND, self._embedding_norms["encoder"]), length_B)
        return self._normed(encoded_ND, self._norms["encoder"])

    def _normed(self, x_ND: Floats, norm: Norm | None) -> Floats:
        if norm is None:
            return x_ND
        y_ND, found_2N = empty(x_ND.shape), empty((2, len(x_ND)))
        kernel("layer_norm", "float32")(x_ND, *norm, y_ND, *found_2N, *x_ND.shape, self.sizes.epsilon)
        return y_ND

    def _keys_values(self, both_ND: Floats, real_BS: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        """Keys and values (B, H, S, E), of keys and values (N, 2 D) side by side."""
        rows, longest = real_BS.shape
        both_BSD = both_ND
        if not real_BS.all():
            both_BSD = zeros((rows, longest, both_ND.shape[1]))
            both_BSD[real_BS] = both_ND
        both_BSPHE = both_BSD.reshape(rows, longest, 2, self.sizes.heads, -1)
        key, value = (np.ascontiguousarray(both_BSPHE[:, :, part].transpose(0, 2, 1, 3)) for part in (0, 1))
        return key, value

    def _positions(self, side: str, length: int) -> Floats:
        """What is added to the first positions, (T, D); of learned ones, as many as there are."""
        learned_TD = self._position_TD[side]
        if learned_TD is not None:
            return learned_TD[:length]
        if length > len(self._tables[side]):
            room, width, table = max(FIRST, 2 * length), self.sizes.width, TABLES.get(self.sizes.positions_of(side))
            first = self.sizes.first_position
            self._tables[side] = zeros((room, width)) if table is None else table(room, width, first)
        return self._tables[side][:length]

    def _blocks(self, side: str) -> Blocks:
        sizes = self.sizes
        layers = sizes.encoder_layers if side == "encoder" else sizes.decoder_layers
        blocks = [self._block(f"{side}.blocks.{layer}", cross=side == "decoder") for layer in range(layers)]
        turns = self._turns if sizes.positions_of(side) == "rotary" else None
        heads = Heads(sizes.heads, sizes.heads, sizes.width // sizes.heads)
        return Blocks(blocks, heads, sizes.pre, sizes.epsilon, turns, FEED_FORWARDS[sizes.activation])

    def _block(self, name: str, cross: bool) -> NativeBlock:
        own, unit, forward = f"{name}.self_attention", f"{name}.unit", f"{name}.feed_forward"
        recurrent = cross and self.sizes.recurrent
        return NativeBlock(
            norms=(
                self._norm(f"{name}.unit_residual.norm" if recurrent else f"{name}.self_residual.norm"),
                self._norm(f"{name}.cross_residual.norm") if cross else None,
                self._norm(f"{name}.feed_forward_residual.norm"),
            ),
            query=None if recurrent else self._product(f"{own}.query"),
            key_value=None if recurrent else self._product(f"{own}.key_value"),
            output=None if recurrent else self._product(f"{own}.output"),
            forget=self._product(f"{unit}.forget") if recurrent else None,
            value=self._product(f"{unit}.value") if recurrent else None,
            cross_query=self._product(f"{name}.cross_attention.query") if cross else None,
            cross_output=self._product(f"{name}.cross_attention.output") if cross else None,
            inner=self._product(f"{forward}.inner"),
            inner_linear=self._product(f"{forward}.linear") if self.sizes.activation in GATES else None,
            outer=self._product(f"{forward}.outer"),
        )

    def _copying(self) -> NativePointer:
        weights = self._weights
        generate_1D, bias_1 = weights.pop("pointer.generate.weight"), weights.pop("pointer.generate.bias")
        return NativePointer(self._product("pointer.query"), generate_1D[0], bias_1)

    def _product(self, name: str) -> Packed:
        return Packed(self._weights.pop(f"{name}.weight"), self._weights.pop(f"{name}.bias", None), self._int8)

    def _norm(self, name: str) -> Norm:
        return Norm(self._weights.pop(f"{name}.weight"), self._weights.pop(f"{name}.bias"))


def _copies(sources: Sequence[Sequence[int]], encoded_ND: Floats, real_BS: NDArray[np.bool_]) -> NativeCopies:
    """What a pointer may copy: states, ids, and the first position of each id."""
    state_BSD, id_BS = zeros((*real_BS.shape, encoded_ND.shape[1])), np.zeros(real_BS.shape, np.int64)
    state_BSD[real_BS] = encoded_ND
    place_BS = np.zeros(real_BS.shape, np.int64)
    for ids, id_S, place_S in zip(sources, id_BS, place_BS, strict=True):
        first: dict[int, int] = {}
        id_S[: len(ids)] = ids
        place_S[: len(ids)] = [first.setdefault(each, place) for place, each in enumerate(ids)]
    return NativeCopies(state_BSD, id_BS, place_BS)


class Turns:
    """The angles of rotary positions, for any length: (T, E) as `transduce.kernels.sinusoids.turns` gives them."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._table_TE = zeros((0, width))

    def __call__(self, length: int) -> Floats:
        """(T, E), T >= length."""
        if length > len(self._table_TE):
            self._table_TE = turns(max(FIRST, 2 * length), self.width)
        return self._table_TE
