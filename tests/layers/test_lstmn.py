"""The long short-term memory-network against the equations of Cheng et al. 2016, one vector at a time, in fp64."""

import math

import pytest
import torch
from torch import Tensor, nn

from transduce.attention import capture
from transduce.layers.recurrent import Lstmn, unroll
from transduce.layers.recurrent_stack import RecurrentEncoder, RecurrentStack

D, H, B, T = 3, 4, 2, 5
X_BTD = torch.randn(B, T, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def cell() -> Lstmn:
    """No parameter is 0, so that one in the wrong place shows."""
    torch.manual_seed(1)
    made = Lstmn(D, H)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.7)
    return made.double()


def start(cell: Lstmn) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(2)
    return cell.begin(tuple(torch.randn(B, H, dtype=torch.float64, generator=generator) for _ in range(2)))


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def dot(row: list[float], vector: list[float]) -> float:
    return sum(weight * value for weight, value in zip(row, vector, strict=True))


def slowly(cell: Lstmn, x_TD: Tensor, h_H: Tensor, c_H: Tensor) -> tuple[list[list[float]], list[list[float]]]:
    """The h_t and the s_t by equations 4 to 9, the tapes beginning with the given state."""
    w, u, k, v = (each.tolist() for each in (cell.weight_ih, cell.weight_hh, cell.key.weight, cell.reader_H))
    b = (cell.bias_ih + cell.bias_hh).tolist()
    hidden_tape, memory_tape = [h_H.tolist()], [c_H.tolist()]
    h_tilde, all_s = [0.0] * H, []
    for x in x_TD.tolist():
        a = []
        for h_i in hidden_tape:
            inside = [
                dot(k[j], h_i) + dot(w[4 * H + j], x) + dot(u[4 * H + j], h_tilde) + b[4 * H + j] for j in range(H)
            ]
            a.append(sum(v[j] * math.tanh(inside[j]) for j in range(H)))  # (4)
        s = [math.exp(a_i) / sum(math.exp(each) for each in a) for a_i in a]  # (5)
        h_tilde = [sum(s_i * h_i[j] for s_i, h_i in zip(s, hidden_tape, strict=True)) for j in range(H)]  # (6)
        c_tilde = [sum(s_i * c_i[j] for s_i, c_i in zip(s, memory_tape, strict=True)) for j in range(H)]
        gate = [dot(w[j], x) + dot(u[j], h_tilde) + b[j] for j in range(4 * H)]  # (7)
        i, f, o = ([sigma(gate[start + j]) for j in range(H)] for start in (0, H, 3 * H))
        c = [f[j] * c_tilde[j] + i[j] * math.tanh(gate[2 * H + j]) for j in range(H)]  # (8)
        hidden_tape.append([o[j] * math.tanh(c[j]) for j in range(H)])  # (9)
        memory_tape.append(c)
        all_s.append(s)
    return hidden_tape[1:], all_s


def test_it_equals_the_papers_equations_in_what_it_puts_out_and_where_it_looks(cell: Lstmn) -> None:
    before = start(cell)
    with capture(cell) as record:
        (h_BTH, _), _ = unroll(cell, cell.project(X_BTD), before)
    assert [tuple(alpha_B11L.shape) for alpha_B11L in record[""]] == [(B, 1, 1, entries) for entries in range(1, T + 1)]
    for row in range(B):
        expected_TH, all_s = slowly(cell, X_BTD[row], before[0][row], before[1][row])
        torch.testing.assert_close(h_BTH[row].tolist(), expected_TH)
        torch.testing.assert_close([alpha_B11L[row, 0, 0].tolist() for alpha_B11L in record[""]], all_s)


def test_with_nothing_but_the_state_before_to_look_at_it_is_torchs_lstm(cell: Lstmn) -> None:
    theirs = nn.LSTMCell(D, H).double()
    theirs.load_state_dict({name: getattr(cell, name)[: 4 * H] for name in theirs.state_dict()})
    before = start(cell)
    after = cell(cell.project(X_BTD[:, 0]), before)
    torch.testing.assert_close(after[:2], theirs(X_BTD[:, 0], before[:2]))
    second = cell(cell.project(X_BTD[:, 1]), after)
    assert not torch.allclose(second[0], theirs(X_BTD[:, 1], after[:2])[0])


def test_the_tape_grows_by_one_a_step_and_the_state_before_is_left_alone(cell: Lstmn) -> None:
    before = start(cell)
    kept = [part.clone() for part in before]
    assert torch.equal(before[2], torch.zeros(B, H).double()), "h~ is 0 at first, where of one entry nothing is chosen"
    (h_BTH, c_BTH), after = unroll(cell, cell.project(X_BTD), before)
    assert all(torch.equal(part, was) for part, was in zip(before, kept, strict=True))
    tape_B1LP = after[-1]
    torch.testing.assert_close(tape_B1LP[:, 0, 1:], torch.cat((h_BTH, c_BTH), -1))
    torch.testing.assert_close(after[-2], cell.key(tape_B1LP[..., :H]))


def test_it_can_be_cut_anywhere(cell: Lstmn) -> None:
    stack = RecurrentStack("lstmn", D, H, 2, residual=True, dropout=0.0).double()
    state = stack.begin(tuple(tuple(torch.randn(B, H).double() for _ in range(2)) for _ in range(2)))
    projected_BTG = stack.project(X_BTD)
    whole_BTH, end = stack.extend(projected_BTG, state)
    first_BTH, state = stack.extend(projected_BTG[:, :2], state)
    second_BTH, state = stack.extend(projected_BTG[:, 2:], state)
    torch.testing.assert_close(torch.cat((first_BTH, second_BTH), 1), whole_BTH)
    torch.testing.assert_close(state, end)


def test_in_both_directions_padding_stays_off_the_tape() -> None:
    torch.manual_seed(3)
    encoder = RecurrentEncoder("lstmn", D, H, 2, False, 0.0, "both").double()
    padded_BTH, last = encoder(X_BTD, torch.tensor([T, 3]))
    alone_1TH, last_alone = encoder(X_BTD[1:, :3], torch.tensor([3]))
    torch.testing.assert_close(padded_BTH[1:, :3], alone_1TH)
    for layer, layer_alone in zip(last, last_alone, strict=True):
        torch.testing.assert_close([part_BH[1:] for part_BH in layer], list(layer_alone))


def test_gradients_of_inputs_and_parameters(cell: Lstmn) -> None:
    def run(x_BTD: Tensor, *parameters: Tensor) -> tuple[Tensor, ...]:
        return unroll(cell, cell.project(x_BTD), start(cell))[0]

    assert torch.autograd.gradcheck(run, (X_BTD[:, :3].clone().requires_grad_(), *cell.parameters()))


def test_what_it_remembers_and_reads_stays_in_fp32_under_autocast() -> None:
    cell = Lstmn(D, H)
    with torch.autocast("cpu", torch.bfloat16):
        (h_BTH, c_BTH), (*_, tape_B1LP) = unroll(cell, cell.project(X_BTD.float()), cell.empty(B))
    assert (h_BTH.dtype, c_BTH.dtype, tape_B1LP.dtype) == (torch.bfloat16, torch.float32, torch.float32)
