"""The simpler simple recurrent unit (SSRU), a fast replacement for a decoder's self-attention.

    f_t = sigma(W_f x_t + b_f)
    c_t = f_t * c_{t-1} + (1 - f_t) * W x_t
    o_t = ReLU(c_t)

(Kim et al. 2019, "From research to production and back: ludicrously fast neural machine translation", section 3.1: the
simple recurrent unit of Lei et al. 2017 without its reset gate, and with ReLU for tanh.) A step costs two D x D
products at any position. Self-attention costs four, and also reads all earlier positions.

Shapes: B batch, T positions, D width.
"""

import torch
from torch import Tensor, nn

from transduce.kernels.matmul import Linear


class Ssru(nn.Module):
    """One layer of SSRU (Kim et al. 2019, section 3.1).

    Args:
        width: D.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.forget = Linear(width, width)
        self.value = Linear(width, width, bias=False)
        for product in (self.forget, self.value):
            nn.init.xavier_uniform_(product.weight)
        nn.init.zeros_(self.forget.bias)

    def empty(self, rows: int) -> Tensor:
        """The cell (B, D) before the first position: 0."""
        return self.value.weight.new_zeros(rows, len(self.value.weight))

    def forward(self, x_BTD: Tensor, past_BD: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The outputs (B, T, D) of T positions after the cell `past_BD`, and the cell (B, D) after the last.

        Under autocast, products use its dtype and the cell uses that of the weights.
        """
        forget_BTD = self.forget(x_BTD).to(self.forget.weight.dtype).sigmoid()
        new_BTD = (1 - forget_BTD) * self.value(x_BTD)
        cell_BD = self.empty(len(x_BTD)) if past_BD is None else past_BD
        cells = []
        for forget_BD, new_BD in zip(forget_BTD.unbind(1), new_BTD.unbind(1), strict=True):
            cell_BD = torch.addcmul(new_BD, forget_BD, cell_BD)
            cells.append(cell_BD)
        return torch.stack(cells, 1).relu(), cell_BD
