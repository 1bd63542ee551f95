"""The connection around every sub-layer: residual and dropout, with a norm before or after.

Shapes: B batch, T positions, D model width.
"""

from collections.abc import Callable
from typing import Literal

from torch import Tensor, nn

from transduce.attention.dropout import add_dropped
from transduce.layers.norms import EPSILON, NormKind, make_norm

NormPlacement = Literal["pre", "post"]


class Residual(nn.Module):
    """norm(x + f(x)) with post-norm (Vaswani et al. 2017), or x + f(norm(x)) with pre-norm (Xiong et al. 2020).

    Under autocast the residual stream stays in fp32; only the computation inside f is rounded.

    Args:
        width: D.
        dropout: dropout rate on the output of f.
        norm: "pre" or "post".
        kind, epsilon: of the norm, see `transduce.layers.norms`.
    """

    def __init__(
        self,
        width: int,
        dropout: float,
        norm: NormPlacement,
        kind: NormKind = "layer",
        epsilon: float = EPSILON,
    ) -> None:
        super().__init__()
        self.norm = make_norm(kind, width, only_multiplied=norm == "pre", epsilon=epsilon)
        self.dropout = dropout
        self.placement = norm

    def forward(self, x_BTD: Tensor, sublayer: Callable[[Tensor], Tensor], real_BT: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, T, D). real_BT marks real positions, for norms over several positions; None = all are."""
        if self.placement == "pre":
            return self._add(x_BTD, sublayer(self.norm(x_BTD, real_BT)))
        return self.norm(self._add(x_BTD, sublayer(x_BTD)), real_BT)

    def _add(self, x_BTD: Tensor, f_BTD: Tensor) -> Tensor:
        return add_dropped(x_BTD, f_BTD, self.dropout if self.training else 0.0)
