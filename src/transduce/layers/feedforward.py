"""The position-wise feed-forward layer (Vaswani et al. 2017, equation 2), and its gated variants (Shazeer 2020).

    relu          max(0, x W1) W2
    gelu          (x W1) Phi(x W1) W2                    (Hendrycks & Gimpel 2016)
    gelu_tanh     gelu, with Phi approximated by tanh    (the same, section 2)
    swish         (x W1) sigmoid(x W1) W2                (Ramachandran et al. 2017; also called SiLU)
    squared_relu  max(0, x W1)^2 W2                      (So et al. 2021)
    glu           (sigmoid(x W1) * x V) W2               (Dauphin et al. 2017)
    geglu         (gelu(x W1) * x V) W2                  (Shazeer 2020, equation 6, and the next)
    geglu_tanh    geglu, with gelu_tanh                  (T5 1.1)
    swiglu        (x W1 sigmoid(x W1) * x V) W2          (the same)

Each has a bias after each matrix. A gated layer has a third matrix; with 2/3 of the hidden width it has the same size.

Shapes: B batch, T positions, D model width, H hidden width.
"""

from collections.abc import Callable
from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.kernels.matmul import Linear

Activation = Literal["relu", "gelu", "gelu_tanh", "swish", "squared_relu", "glu", "geglu", "geglu_tanh", "swiglu"]


def squared_relu(x: Tensor) -> Tensor:
    """max(0, x)^2, any shape."""
    return F.relu(x).square()


gelu_tanh = partial(F.gelu, approximate="tanh")
PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": gelu_tanh,
    "swish": F.silu,
    "squared_relu": squared_relu,
}
GATED: dict[str, Callable[[Tensor], Tensor]] = {
    "glu": torch.sigmoid,
    "geglu": F.gelu,
    "geglu_tanh": gelu_tanh,
    "swiglu": F.silu,
}


class FeedForward(nn.Module):
    """Two linear maps with an activation in between, applied to each position separately.

    Args:
        width: D.
        hidden: H.
        dropout: dropout rate on the hidden layer.
        activation: a name from the module's table.
        zero_init: initialize W2, and so the output, with zeros (Zhang et al. 2019, "Fixup Initialization", section 3).
    """

    def __init__(
        self,
        width: int,
        hidden: int,
        dropout: float = 0.0,
        activation: Activation = "relu",
        zero_init: bool = False,
    ) -> None:
        super().__init__()
        self.inner = Linear(width, hidden)
        self.outer = Linear(hidden, width)
        self.linear = Linear(width, hidden) if activation in GATED else None
        self.dropout = Dropout(dropout)
        self.activation = (PLAIN | GATED)[activation]
        for linear in (self.inner, self.outer, self.linear):
            if linear is not None:
                nn.init.xavier_uniform_(linear.weight)
                nn.init.zeros_(linear.bias)
        if zero_init:
            nn.init.zeros_(self.outer.weight)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        hidden_BTH = self.activation(self.inner(x_BTD))
        if self.linear is not None:
            hidden_BTH = hidden_BTH * self.linear(x_BTD)
        return self.outer(self.dropout(hidden_BTH))
