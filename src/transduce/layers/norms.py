"""Norms: mean 0 and variance 1, over different axes.

    layer  (x - mean) / sqrt(var + eps) g + b    over the D features of each position       (Ba et al. 2016)
    rms    x / sqrt(mean(x^2) + eps) g           over the D features of each position       (Zhang & Sennrich 2019)
    batch  (x - mean) / sqrt(var + eps) g + b    over all real positions, feature by feature (Ioffe & Szegedy 2015)

All take x (B, T, D) and which positions are real (B, T), None = all of them. Layer and RMS norm have no use for the
latter: a position's statistics are its own, whatever stands beside it. That norms help because inputs shift less
("covariate shift") is contested (Santurkar et al. 2018).

Shapes: B batch, T positions, D features, N real positions.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from transduce.kernels.native import norm as native

NormKind = Literal["layer", "rms", "batch"]
EPSILON = 1e-5
MOMENTUM = 0.1  # as torch has it: how much of a batch's statistics enters the running ones


class LayerNorm(nn.LayerNorm):
    """Layer norm with gain and bias.

    only_multiplied: nothing but products, which round it anyway, reads the output: autocast's type is enough for it.
    """

    only_multiplied = False

    def forward(self, x_BTD: Tensor, real_BT: Tensor | None = None) -> Tensor:
        """(B, T, D)."""
        if native.can_norm(x_BTD, self.weight, self.bias):
            rounded = self.only_multiplied and torch.is_autocast_enabled("cpu")
            to = torch.get_autocast_dtype("cpu") if rounded else torch.float32
            return native.layer_norm(x_BTD, self.weight, self.bias, self.eps, to)
        return super().forward(x_BTD)


class RMSNorm(nn.RMSNorm):
    """RMS norm with gain."""

    def __init__(self, width: int) -> None:
        super().__init__(width, eps=EPSILON)

    def forward(self, x_BTD: Tensor, real_BT: Tensor | None = None) -> Tensor:
        """(B, T, D)."""
        return super().forward(x_BTD)


class NoNorm(nn.Module):
    """The input itself: the top of a post-norm stack, which is normed already."""

    def forward(self, x_BTD: Tensor, real_BT: Tensor | None = None) -> Tensor:
        """(B, T, D)."""
        return x_BTD


class BatchNorm(nn.Module):
    """Batch norm with gain and bias: with a batch's own statistics in training, with running ones in prediction.

    What it can and cannot promise:

    - Padding changes nothing, if `real_BT` says where it is: statistics are those of the real positions.
    - In prediction a position depends on itself alone, as with the other norms.
    - In training every position of a batch depends on all others. **In a decoder, that includes the future**: its
      statistics hold a little of the words that are to be predicted, and in any model a sentence's loss depends on
      which others share its batch. Hence layer norm is the default, and this is here for comparison.

    The running statistics are persistent buffers; model files and checkpoints hold them.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("mean_D", torch.zeros(width))
        self.register_buffer("variance_D", torch.ones(width))
        self.mean_D: Tensor
        self.variance_D: Tensor

    def forward(self, x_BTD: Tensor, real_BT: Tensor | None = None) -> Tensor:
        """(B, T, D)."""
        mean_D, variance_D = self._observed(x_BTD, real_BT) if self.training else (self.mean_D, self.variance_D)
        return (x_BTD - mean_D) * (variance_D + EPSILON).rsqrt() * self.weight + self.bias

    def _observed(self, x_BTD: Tensor, real_BT: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and variance of the real positions, which the running ones move towards."""
        rows_ND = x_BTD.flatten(0, 1) if real_BT is None else x_BTD[real_BT]
        mean_D, variance_D = rows_ND.mean(0), rows_ND.var(0, correction=0)
        with torch.no_grad():
            unbiased_D = variance_D * (len(rows_ND) / max(len(rows_ND) - 1, 1))
            self.mean_D.lerp_(mean_D.to(self.mean_D.dtype), MOMENTUM)
            self.variance_D.lerp_(unbiased_D.to(self.variance_D.dtype), MOMENTUM)
        return mean_D, variance_D


def make_norm(kind: NormKind, width: int, only_multiplied: bool = False) -> LayerNorm | RMSNorm | BatchNorm:
    """The norm of that name, over vectors of `width` features.

    only_multiplied: see `LayerNorm`; the others have no use for it.
    """
    kinds: dict[str, type[LayerNorm | RMSNorm | BatchNorm]] = {"layer": LayerNorm, "rms": RMSNorm, "batch": BatchNorm}
    norm = kinds[kind](width)
    if isinstance(norm, LayerNorm):
        norm.only_multiplied = only_multiplied
    return norm
