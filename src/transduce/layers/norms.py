"""Normalization layers.

    layer  (x - mean) / sqrt(var + eps) g + b    over the D features of each position       (Ba et al. 2016)
    rms    x / sqrt(mean(x^2) + eps) g           over the D features of each position       (Zhang & Sennrich 2019)
    batch  (x - mean) / sqrt(var + eps) g + b    over all real positions, feature by feature (Ioffe & Szegedy 2015)

All take x (B, T, D) and a mask of real positions (B, T), None = all of them. Layer norm and RMS norm ignore the mask,
because they normalize each position separately. The explanation that norms reduce "covariate shift" is contested
(Santurkar et al. 2018).

Shapes: B batch, T positions, D features, N real positions.
"""

from typing import Literal

import torch
from torch import Tensor, nn

from transduce.kernels.native import norm as native
from transduce.layers.recomputation import recomputing

NormKind = Literal["layer", "rms", "batch"]
EPSILON = 1e-5
MOMENTUM = 0.1  # the weight of a batch's statistics in the running ones, as in torch


class LayerNorm(nn.LayerNorm):
    """Layer norm with gain and bias.

    only_multiplied: only matrix products read the output, so under autocast it may be returned in autocast's dtype.
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

    def __init__(self, width: int, epsilon: float = EPSILON) -> None:
        super().__init__(width, eps=epsilon)

    def forward(self, x_BTD: Tensor, real_BT: Tensor | None = None) -> Tensor:
        """(B, T, D)."""
        return super().forward(x_BTD)


class NoNorm(nn.Module):
    """The identity, used after the last block of a post-norm stack, whose output is already normalized."""

    def forward(self, x_BTD: Tensor, real_BT: Tensor | None = None) -> Tensor:
        """(B, T, D)."""
        return x_BTD


class BatchNorm(nn.Module):
    """Batch norm with gain and bias. It uses the batch's statistics in training and running statistics in prediction.

    - Padding has no effect if `real_BT` marks it: statistics include real positions only.
    - In prediction, each position is normalized separately, as with the other norms.
    - In training, every position depends on all others in the batch. **In a decoder, this includes the future**: the
      statistics contain information about the words to be predicted. A sentence's loss also depends on the other
      sentences in its batch. Therefore layer norm is the default, and batch norm is here for comparison.

    The running statistics are persistent buffers, stored in model files and checkpoints.
    """

    def __init__(self, width: int, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("mean_D", torch.zeros(width))
        self.register_buffer("variance_D", torch.ones(width))
        self.mean_D: Tensor
        self.variance_D: Tensor

    def forward(self, x_BTD: Tensor, real_BT: Tensor | None = None) -> Tensor:
        """(B, T, D)."""
        mean_D, variance_D = self._observed(x_BTD, real_BT) if self.training else (self.mean_D, self.variance_D)
        return (x_BTD - mean_D) * (variance_D + self.epsilon).rsqrt() * self.weight + self.bias

    def _observed(self, x_BTD: Tensor, real_BT: Tensor | None) -> tuple[Tensor, Tensor]:
        """Mean and variance of the real positions; updates the running statistics, once for each batch."""
        rows_ND = x_BTD.flatten(0, 1) if real_BT is None else x_BTD[real_BT]
        mean_D, variance_D = rows_ND.mean(0), rows_ND.var(0, correction=0)
        if recomputing():
            return mean_D, variance_D
        with torch.no_grad():
            unbiased_D = variance_D * (len(rows_ND) / max(len(rows_ND) - 1, 1))
            self.mean_D.lerp_(mean_D.to(self.mean_D.dtype), MOMENTUM)
            self.variance_D.lerp_(unbiased_D.to(self.variance_D.dtype), MOMENTUM)
        return mean_D, variance_D


def make_norm(
    kind: NormKind, width: int, only_multiplied: bool = False, epsilon: float = EPSILON
) -> LayerNorm | RMSNorm | BatchNorm:
    """The norm named `kind`, over vectors of `width` features.

    only_multiplied: see `LayerNorm`; other norms ignore it. epsilon: eps of the table above.
    """
    kinds: dict[str, type[LayerNorm | RMSNorm | BatchNorm]] = {"layer": LayerNorm, "rms": RMSNorm, "batch": BatchNorm}
    norm = kinds[kind](width, epsilon)
    if isinstance(norm, LayerNorm):
        norm.only_multiplied = only_multiplied
    return norm
