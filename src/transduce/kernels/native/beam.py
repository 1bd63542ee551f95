"""A beam search of a Transformer's decoder from the first token to the last, in one call (`beam.h`).

Shapes: B sentences, K slots of a beam, T tokens of the longest output, V vocabulary, D width, P tokens of all prefixes.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from transduce.kernels.native import kernel
from transduce.kernels.native.arrays import Array, contiguous
from transduce.kernels.native.call import Struct
from transduce.kernels.native.decoder import NO_COPIES, Blocks, NativeRead, Norm, places
from transduce.kernels.native.layout import MEANS, STOPPINGS, words
from transduce.kernels.native.linear import Packed


class NativePointer(NamedTuple):
    """The weights of a pointer (`pointer.h`): of its queries, and of what decides between copying and generating.

    generate: (2 D,). generate_bias: (1,).
    """

    query: Packed
    generate: Array
    generate_bias: Array


NO_POINTER = (None,) * words("Pointer")


@dataclass(frozen=True, slots=True)
class Writer:
    """What writes a target: its tokens' vectors, the positions added to them, its blocks, and what reads these.

    embedding_VD: a token enters as its vector, times sqrt(D) where it is `scaled`; the first of an output as zeros with
        `zero_start`. None = the vectors are those of `output`, which is not in 8 bits.
    position_TD: added to the first positions. turn_TE: what turns queries and keys of the first positions; None =
        nothing.
    embedding_norm: of the sum of vector and position; None = none is. norm: behind the last block; None = none is.
    pointer: what copies words of the source, which then come with what is read; None = nothing does.
    """

    embedding_VD: Array | None
    position_TD: Array
    turn_TE: Array | None
    decoder: Blocks
    norm: Norm | None
    output: Packed
    embedding_norm: Norm | None = None
    scaled: bool = True
    zero_start: bool = False
    pointer: NativePointer | None = None


class NativeRequest(Protocol):
    """How a beam is searched, in whole numbers; see `transduce.layers.fused_search.BeamRequest`."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def beam(self) -> int: ...
    @property
    def nbest(self) -> int: ...
    @property
    def forbidden(self) -> Sequence[int]: ...
    @property
    def limits(self) -> Sequence[int]: ...
    @property
    def prune(self) -> float: ...
    @property
    def length(self) -> tuple[float, float, float]: ...
    @property
    def words(self) -> tuple[Array, Array] | None: ...
    @property
    def prefixes(self) -> Sequence[Sequence[int]]: ...
    @property
    def stopping(self) -> str: ...
    @property
    def at_limit(self) -> str: ...


Found = tuple[list[int], list[float], float]  # tokens, their log-probabilities, the score


def search(
    writers: Sequence[tuple[Writer, NativeRead]], mean: str, request: NativeRequest
) -> tuple[list[list[Found]], float]:
    """What each sentence's beam found, in the order of `BeamRequest.stopping`; and 0, or an impossible log-probability.

    Their position_TD and turn_TE must reach as far as the longest output may. With request.words there is one writer.
    """
    rows, longest = len(request.limits), max(request.limits)
    token_BKT = np.empty((rows, request.beam, longest), np.int64)
    value_BKT = np.empty((rows, request.beam, longest), np.float64)
    length_BK, score_BK = np.zeros((rows, request.beam), np.int64), np.zeros((rows, request.beam), np.float64)
    impossible = np.zeros((), np.float64)
    barred = array("q", request.forbidden)
    kernel("beam_search")(
        Struct(*(field for writer, read in writers for field in _reader(writer, read))),
        array("d", (writer.decoder.epsilon for writer, _ in writers)),
        len(writers),
        MEANS.index(mean),
        rows,
        array("q", request.limits),
        Struct(*_wanted(request, barred, longest)),
        *_lists(writers[0][0], request),
        *_prefixes(request),
        *request.length,
        request.prune,
        token_BKT,
        value_BKT,
        length_BK,
        score_BK,
        impossible,
    )
    rows_of = zip(token_BKT, value_BKT, length_BK.tolist(), score_BK.tolist(), strict=True)
    found = [list(_found(*row)) for row in rows_of]
    return found, float(impossible)


def _wanted(request: NativeRequest, barred: "array[int]", longest: int) -> tuple[Any, ...]:
    """`Wanted` of `beam.h`."""
    stopping, forces_end = STOPPINGS.index(request.stopping), int(request.at_limit == "end")
    return request.start, request.end, request.beam, request.nbest, barred, len(barred), longest, stopping, forces_end


def _reader(writer: Writer, read: NativeRead) -> tuple[Any, ...]:
    """`Reader` of `member.h`."""
    reads, real_BS = Struct(*(place for pair in read.blocks for place in places(*pair))), contiguous(read.real_BS)
    copies = map(contiguous, read.copies) if read.copies else NO_COPIES
    return Struct(*_fields(writer)), writer.decoder.weights, reads, real_BS, real_BS.shape[1], *copies


def _found(
    token_KT: NDArray[np.int64], value_KT: NDArray[np.float64], lengths: Sequence[int], scores: Sequence[float]
) -> Iterator[Found]:
    for tokens_T, values_T, length, score in zip(token_KT, value_KT, lengths, scores, strict=True):
        if length:
            yield tokens_T[:length].tolist(), values_T[:length].tolist(), score


def _lists(writer: Writer, request: NativeRequest) -> tuple[Array | None, Array | None, Array | None]:
    """`Lists` of `shortlist.h`."""
    if request.words is None:
        return None, None, None
    word_L, first_B = map(contiguous, request.words)
    return word_L, first_B, writer.output.rows


def _prefixes(request: NativeRequest) -> tuple[Array | None, Array | None]:
    """`Prefixes` of `beam.h`."""
    if not any(request.prefixes):
        return None, None
    firsts = accumulate(map(len, request.prefixes), initial=0)
    return array("q", chain.from_iterable(request.prefixes)), array("q", firsts)


def _fields(writer: Writer) -> tuple[Any, ...]:
    """`Writer` of `member.h`."""
    decoder = writer.decoder
    norms = (*(writer.embedding_norm or (None, None)), *(writer.norm or (None, None)))
    tables = writer.embedding_VD, writer.position_TD, writer.turn_TE, *norms
    sizes = writer.output.inputs, *decoder.heads, decoder.hidden
    kind = int(decoder.pre), decoder.activation, decoder.count, int(writer.scaled), int(writer.zero_start)
    pointer = writer.pointer
    copying = (*pointer.query.struct.fields, *map(contiguous, pointer[1:])) if pointer else NO_POINTER
    return *tables, *writer.output.struct.fields, *sizes, *kind, *copying
