"""Recurrent cells: a table of equations.

    tanh   h = tanh(W x + U h' + b)
    gru    r, z = sigma(W x + U h' + b),  n = tanh(W_n x + b_n + r (U_n h' + c_n)),  h = (1 - z) n + z h'
    lstm   i, f, o = sigma(W x + U h' + b),  g = tanh(W_g x + U_g h' + b_g),  c = f c' + i g,  h = o tanh(c)

x is the input, h' and c' are the state before it. A recipe names a cell as above, and your own class as
`my_file:MyCell`: a subclass of `Cell` with its `gates`, `parts` and `forward`.

Parameters are named, laid out and ordered as in torch's RNNCell, GRUCell and LSTMCell.

Shapes: B batch, T positions, D width of the input, H width of the state, G = gates H.
"""

import torch
from torch import Tensor, nn

from transduce.linear import linear

CellState = tuple[Tensor, ...]
"""(h,) or (h, c): each (B, H), or (B, T, H) where it is the states after all positions. h is what a cell puts out."""


class Cell(nn.Module):
    """What every cell is.

    Args:
        input_width: D.
        width: H.
    """

    gates = 1
    """How many vectors of width H are computed from input and state."""
    parts = 1
    """How many tensors a state has."""

    def __init__(self, input_width: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.weight_ih = nn.Parameter(torch.empty(self.gates * width, input_width))
        self.weight_hh = nn.Parameter(torch.empty(self.gates * width, width))
        self.bias_ih = nn.Parameter(torch.zeros(self.gates * width))
        self.bias_hh = nn.Parameter(torch.zeros(self.gates * width))
        for gate in range(self.gates):
            rows = slice(gate * width, (gate + 1) * width)
            nn.init.xavier_uniform_(self.weight_ih.data[rows])
            nn.init.orthogonal_(self.weight_hh.data[rows])

    def empty(self, rows: int) -> CellState:
        """The state before anything was read: zeros."""
        return tuple(self.weight_hh.new_zeros(rows, self.width) for _ in range(self.parts))

    def project(self, x: Tensor) -> Tensor:
        """What the input alone adds to the gates, W x + b: (.., D) -> (.., G), for all positions at once."""
        return linear(x, self.weight_ih, self.bias_ih)

    def recall(self, h_BH: Tensor) -> Tensor:
        """What the state alone adds to the gates, U h' + c: (B, G)."""
        return linear(h_BH, self.weight_hh, self.bias_hh)

    def forward(self, projected_BG: Tensor, state: CellState) -> CellState:
        """The state after one more input, of which `project` made `projected_BG`."""
        raise NotImplementedError


class Tanh(Cell):
    """h = tanh(W x + U h' + b) (Elman 1990); order of gates: h."""

    def forward(self, projected_BG: Tensor, state: CellState) -> CellState:
        """(h,)."""
        return ((projected_BG + self.recall(state[0])).tanh(),)


class Gru(Cell):
    """The gated recurrent unit (Cho et al. 2014, equations 5 to 8); order of gates: r, z, n.

    As torch, cuDNN and Keras have it, r resets what the matrix made of h' (the paper: h' itself, before the matrix),
    so that one product serves all gates. z keeps the old state, as in Cho et al.; Bahdanau et al. 2015 write 1 - z.
    """

    gates = 3

    def forward(self, projected_BG: Tensor, state: CellState) -> CellState:
        """(h,)."""
        (h_BH,) = state
        reset_BH, keep_BH, new_BH = projected_BG.chunk(3, -1)
        old_reset_BH, old_keep_BH, old_new_BH = self.recall(h_BH).chunk(3, -1)
        proposed_BH = (new_BH + (reset_BH + old_reset_BH).sigmoid() * old_new_BH).tanh()
        return (proposed_BH + (keep_BH + old_keep_BH).sigmoid() * (h_BH - proposed_BH),)


class Lstm(Cell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000); i, f, g, o.

    The forget gate starts open, with a bias of 1 (Jozefowicz et al. 2015).
    """

    gates = 4
    parts = 2

    def __init__(self, input_width: int, width: int) -> None:
        super().__init__(input_width, width)
        self.bias_ih.data[width : 2 * width] = 1.0

    def forward(self, projected_BG: Tensor, state: CellState) -> CellState:
        """(h, c)."""
        h_BH, c_BH = state
        in_BH, forget_BH, new_BH, out_BH = (projected_BG + self.recall(h_BH)).chunk(4, -1)
        c_BH = forget_BH.sigmoid() * c_BH + in_BH.sigmoid() * new_BH.tanh()
        # Under autocast c, which adds up over the sentence, stays in fp32; h is a gate's output, and rounded like it.
        return out_BH.sigmoid() * c_BH.tanh().to(out_BH.dtype), c_BH


def unroll(cell: Cell, projected_BTG: Tensor, state: CellState) -> CellState:
    """The states after each of T inputs: every part (B, T, H).

    Args:
        projected_BTG: `cell.project` of the inputs.
        state: the state before the first.
    """
    after = []
    for projected_BG in projected_BTG.unbind(1):
        state = cell(projected_BG, state)
        after.append(state)
    return tuple(torch.stack(part, 1) for part in zip(*after, strict=True))


def states_after(states: CellState, lengths_B: Tensor) -> CellState:
    """Of the states after every position those after the last of `lengths_B` (B,): every part (B, H)."""
    rows_B = torch.arange(len(lengths_B), device=lengths_B.device)
    return tuple(part_BTH[rows_B, lengths_B - 1] for part_BTH in states)


def reversed_within(x_BTD: Tensor, lengths_B: Tensor) -> Tensor:
    """Each sequence back to front by its own length; what stands behind its end stays there."""
    position_T = torch.arange(x_BTD.shape[1], device=x_BTD.device)
    mirrored_BT = lengths_B[:, None] - 1 - position_T
    mirrored_BT = torch.where(mirrored_BT >= 0, mirrored_BT, position_T)
    return x_BTD.gather(1, mirrored_BT[..., None].expand_as(x_BTD))
