"""Cells and what unrolls them against torch's modules, with the same weights, in fp64."""

import pytest
import torch
from torch import Tensor, nn

from transduce.core.registry import known
from transduce.layers.recurrent import Cell, Gru, Lstm, Tanh, parts_after, reversed_within, unroll

WIDTH, INPUT, ROWS, LENGTH = 5, 4, 3, 6
CELLS: list[tuple[type[Cell], type[nn.RNNCellBase], type[nn.RNNBase]]] = [
    (Tanh, nn.RNNCell, nn.RNN),
    (Gru, nn.GRUCell, nn.GRU),
    (Lstm, nn.LSTMCell, nn.LSTM),
]
every_cell = pytest.mark.parametrize(("ours", "their_cell", "their_layer"), CELLS, ids=lambda kind: kind.__name__)


def randomised(cell: Cell) -> Cell:
    """No bias is 0, so that one in the wrong place shows."""
    for parameter in cell.parameters():
        nn.init.normal_(parameter, std=0.5)
    return cell.double()


def random_state(cell: Cell) -> tuple[Tensor, ...]:
    return tuple(torch.randn_like(part_BH, dtype=torch.float64) for part_BH in cell.empty(ROWS))


def test_every_cell_is_compared() -> None:
    with_equations_of_its_own = ["lstmn", "ntm"]  # torch has none: see test_lstmn.py and test_ntm_cell.py
    assert list(known("layers.recurrent")) == sorted(
        [ours.__name__.lower() for ours, _, _ in CELLS] + with_equations_of_its_own
    )


@every_cell
def test_one_step(ours: type[Cell], their_cell: type[nn.RNNCellBase], their_layer: type[nn.RNNBase]) -> None:
    torch.manual_seed(0)
    cell = randomised(ours(INPUT, WIDTH))
    theirs = their_cell(INPUT, WIDTH)  # type: ignore[call-arg]
    theirs.double().load_state_dict(cell.state_dict())
    x_BD, state = torch.randn(ROWS, INPUT, dtype=torch.float64), random_state(cell)
    expected = theirs(x_BD, state if cell.parts > 1 else state[0])
    after = cell(cell.project(x_BD), state)
    torch.testing.assert_close(after, expected if cell.parts > 1 else (expected,))


@every_cell
def test_a_sentence(ours: type[Cell], their_cell: type[nn.RNNCellBase], their_layer: type[nn.RNNBase]) -> None:
    torch.manual_seed(1)
    cell = randomised(ours(INPUT, WIDTH))
    theirs = their_layer(INPUT, WIDTH, batch_first=True).double()  # type: ignore[call-arg]
    theirs.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})
    x_BTD, state = torch.randn(ROWS, LENGTH, INPUT, dtype=torch.float64), random_state(cell)
    first = tuple(part_BH[None] for part_BH in state)
    output_BTH, last = theirs(x_BTD, first if cell.parts > 1 else first[0])
    parts, after = unroll(cell, cell.project(x_BTD), state)
    torch.testing.assert_close(parts[0], output_BTH)
    expected = tuple(part[0] for part in last) if cell.parts > 1 else (last[0],)
    torch.testing.assert_close(after, expected)
    torch.testing.assert_close(parts_after(parts, torch.full((ROWS,), LENGTH)), expected)


@every_cell
def test_gradients(ours: type[Cell], their_cell: type[nn.RNNCellBase], their_layer: type[nn.RNNBase]) -> None:
    torch.manual_seed(2)
    cell = randomised(ours(INPUT, WIDTH))
    x_BTD = torch.randn(2, 3, INPUT, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: unroll(cell, cell.project(x), cell.empty(2))[0], [x_BTD])


def test_the_forget_gate_starts_open_and_nothing_else_is_biased() -> None:
    cell = Lstm(INPUT, WIDTH)
    total_G = cell.bias_ih + cell.bias_hh
    assert total_G.tolist() == [0.0] * WIDTH + [1.0] * WIDTH + [0.0] * 2 * WIDTH


@pytest.mark.parametrize("kind", [Tanh, Gru, Lstm])
def test_each_gate_starts_as_a_matrix_of_its_own(kind: type[Cell]) -> None:
    torch.manual_seed(0)
    cell = kind(5, 8)
    for gate in range(cell.gates):
        rows = slice(8 * gate, 8 * gate + 8)
        torch.testing.assert_close(cell.weight_hh[rows] @ cell.weight_hh[rows].T, torch.eye(8), rtol=0, atol=1e-5)
        greatest = cell.weight_ih[rows].abs().max().item()
        assert 0.8 < greatest / (6 / (5 + 8)) ** 0.5 <= 1  # Glorot and Bengio 2010, equation 16


def test_reversal_keeps_to_the_sentence() -> None:
    x_BTD = torch.arange(12.0).view(3, 4, 1)
    found_BTD = reversed_within(x_BTD, torch.tensor([4, 1, 3]))
    assert found_BTD[..., 0].tolist() == [[3, 2, 1, 0], [4, 5, 6, 7], [10, 9, 8, 11]]


def test_lstm_memory_stays_in_fp32_under_autocast() -> None:
    cell = Lstm(INPUT, WIDTH)
    with torch.autocast("cpu", torch.bfloat16):
        (h_BTH, c_BTH), _ = unroll(cell, cell.project(torch.randn(2, 3, INPUT)), cell.empty(2))
    assert (h_BTH.dtype, c_BTH.dtype) == (torch.bfloat16, torch.float32)
