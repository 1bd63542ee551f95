"""Gated convolutions in residual blocks, with attention in every decoder block (Gehring et al. 2017).

    w = g v / |v|                                        weight normalisation
    [a; b] = W [x_{i-(k-1)/2}; ..; x_{i+(k-1)/2}] + b    the window around i; in a decoder, the window that ends at i
    h_i = a * sigmoid(b)                                 gated linear unit

Shapes: B batch, T positions, S source positions, C positions including context, W = k - 1 context positions,
D model width, K = k D, O output width, I input width, H heads.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention.cache import KeyValue
from transduce.attention.cross_attention import CrossAttention
from transduce.attention.dropout import Dropout
from transduce.kernels.matmul import linear
from transduce.layers.recomputation import Recomputable, recomputable

HALVED = math.sqrt(0.5)  # keeps the variance of a sum of two independent terms (section 3.4)


def weight_normed(direction_OI: Tensor, gain_O: Tensor) -> Tensor:
    """(O, I) rows g v / |v|, with length and direction learned separately (Salimans & Kingma 2016, equation 2)."""
    return direction_OI * (gain_O / torch.linalg.vector_norm(direction_OI, dim=1))[:, None]


def windows(x_BCD: Tensor, kernel: int) -> Tensor:
    """(B, C - k + 1, k D): every k neighbouring positions concatenated, so that a convolution is one matrix product."""
    count = x_BCD.shape[1] - kernel + 1
    return torch.cat([x_BCD[:, first : first + count] for first in range(kernel)], -1)


def scale_gradient(x: Tensor, scale: float) -> Tensor:
    """x itself, any shape; its gradient is multiplied by `scale`."""
    scaled: Tensor = _ScaledGradient.apply(x, scale)  # type: ignore[no-untyped-call]
    return scaled


class NormedLinear(nn.Module):
    """x W^T + b with a weight-normalized W, initialized from N(0, gate (1 - dropout) / I) (section 3.5).

    Args:
        inputs: I.
        outputs: O.
        dropout: the dropout rate of its input.
        gate: 4 before a gated linear unit, which removes three quarters of the variance; 1 elsewhere.
    """

    def __init__(self, inputs: int, outputs: int, dropout: float = 0.0, gate: float = 1.0) -> None:
        super().__init__()
        start_OI = torch.randn(outputs, inputs) * math.sqrt(gate * (1 - dropout) / inputs)
        self.direction_OI = nn.Parameter(start_OI)
        self.gain_O = nn.Parameter(torch.linalg.vector_norm(start_OI, dim=1))
        self.bias_O = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """(.., I) -> (.., O)."""
        return linear(x, weight_normed(self.direction_OI, self.gain_O), self.bias_O)


class GatedConvolution(nn.Module):
    """A convolution over k positions, then a gated linear unit (Dauphin et al. 2017, equation 1).

    Args:
        width: D.
        kernel: k.
        dropout: the dropout rate of its input.
    """

    def __init__(self, width: int, kernel: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.kernel = kernel
        self.both = NormedLinear(kernel * width, 2 * width, dropout, gate=4.0)

    def forward(self, x_BCD: Tensor) -> Tensor:
        """(B, C, D) -> (B, C - k + 1, D)."""
        return F.glu(self.both(windows(x_BCD, self.kernel)), -1)


class EncoderBlock(Recomputable):
    """A gated convolution with a centred window, inside a residual connection.

    Args:
        width: D.
        kernel: k, odd.
        dropout: rate on the convolution's input.
    """

    def __init__(self, width: int, kernel: int, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.convolution = GatedConvolution(width, kernel, dropout)
        self.reach = kernel // 2

    @recomputable
    def forward(self, x_BSD: Tensor, real_BS1: Tensor) -> Tensor:
        """(B, S, D) -> (B, S, D). Padding is read as zeros, like the positions beyond the ends."""
        inputs_BSD = self.dropout(x_BSD).masked_fill(~real_BS1, 0.0)
        hidden_BSD = self.convolution(F.pad(inputs_BSD, (0, 0, self.reach, self.reach)))
        return (x_BSD + hidden_BSD.to(x_BSD.dtype)) * HALVED


class ConvolutionEncoder(nn.Module):
    """A stack of encoder blocks; position i sees layers (k - 1) / 2 positions to either side.

    Args:
        width: D.
        layers: number of blocks.
        kernel: k, odd.
        dropout: rate on the input of each convolution.
    """

    def __init__(self, width: int, layers: int, kernel: int, dropout: float) -> None:
        super().__init__()
        blocks = [EncoderBlock(width, kernel, dropout) for _ in range(layers)]
        self.blocks: Iterable[EncoderBlock] = nn.ModuleList(blocks)  # type: ignore[assignment]

    def forward(self, x_BSD: Tensor, real_BS: Tensor) -> Tensor:
        """(B, S, D) -> (B, S, D)."""
        for block in self.blocks:
            x_BSD = block(x_BSD, real_BS[..., None])
        return x_BSD


class ConvolutionSource(NamedTuple):
    """A source as a decoder block reads it: keys and values, mask of real positions (B, 1, 1, S), sqrt(S) (B, 1, 1)."""

    read: KeyValue
    allowed: Tensor
    gain_B11: Tensor


class BlockState(NamedTuple):
    """The state of a decoder block.

    inputs: (B, k - 1, D), the last inputs of the convolution.
    previous: (B, H, 1, S), the last attention weights, for a sequential reader; None before the first and otherwise.
    """

    inputs: Tensor
    previous: Tensor | None


class DecoderBlock(Recomputable):
    """A causal gated convolution that attends to the source, inside a residual connection.

        d_i = W h_i + b + g_i,   c_i = sqrt(S) sum_j alpha_ij (z_j + e_j)            (equations 1 and 2, section 3.4)

    Args:
        width: D.
        kernel: k.
        dropout: rate on the convolution's input.
        reader: how the source is read.
    """

    def __init__(self, width: int, kernel: int, dropout: float, reader: CrossAttention) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.convolution = GatedConvolution(width, kernel, dropout)
        self.query = NormedLinear(width, width)
        self.reader = reader

    def empty(self, rows: int) -> BlockState:
        """The state of zeros before the first position of `rows` sequences."""
        weight_OK = self.convolution.both.direction_OI
        return BlockState(weight_OK.new_zeros(rows, self.convolution.kernel - 1, len(weight_OK) // 2), None)

    @recomputable
    def forward(
        self, x_BTD: Tensor, embedded_BTD: Tensor, source: ConvolutionSource, past: BlockState, position_BT: Tensor
    ) -> tuple[Tensor, BlockState]:
        """The output (B, T, D) of T positions that follow those in `past`, and the state after them.

        Args:
            x_BTD: the input.
            embedded_BTD: g, the embeddings of the same positions.
            source: the source.
            past: the state before these positions.
            position_BT: int64, the positions, counted from 0.
        """
        inputs_BCD = torch.cat((past.inputs, self.dropout(x_BTD)), 1)
        hidden_BTD = self.convolution(inputs_BCD)
        query_BTD = (self.query(hidden_BTD) + embedded_BTD) * HALVED
        context_BTD, previous = self._read(query_BTD, source, position_BT, past.previous)
        hidden_BTD = (hidden_BTD + context_BTD * source.gain_B11).to(x_BTD.dtype) * HALVED
        kept_BWD = inputs_BCD[:, x_BTD.shape[1] :]
        return (x_BTD + hidden_BTD) * HALVED, BlockState(kept_BWD, previous)

    def _read(
        self, query_BTD: Tensor, source: ConvolutionSource, position_BT: Tensor, previous: Tensor | None
    ) -> tuple[Tensor, Tensor | None]:
        """The contexts (B, T, D). A sequential reader goes position by position and returns its last weights."""
        if not self.reader.sequential:
            return self.reader(query_BTD, source.read, source.allowed, position_BT)[0], None
        contexts = []
        for t in range(query_BTD.shape[1]):
            one = slice(t, t + 1)
            context, previous = self.reader(
                query_BTD[:, one], source.read, source.allowed, position_BT[:, one], previous
            )
            contexts.append(context)
        return torch.cat(contexts, 1), previous


class _ScaledGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: float) -> Tensor:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0] * ctx.scale, None
