"""Recurrent cells.

    tanh   h = tanh(W x + U h' + b)
    gru    r, z = sigma(W x + U h' + b),  n = tanh(W_n x + b_n + r (U_n h' + c_n)),  h = (1 - z) n + z h'
    lstm   i, f, o = sigma(W x + U h' + b),  g = tanh(W_g x + U_g h' + b_g),  c = f c' + i g,  h = o tanh(c)
    lstmn  like lstm, but h' and c' are read from all earlier states: sum_i s_i h_i and sum_i s_i c_i, s a softmax
    ntm    like lstm, but h = o tanh(c) + R r, where r is what it reads from an external memory, to which it also writes

x is the input, h' and c' are the previous state. A recipe names one of these as `cell`, or your own subclass of `Cell`,
with its `gates`, `parts` and `forward`, as `my_file:MyCell`.

Parameters have the names, layout and order of torch's RNNCell, GRUCell and LSTMCell.

Shapes: B batch, T positions, D width of the input, H width of the state, G = gates H, L entries of the tape, P = 2 H,
N slots of an external memory, M width of a slot.
"""

import torch
from torch import Tensor, nn

from transduce.attention.cache import KeyValue
from transduce.attention.capture import Role, Side, active_record
from transduce.attention.normalizers import softmax
from transduce.kernels.matmul import Linear, linear
from transduce.layers.external_memory import ExternalMemory, MemorySizes, MemoryState

CellParts = tuple[Tensor, ...]
"""(h,) or (h, c): each (B, H), or (B, T, H) for all positions. h is the output of the cell."""

CellState = tuple[Tensor, ...]
"""The complete state: the parts (B, H), and whatever else the cell keeps, with the batch on axis 0."""


class Cell(nn.Module):
    """Base class of all cells.

    Args:
        input_width: D.
        width: H.
    """

    gates = 1
    """The number of vectors of width H that are computed from input and state."""
    parts = 1
    """The number of tensors (B, H) at the start of a state, h first. A decoder's initial state is made of them."""
    side: Side = "other"
    """Whether it reads a source or writes a target, for a cell that attends; see `transduce.attention.capture`."""

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
        """The initial state with these parts, each (B, H): the parts themselves, unless the cell keeps more."""
        return parts

    def empty(self, rows: int) -> CellState:
        """The initial state of zeros, for `rows` sequences."""
        return self.begin(tuple(self.weight_hh.new_zeros(rows, self.width) for _ in range(self.parts)))

    def shortened(self, state: CellState, length: int) -> CellState:
        """The state with the last `length` entries of what grows with the positions, for cells with such a state."""
        return state

    def project(self, x: Tensor) -> Tensor:
        """The input's contribution to the gates, W x + b: (.., D) -> (.., G), for all positions at once."""
        return linear(x, self.weight_ih, self.bias_ih)

    def recall(self, h_BH: Tensor) -> Tensor:
        """The state's contribution to the gates, U h' + c: (B, G)."""
        return linear(h_BH, self.weight_hh, self.bias_hh)

    def forward(self, projected_BG: Tensor, state: CellState) -> CellState:
        """The state after one more input, where `projected_BG` is the result of `project` for this input."""
        raise NotImplementedError


class Tanh(Cell):
    """h = tanh(W x + U h' + b) (Elman 1990). Order of gates: h."""

    def forward(self, projected_BG: Tensor, state: CellState) -> CellState:
        """(h,)."""
        return ((projected_BG + self.recall(state[0])).tanh(),)


class Gru(Cell):
    """The gated recurrent unit (Cho et al. 2014, equations 5 to 8). Order of gates: r, z, n.

    As in torch, cuDNN and Keras, r is applied after the matrix product with h', so that one product serves all gates.
    In the paper it is applied before. z keeps the old state, as in Cho et al.; Bahdanau et al. 2015 write 1 - z.
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
    """Long short-term memory (Hochreiter & Schmidhuber 1997), with the forget gate of Gers et al. 2000.

    Order of gates: i, f, g, o. The bias of the forget gate is initialized to 1 (Jozefowicz et al. 2015).
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
    """The long short-term memory-network (Cheng et al. 2016, equations 4 to 9). Order of gates: i, f, g, o, a.

    An LSTM continues from its previous state. This cell attends to all of its earlier states and continues from the
    result. The states are kept on a tape that grows by one entry per step.

        e_i = v . tanh(W_a x + U_a h~' + K h_i)                         (4), h~' the h~ of the previous step, 0 at first
        h~ = sum_i s_i h_i,   c~ = sum_i s_i c_i,   s = softmax(e)      (5), (6)
        an LSTM's step from h~ and c~                                   (7) to (9)

    The initial state is the first entry of the tape, as in the authors' code; in the paper, the sums start at the first
    word. The paper has no biases. In a decoder, this is the paper's shallow fusion (section 4): the decoder attends to
    the source as with any other cell. Deep fusion, which adds a gate for the source, is not implemented.

    State: h, c and h~, (B, H); and a key-value cache with one head: the keys K h_i, (B, 1, L, H), and the tape
    [h_i; c_i], (B, 1, L, P). A capture records the weights s, (B, 1, 1, L), of each step.
    """

    gates = 5
    role: Role = "tape"

    def __init__(self, input_width: int, width: int) -> None:
        super().__init__(input_width, width)
        self.key = Linear(width, width, bias=False)
        self.reader_H = nn.Parameter(torch.randn(width) * width**-0.5)

    def begin(self, parts: CellParts) -> CellState:
        """The state with a tape of one entry."""
        h_BH, c_BH = parts
        return h_BH, c_BH, torch.zeros_like(h_BH), *self._entry(h_BH, c_BH)

    def shortened(self, state: CellState, length: int) -> CellState:
        """With the last `length` entries of the tape."""
        h_BH, c_BH, read_BH, *past = state
        return h_BH, c_BH, read_BH, *KeyValue(*past).last(length)

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
        # A sum instead of a matrix product, which autocast would round: c~ stays in fp32, as c does.
        read_BP = (alpha_B11L.mT * tape.value).sum((1, 2)).to(tape.value.dtype)
        h_BH, c_BH = read_BP.chunk(2, -1)
        return h_BH, c_BH


class Ntm(Lstm):
    """An LSTM with an external memory: the Neural Turing Machine (Graves et al. 2014) as a cell of any model.

        h~, c = an LSTM's step from h and c'
        r, M = the memory's step (`transduce.layers.external_memory`), whose heads h~ moves
        h = h~ + R r

    One head reads, one writes. The sum gives what was read to the output and, through U h, to the next step, as the
    paper does by joining the vectors. The memory starts constant; where the heads begin is learnt.

    State: h and c, (B, H); the memory (B, N, M), the heads' weightings (B, 2, N) and what was read, (B, 1, M). A
    capture records the weightings, (B, 1, 1, N), of each step.
    """

    sizes = MemorySizes(slots=64, width=24, read=1, write=1, reach=1)
    constant = 1e-6

    def __init__(self, input_width: int, width: int) -> None:
        super().__init__(input_width, width)
        self.memory = ExternalMemory(width, self.sizes, self.constant)
        self.reader = Linear(self.sizes.width, width, bias=False)

    def begin(self, parts: CellParts) -> CellState:
        """The state with a memory in which nothing is written; h gets what is read before the first step."""
        h_BH, c_BH = parts
        memory = self.memory.initial(len(h_BH))
        return self._joined(h_BH, memory), c_BH, *memory

    def forward(self, projected_BG: Tensor, state: CellState) -> CellState:
        """(h, c, memory, weightings, read)."""
        h_BH, c_BH, *before = state
        h_BH, c_BH = _through_gates(projected_BG + self.recall(h_BH), c_BH)
        after = self.memory(h_BH, MemoryState(*before))
        return self._joined(h_BH, after), c_BH, *after

    def _joined(self, h_BH: Tensor, memory: MemoryState) -> Tensor:
        return h_BH + self.reader(memory.read.flatten(1).to(h_BH.dtype))


def _through_gates(gates_BG: Tensor, c_BH: Tensor) -> tuple[Tensor, Tensor]:
    """The next h and c of an LSTM, from the sums of its gates and the previous c."""
    in_BH, forget_BH, new_BH, out_BH = gates_BG.chunk(4, -1)
    c_BH = forget_BH.sigmoid() * c_BH + in_BH.sigmoid() * new_BH.tanh()
    # Under autocast, c accumulates over the sentence and stays in fp32; h is rounded like the gates.
    return out_BH.sigmoid() * c_BH.tanh().to(out_BH.dtype), c_BH


def unroll(cell: Cell, projected_BTG: Tensor, state: CellState) -> tuple[CellParts, CellState]:
    """The parts of the state after each of T inputs, each (B, T, H), and the state after the last.

    Args:
        cell: the cell.
        projected_BTG: `cell.project` of the inputs.
        state: the state before the first input.
    """
    after = []
    for projected_BG in projected_BTG.unbind(1):
        state = cell(projected_BG, state)
        after.append(state[: cell.parts])
    return tuple(torch.stack(part, 1) for part in zip(*after, strict=True)), state


def advance(cell: Cell, x_BTI: Tensor, state: CellState) -> tuple[Tensor, CellState]:
    """The outputs (B, T, H) for T inputs after `state`, and the state after the last.

    Where gradients are wanted, torch's kernel computes all positions of an LSTM in one call, several times as fast.
    Without gradients each step is a product of its own, whose rows do not depend on the rest of the batch.
    """
    if type(cell) is not Lstm or not torch.is_grad_enabled() or x_BTI.shape[1] == 1 or not _has_lstm(x_BTI):
        projected_BTG = cell.project(x_BTI)
        parts, after = unroll(cell, projected_BTG, state)
        return parts[0].to(projected_BTG.dtype), after
    h_BH, c_BH = state
    weights: list[Tensor] = [cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh]
    output_BTH, last_1BH, kept_1BH = torch.lstm(
        x_BTI, (h_BH[None], c_BH[None]), weights, True, 1, 0.0, train=True, bidirectional=False, batch_first=True
    )
    return output_BTH, (last_1BH[0], kept_1BH[0].to(c_BH.dtype))


def _has_lstm(x_BTI: Tensor) -> bool:
    """Whether torch's kernel takes inputs of this type here; in bf16 oneDNN has none for processors without AVX-512."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    in_bf16 = x_BTI.dtype is torch.bfloat16 or torch.is_autocast_enabled("cpu")
    return not in_bf16 or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def parts_after(parts: CellParts, lengths_B: Tensor) -> CellParts:
    """The parts (B, H) after the last position of each sequence, from the parts (B, T, H) after every position."""
    rows_B = torch.arange(len(lengths_B), device=lengths_B.device)
    return tuple(part_BTH[rows_B, lengths_B - 1] for part_BTH in parts)


def reversed_within(x_BTD: Tensor, lengths_B: Tensor) -> Tensor:
    """Each sequence reversed within its own length; padding stays at the end."""
    position_T = torch.arange(x_BTD.shape[1], device=x_BTD.device)
    mirrored_BT = lengths_B[:, None] - 1 - position_T
    mirrored_BT = torch.where(mirrored_BT >= 0, mirrored_BT, position_T)
    return x_BTD.gather(1, mirrored_BT[..., None].expand_as(x_BTD))
