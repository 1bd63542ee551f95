"""The position-wise feed-forward layer (Vaswani et al. 2017, equation 2).

Shapes: B batch, T positions, D model width.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention.dropout import Dropout


class FeedForward(nn.Module):
    """max(0, x W1 + b1) W2 + b2, the same at every position: two convolutions of width 1."""

    def __init__(self, width: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.inner = nn.Linear(width, hidden)
        self.outer = nn.Linear(hidden, width)
        self.dropout = Dropout(dropout)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x_BTD: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        output: Tensor = self.outer(self.dropout(F.relu(self.inner(x_BTD))))
        return output
