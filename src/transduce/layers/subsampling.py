"""Convolutions that make a few positions of many frames: the front end of a model that reads speech (Synnaeve et al.
2020; Wang et al. 2020, fairseq S2T).

    glu:   frame every 10 ms -> log2(factor) convolutions over 5 frames, of stride 2 with a gated linear unit -> norm
    gelu:  frame -> a convolution over 3 frames, then log2(factor) of stride 2, with a GELU (Radford et al. 2022)

A row of S frames becomes ceil(S / factor) positions. Frames behind a row's end are 0 for every convolution, so padding
changes nothing.
Shapes: B utterances, S frames or positions, F features, C channels, D model width.
"""

from collections.abc import Callable, Iterable
from typing import Literal

import torch.nn.functional as F
from torch import Tensor, nn

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.embedding import Embedding, Tied, make_embeddings

FrontEnd = Literal["glu", "gelu"]
KERNEL, FACTOR = 5, 4  # frames that a convolution reads, and that become a position, as in fairseq
GELU_KERNEL, GELU_FACTOR = 3, 2  # the same of Whisper


class SubsamplingConfig(Config):
    """The settings of the front end, which only a task with frames has."""

    subsampling: Literal[1, 2, 4, 8] | None = None
    """Where the source is frames: how many of them become one position, 1, 2, 4 or 8. Default: 4; of gelu 2."""
    front_end: FrontEnd | None = None
    """Where the source is frames: what makes positions of them. glu: convolutions with gated linear units, and a norm.
    gelu: convolutions with GELU, as Whisper has them. Default: glu."""

    def make_front_end(self, features: int, width: int) -> "Subsampling":
        """What reads frames of so many features, for an encoder of this width."""
        if self.front_end == "gelu":
            return GeluSubsampling(features, width, self.subsampling or GELU_FACTOR)
        return Subsampling(features, width, self.subsampling or FACTOR)

    def refuse_front_end(self) -> None:
        """Raises InputError where settings of the front end are set, as the source is tokens."""
        told = "is for a source of frames, and this task reads tokens. Leave it out."
        problems = [f"model.{key} {told}" for key in SubsamplingConfig.model_fields if getattr(self, key) is not None]
        if problems:
            raise InputError(problems)


class Subsampling(nn.Module):
    """The front end above, with gated linear units.

    Args:
        features: F.
        width: D, which is also C.
        factor: 1, 2, 4 or 8; with 1 the only convolution has stride 1.
    """

    def __init__(self, features: int, width: int, factor: int) -> None:
        super().__init__()
        strides = [2] * (factor.bit_length() - 1) or [1]
        self.convolutions: Iterable[nn.Conv1d] = nn.ModuleList(  # type: ignore[assignment]
            nn.Conv1d(width if place else features, 2 * width, KERNEL, stride, KERNEL // 2)
            for place, stride in enumerate(strides)
        )
        self.norm: nn.Module = nn.LayerNorm(width)

    def forward(self, source: Padded) -> Padded:
        """(B, S, F) -> (B, ceil(S / factor), D)."""
        x = source
        for convolution in self.convolutions:
            x_BCS = x.values.masked_fill(~x.mask()[..., None], 0).transpose(1, 2)
            active_BSC = self.activated(convolution(x_BCS)).transpose(1, 2)
            x = Padded(active_BSC, (x.lengths - 1) // convolution.stride[0] + 1)
        return Padded(self.norm(x.values), x.lengths)

    def activated(self, x_BCS: Tensor) -> Tensor:
        """(B, 2 C, S) -> (B, C, S)."""
        return F.glu(x_BCS, dim=1)


class GeluSubsampling(Subsampling):
    """The front end above, with GELU. Arguments as those of `Subsampling`; the first convolution has stride 1."""

    def __init__(self, features: int, width: int, factor: int) -> None:
        nn.Module.__init__(self)
        strides = [1] + [2] * (factor.bit_length() - 1)
        self.convolutions = nn.ModuleList(  # type: ignore[assignment]
            nn.Conv1d(width if place else features, width, GELU_KERNEL, stride, GELU_KERNEL // 2)
            for place, stride in enumerate(strides)
        )
        self.norm = nn.Identity()

    def activated(self, x_BCS: Tensor) -> Tensor:
        """(B, C, S) -> the same."""
        return F.gelu(x_BCS)


def make_front_ends(
    specs: Specs,
    width: int,
    tied: Tied,
    config: SubsamplingConfig,
    make: Callable[[int, int], Embedding] = Embedding,
) -> tuple[Embedding, Embedding | Subsampling, Embedding]:
    """The target embedding, what reads the source, and the output embedding of an encoder-decoder.

    Args:
        specs: the source is tokens, which are embedded, or frames, which are subsampled.
        width, tied, make: see `transduce.layers.embedding.make_embeddings`.
        config: how frames are read.

    Raises:
        InputError: the source is tokens, and the config says how frames are read.
    """
    if specs.source is None or specs.source.kind != "frames":
        config.refuse_front_end()
        return make_embeddings(specs, width, tied, make)
    target = make(specs.target.size, width)
    output = make(specs.target.size, width) if tied in ("input", "none") else target
    return target, config.make_front_end(specs.source.size, width), output


def embedded(front_end: nn.Module, source: Padded) -> Padded:
    """A source as an encoder reads it, (B, S, D): tokens embedded, or frames subsampled."""
    if isinstance(front_end, Subsampling):
        return front_end(source)
    values_BSD: Tensor = front_end(source.values)
    return Padded(values_BSD, source.lengths)


def refuse_pointer(specs: Specs, pointer: bool) -> None:
    """Raises InputError where a pointer would have to copy frames."""
    if pointer and specs.source is not None and specs.source.kind == "frames":
        raise InputError("model.pointer copies source words, and the source is frames. Leave it out.")
