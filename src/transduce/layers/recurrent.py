"""Recurrent cells: a table of equations.

    tanh   h = tanh(W x + U h' + b)
    gru    r, z = sigma(W x + U h' + b),  n = tanh(W_n x + b_n + r (U_n h' + c_n)),  h = (1 - z) n + z h'
    lstm   i, f, o = sigma(W x + U h' + b),  g = tanh(W_g x + U_g h' + b_g),  c = f c' + i g,  h = o tanh(c)
    lstmn  the lstm's, but h' and c' are read from all states so far: sum_i s_i h_i and sum_i s_i c_i, s a softmax

x is the input, h' and c' are the state before it. A recipe names a cell as above, and your own class as
`my_file:MyCell`: a subclass of `Cell` with its `gates`, `parts` and `forward`.

Parameters are named, laid out and ordered as in torch's RNNCell, GRUCell and LSTMCell.

Shapes: B batch, T positions, D width of the input, H width of the state, G = gates H, L entries of a tape, P = 2 H.
"""

import torch
from torch import Tensor, nn

from transduce.attention.cache import KeyValue
from transduce.attention.capture import Role, active_record
from transduce.attention.normalizers import softmax
from transduce.kernels.matmul import Linear, linear

CellParts = tuple[Tensor, ...]
"""(h,) or (h, c): each (B, H), or (B, T, H) where it is those after all positions. h is what a cell puts out."""

CellState = tuple[Tensor, ...]
"""The parts (B, H), and what else a cell remembers, the batch on axis 0: all that the next step needs."""


class Cell(nn.Module):
    """What every cell is.

    Args:
        input_width: D.
        width: H.
    """

    gates = 1
    """How many vectors of width H are computed from input and state."""
    parts = 1
    """How many tensors (B, H) a state begins with, h first: what a decoder's start is made of."""

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

    def begin(self, parts: CellParts) -> CellState:
        """The state that these parts, each (B, H), are the whole past of: themselves, unless a cell keeps more."""
        return parts

    def empty(self, rows: int) -> CellState:
        """The state before anything was read: zeros."""
        return self.begin(tuple(self.weight_hh.new_zeros(rows, self.width) for _ in range(self.parts)))

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
        return _through_gates(projected_BG + self.recall(h_BH), c_BH)


class Lstmn(Lstm):
    """The long short-term memory-network (Cheng et al. 2016, equations 4 to 9); order of gates: i, f, g, o, a.

    Where an LSTM goes on from the state before, this one goes on from what it reads of all states so far, which lie on
    a tape that grows by one a step: attention of a sequence to its own past, inside a cell.

        e_i = v . tanh(W_a x + U_a h~' + K h_i)                         (4), h~' the h~ of the step before, 0 at first
        h~ = sum_i s_i h_i,   c~ = sum_i s_i c_i,   s = softmax(e)      (5), (6)
        an LSTM's step from h~ and c~                                   (7) to (9)

    The state that it begins with is the tape's first entry, as in the authors' code; the paper's sums begin with the
    first word. The paper has no biases. Within a decoder this is the paper's shallow fusion (section 4): the decoder
    attends to the source as it does with any cell. Deep fusion, a gate for what it read there, is not part of it.

    State: h, c and h~, (B, H); as a key-value cache of one head the keys K h_i, (B, 1, L, H), and the tape [h_i; c_i],
    (B, 1, L, P). A record is handed s, (B, 1, 1, L), at each step.
    """

    gates = 5
    role: Role = "memory"

    def __init__(self, input_width: int, width: int) -> None:
        super().__init__(input_width, width)
        self.key = Linear(width, width, bias=False)
        self.reader_H = nn.Parameter(torch.randn(width) * width**-0.5)

    def begin(self, parts: CellParts) -> CellState:
        """A tape of one entry."""
        h_BH, c_BH = parts
        return h_BH, c_BH, torch.zeros_like(h_BH), *self._entry(h_BH, c_BH)

    def forward(self, projected_BG: Tensor, state: CellState) -> CellState:
        """(h, c, h~, keys, tape)."""
        _, _, before_BH, *past = state
        tape, gates = KeyValue(*past), 4 * self.width
        asked_BH = projected_BG[:, gates:] + linear(before_BH, self.weight_hh[gates:], self.bias_hh[gates:])
        read_BH, c_BH = self._read(asked_BH, tape)
        recalled = linear(read_BH, self.weight_hh[:gates], self.bias_hh[:gates])
        h_BH, c_BH = _through_gates(projected_BG[:, :gates] + recalled, c_BH)
        return h_BH, c_BH, read_BH, *tape.append(self._entry(h_BH, c_BH))

    def _entry(self, h_BH: Tensor, c_BH: Tensor) -> KeyValue:
        return KeyValue(self.key(h_BH)[:, None, None], torch.cat((h_BH, c_BH), -1)[:, None, None])

    def _read(self, asked_BH: Tensor, tape: KeyValue) -> tuple[Tensor, Tensor]:
        """h~ and c~, each (B, H)."""
        hidden_B1LH = (asked_BH[:, None, None] + tape.key).tanh()
        alpha_B11L = softmax((hidden_B1LH @ self.reader_H.to(hidden_B1LH.dtype))[:, None], None)
        record = active_record()
        if record is not None:
            record.take(self, alpha_B11L)
        # A sum and no matrix product, which autocast would round: c~ is c, and stays in fp32 as c does.
        read_BP = (alpha_B11L.mT * tape.value).sum((1, 2)).to(tape.value.dtype)
        h_BH, c_BH = read_BP.chunk(2, -1)
        return h_BH, c_BH


def _through_gates(gates_BG: Tensor, c_BH: Tensor) -> tuple[Tensor, Tensor]:
    """h and c of an LSTM after c, by gates of which the sum was taken already."""
    in_BH, forget_BH, new_BH, out_BH = gates_BG.chunk(4, -1)
    c_BH = forget_BH.sigmoid() * c_BH + in_BH.sigmoid() * new_BH.tanh()
    # Under autocast c, which adds up over the sentence, stays in fp32; h is a gate's output, and rounded like it.
    return out_BH.sigmoid() * c_BH.tanh().to(out_BH.dtype), c_BH


def unroll(cell: Cell, projected_BTG: Tensor, state: CellState) -> tuple[CellParts, CellState]:
    """The parts of the state after each of T inputs, every one (B, T, H), and the state after the last.

    Args:
        projected_BTG: `cell.project` of the inputs.
        state: the state before the first.
    """
    after = []
    for projected_BG in projected_BTG.unbind(1):
        state = cell(projected_BG, state)
        after.append(state[: cell.parts])
    return tuple(torch.stack(part, 1) for part in zip(*after, strict=True)), state


def parts_after(parts: CellParts, lengths_B: Tensor) -> CellParts:
    """Of the parts after every position those after the last of `lengths_B` (B,): every one (B, H)."""
    rows_B = torch.arange(len(lengths_B), device=lengths_B.device)
    return tuple(part_BTH[rows_B, lengths_B - 1] for part_BTH in parts)


def reversed_within(x_BTD: Tensor, lengths_B: Tensor) -> Tensor:
    """Each sequence back to front by its own length; what stands behind its end stays there."""
    position_T = torch.arange(x_BTD.shape[1], device=x_BTD.device)
    mirrored_BT = lengths_B[:, None] - 1 - position_T
    mirrored_BT = torch.where(mirrored_BT >= 0, mirrored_BT, position_T)
    return x_BTD.gather(1, mirrored_BT[..., None].expand_as(x_BTD))
