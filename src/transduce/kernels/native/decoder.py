"""One more token of every hypothesis through all blocks of a Transformer's decoder, in one call (`decoder.h`).

And all tokens of all sources through those of its encoder.

Shapes: N hypotheses, or tokens, B sources, D width, H heads, C columns, S source positions, E width of a head.
"""

from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from transduce.kernels.native import kernel
from transduce.kernels.native.arrays import Array, address, contiguous, copied, strides
from transduce.kernels.native.layout import words
from transduce.kernels.native.linear import Packed

NO_WEIGHT = (0,) * words("Weight")


class Norm(NamedTuple):
    """A layer norm's parameters, (D,) each."""

    gain_D: Array
    bias_D: Array


class NativeBlock(NamedTuple):
    """A block's parameters; those of cross-attention are None in an encoder."""

    norms: tuple[Norm, Norm | None, Norm]
    """Of self-attention, cross-attention, feed-forward."""
    query: Packed
    key_value: Packed
    output: Packed
    cross_query: Packed | None
    cross_output: Packed | None
    inner: Packed
    outer: Packed


class Said(NamedTuple):
    """What the hypotheses have said.

    blocks: of each block the keys and values (B, H, room, E) of all columns; this token's are written behind the C.
    source_N, rank_N: int64, which source each hypothesis belongs to, and which of the new columns becomes its own.
    past_NC: bool, which columns are its past.
    """

    blocks: Sequence[tuple[Array, Array]]
    source_N: Array
    rank_N: Array
    past_NC: Array


class NativeRead(NamedTuple):
    """What the hypotheses read.

    blocks: of each block the keys and values (B, H, S, E) of the sources.
    source_N: int64, which of them each hypothesis reads. real_BS: bool, which of their positions are real.
    """

    blocks: Sequence[tuple[Array, Array]]
    source_N: Array
    real_BS: Array


class Blocks:
    """The blocks of one decoder or encoder.

    Args:
        heads: H, as many of keys and values as of queries.
        pre: whether norms stand before the sub-layers.
        epsilon: of the norms.
        turns: what turns queries and keys of as many positions or more, see `kernels.native.rotary`; None = nothing.
    """

    def __init__(
        self,
        blocks: Sequence[NativeBlock],
        heads: int,
        pre: bool,
        epsilon: float,
        turns: Callable[[int], Array] | None = None,
    ) -> None:
        self._blocks = blocks  # whoever holds addresses holds what stands there
        self.weights = np.array([_fields(block) for block in blocks], np.int64)
        """`BlockWeights` of each block, as whole numbers."""
        self.place = address(self.weights)
        """Where they stand."""
        self.heads, self.hidden = heads, blocks[0].inner.outputs
        self.pre, self.count = pre, len(blocks)
        self.epsilon = epsilon
        self.turns = turns

    def step(self, x_ND: Array, said: Said, read: NativeRead) -> Array:
        """What leaves the last block, (N, D) fp32, of the embedded tokens `x_ND`."""
        x_ND = copied(x_ND)
        pairs = zip(said.blocks, read.blocks, strict=True)
        memory = array("q", [number for own, cross in pairs for number in (*places(*own), *places(*cross))])
        past = [contiguous(each) for each in said[1:]]
        source = [contiguous(each) for each in read[1:]]
        columns = said.past_NC.shape[1]
        turn_TE = self.turns(columns + 1) if self.turns else None
        addresses = (address(each) for each in (x_ND, *past, *source))
        kernel("decoder_step")(
            self.place,
            memory.buffer_info()[0],
            *addresses,
            0 if turn_TE is None else address(turn_TE),
            *read.real_BS.shape,
            *x_ND.shape,
            self.heads,
            self.hidden,
            columns,
            int(self.pre),
            self.count,
            self.epsilon,
        )
        return x_ND

    def encode(self, x_ND: Array, length_B: Array) -> Array:
        """What leaves an encoder's last block, (N, D) fp32, of the embedded tokens of all sources one behind the other.

        Args:
            length_B: int64, of each source, all above 0; together N.
        """
        x_ND, length_B = copied(x_ND), contiguous(length_B)
        turn_TE = self.turns(int(length_B.max())) if self.turns else None
        kernel("encoder_pass")(
            self.place,
            address(x_ND),
            address(length_B),
            0 if turn_TE is None else address(turn_TE),
            len(length_B),
            *x_ND.shape,
            self.heads,
            self.hidden,
            int(self.pre),
            self.count,
            self.epsilon,
        )
        return x_ND


def _fields(block: NativeBlock) -> list[int]:
    """`BlockWeights` of `decoder.h`, as whole numbers."""
    norms, *products = block
    return [
        *(field for product in products for field in (product.fields if product else NO_WEIGHT)),
        *(address(part) if part is not None else 0 for norm in norms for part in norm or (None, None)),
    ]


def places(key_BHSE: Array, value_BHSE: Array) -> list[int]:
    """`Places` of `decoder.h`, as whole numbers."""
    both = key_BHSE, value_BHSE
    return [*map(address, both), *(stride for each in both for stride in strides(each)[:3])]
