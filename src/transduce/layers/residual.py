"""The connection around every sub-layer: residual, dropout and norm, before or after.

Shapes: B batch, T positions, D model width.
"""

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

from transduce.attention.dropout import add_dropped
from transduce.layers.norms import NormKind, make_norm

NormPlacement = Literal["pre", "post"]


class Residual(nn.Module):
    """x + f(x), normed after (post: Vaswani et al. 2017) or on the way into f (pre: Xiong et al. 2020).

    The residual stream stays in fp32 under autocast: only f's inside is rounded.

    Args:
        width: D.
        dropout: rate on f's output while training.
        norm: where the norm stands.
        kind: which norm, see `transduce.layers.norms`.
    """

    def __init__(self, width: int, dropout: float, norm: NormPlacement, kind: NormKind = "layer") -> None:
        super().__init__()
        self.norm = make_norm(kind, width, only_multiplied=norm == "pre")
        self.dropout = dropout
        self.placement = norm

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor], real_BT: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, T, D); real_BT says which positions are, for norms that look at others; None = all."""
        if self.placement == "pre":
            return self._add(x_BTD, sublayer(self.norm(x_BTD, real_BT)))
        normed: Tensor = self.norm(self._add(x_BTD, sublayer(x_BTD)), real_BT)
        return normed

    def _add(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return add_dropped(x_BTD, f_BTD, self.dropout if self.training else 0.0)
