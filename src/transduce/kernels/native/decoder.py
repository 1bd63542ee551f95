"""One more token of every hypothesis through all blocks of a Transformer's decoder, in one call (`decoder.h`).

And all tokens of all sources through those of its encoder.

Shapes: N hypotheses, or tokens, B sources, D width, G heads of keys and values, C columns, S source positions, E width
of a head.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from transduce.kernels.native import kernel
from transduce.kernels.native.arrays import Array, contiguous, copied, strides
from transduce.kernels.native.call import Struct
from transduce.kernels.native.layout import ACTIVATIONS, words
from transduce.kernels.native.linear import Packed

GATES = {"glu": "sigmoid", "geglu": "gelu", "geglu_tanh": "gelu_tanh", "swiglu": "swish"}
"""The activation of the gate, for each gated feed-forward layer of `transduce.layers.feedforward`."""
FEED_FORWARDS = {name: name for name in ACTIVATIONS if name not in ("identity", "sigmoid")} | GATES
"""The kernel's activation of each feed-forward layer."""
NO_WEIGHT = (None,) * words("Weight")
NO_PLACES = (None,) * words("Places")
NO_COPIES = (None,) * words("Copies")


class Norm(NamedTuple):
    """The parameters of a layer norm, (D,) each, or without a bias of an RMS norm."""

    gain_D: Array
    bias_D: Array | None


class Heads(NamedTuple):
    """How many heads of queries, how many of keys and values, and how many features each has."""

    queries: int
    groups: int
    width: int


class NativeBlock(NamedTuple):
    """A block's parameters. Those of cross-attention are None in an encoder.

    query, key_value, output: of self-attention; None in a block with a recurrent unit, which has forget and value.
    inner_linear: the matrix of a gated feed-forward layer that the gate multiplies; None where it is not gated.
    head_norms: RMS norms (E,) of each head's queries and keys in self-attention; None = there are none.
    """

    norms: tuple[Norm, Norm | None, Norm]
    """Of self-attention or the recurrent unit, cross-attention, feed-forward."""
    query: Packed | None
    key_value: Packed | None
    output: Packed | None
    forget: Packed | None
    value: Packed | None
    cross_query: Packed | None
    cross_output: Packed | None
    inner: Packed
    inner_linear: Packed | None
    outer: Packed
    head_norms: tuple[Norm, Norm] | None = None


class Said(NamedTuple):
    """What the hypotheses have said.

    blocks: of each block the keys and values (B, G, room, E) of all columns; this token's are written behind the C.
    source_N, rank_N: int64, which source each hypothesis belongs to, and which of the new columns becomes its own.
        Below 0 it is one of the C columns, counted from their end, so that one call can take several tokens of a text.
    past_NC: bool, which columns are its past.
    """

    blocks: Sequence[tuple[Array, Array]]
    source_N: Array
    rank_N: Array
    past_NC: Array


class NativeCopies(NamedTuple):
    """What may be copied of each source (`pointer.h`).

    state_BSD: the encoder's states, fp32. id_BS: int64, the ids, all of them in the target's vocabulary. place_BS:
        int64, for each position the first one that has the same id.
    """

    state_BSD: Array
    id_BS: Array
    place_BS: Array


class NativeRead(NamedTuple):
    """What the hypotheses read.

    blocks: of each block the keys and values (B, G, S, E) of the sources.
    source_N: int64, which of them each hypothesis reads. real_BS: bool, which of their positions are real.
    copies: what a pointer may copy; None = there is no pointer.
    """

    blocks: Sequence[tuple[Array, Array]]
    source_N: Array
    real_BS: Array
    copies: NativeCopies | None = None


class Blocks:
    """The blocks of one decoder or encoder.

    Args:
        heads: of self-attention and of cross-attention.
        pre: whether norms stand before the sub-layers.
        epsilon: of the norms.
        turns: what turns queries and keys of as many positions or more, see `kernels.native.rotary`; None = nothing.
        activation: of the feed-forward, a name of `layout.ACTIVATIONS`; of a gated one, that of its gate.
    """

    def __init__(
        self,
        blocks: Sequence[NativeBlock],
        heads: Heads,
        pre: bool,
        epsilon: float,
        turns: Callable[[int], Array] | None = None,
        activation: str = "relu",
    ) -> None:
        self.weights = Struct(*(field for block in blocks for field in _fields(block)))
        """`BlockWeights` of each block."""
        self.heads, self.hidden = heads, blocks[0].inner.outputs
        self.pre, self.count = pre, len(blocks)
        self.epsilon = epsilon
        self.turns = turns
        self.activation = ACTIVATIONS.index(activation)

    def step(self, x_ND: Array, said: Said, read: NativeRead | None) -> Array:
        """What leaves the last block, (N, D) fp32, of embedded tokens `x_ND`; without cross-attention read is None."""
        x_ND = copied(x_ND)
        crossed = [places(*each) for each in read.blocks] if read else [NO_PLACES] * self.count
        columns = said.past_NC.shape[1]
        kernel("decoder_step")(
            self.weights,
            Struct(
                *(field for own, cross in zip(said.blocks, crossed, strict=True) for field in (*places(*own), *cross))
            ),
            x_ND,
            *map(contiguous, said[1:]),
            *((contiguous(read.source_N), contiguous(read.real_BS)) if read else (None, None)),
            self.turns(columns + 1) if self.turns else None,
            *(read.real_BS.shape if read else (0, 0)),
            *x_ND.shape,
            *self.heads,
            self.hidden,
            columns,
            int(self.pre),
            self.activation,
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
        kernel("encoder_pass")(
            self.weights,
            x_ND,
            length_B,
            self.turns(int(length_B.max())) if self.turns else None,
            len(length_B),
            *x_ND.shape,
            *self.heads,
            self.hidden,
            int(self.pre),
            self.activation,
            self.count,
            self.epsilon,
        )
        return x_ND


def _fields(block: NativeBlock) -> list[Any]:
    """`BlockWeights` of `decoder.h`."""
    norms, *products, head_norms = block
    return [
        *(field for product in products for field in (product.struct.fields if product else NO_WEIGHT)),
        *(part for norm in (*norms, *(head_norms or (None, None))) for part in norm or (None, None)),
    ]


def places(key_BHSE: Array, value_BHSE: Array) -> list[Any]:
    """`Places` of `decoder.h`."""
    both = key_BHSE, value_BHSE
    lying = [strides(each) for each in both]
    assert key_BHSE.shape[3] == 1 or all(each[3] == 1 for each in lying), "elements of a head lie side by side"
    return [*both, *(stride for each in lying for stride in each[:3])]
