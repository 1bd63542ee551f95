"""Stacks and encoders against torch's modules of several layers and directions, in fp64."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from transduce.layers.recurrent import reversed_within
from transduce.layers.recurrent_stack import RecurrentEncoder, RecurrentStack, StackState

INPUT, WIDTH, LAYERS = 5, 6, 3
LENGTHS_B = torch.tensor([4, 7, 1])
X_BSD = torch.randn(3, 7, INPUT, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
THEIRS = {"tanh": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}
every_cell = pytest.mark.parametrize("cell", THEIRS)


def randomised(module: nn.Module) -> nn.Module:
    torch.manual_seed(3)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module.double()


def encoder(cell: str, direction: str, residual: bool = False) -> RecurrentEncoder:
    made = RecurrentEncoder(cell, INPUT, WIDTH, LAYERS, residual, 0.0, direction)  # type: ignore[arg-type]
    return randomised(made)  # type: ignore[return-value]


def torchs(ours: RecurrentEncoder, cell: str) -> nn.RNNBase:
    directions = len(ours.backward)
    sizes = (INPUT, WIDTH // directions, LAYERS)
    theirs: nn.RNNBase = THEIRS[cell](*sizes, batch_first=True, bidirectional=directions == 2).double()
    named = {
        f"{name}_l{layer}{'_reverse' * number}": value
        for layer, cells in enumerate(ours.layers)
        for number, each in enumerate(cells)
        for name, value in each.state_dict().items()
    }
    theirs.load_state_dict(named)
    return theirs


def packed(theirs: nn.RNNBase, x_BSD: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Outputs (B, S, H), 0 behind the ends, and each part of the last state (L * directions, B, H)."""
    output, last = theirs(pack_padded_sequence(x_BSD, LENGTHS_B, batch_first=True, enforce_sorted=False))
    return pad_packed_sequence(output, batch_first=True)[0], list(last) if isinstance(last, tuple) else [last]


def side_by_side(last: list[Tensor], directions: int) -> StackState:
    """torch's last states, (L * directions, B, H) a part, by layer."""
    by_layer = [part.unflatten(0, (LAYERS, directions)) for part in last]
    return tuple(tuple(torch.cat(list(part[layer]), -1) for part in by_layer) for layer in range(LAYERS))


def stacks(cell: str) -> tuple[RecurrentStack, nn.RNNBase]:
    """Ours and torch's with the same random weights."""
    ours = randomised(RecurrentStack(cell, INPUT, WIDTH, LAYERS, residual=False, dropout=0.0))
    assert isinstance(ours, RecurrentStack)
    theirs: nn.RNNBase = THEIRS[cell](INPUT, WIDTH, LAYERS, batch_first=True).double()
    theirs.load_state_dict({f"{n}_l{i}": v for i, each in enumerate(ours.cells) for n, v in each.state_dict().items()})
    return ours, theirs


@every_cell
@pytest.mark.parametrize("direction", ["forward", "both"])
def test_an_encoder_is_torchs_with_packed_sentences(cell: str, direction: str) -> None:
    ours = encoder(cell, direction)
    states_BSH, last = ours(X_BSD, LENGTHS_B)
    expected_BSH, their_last = packed(torchs(ours, cell), X_BSD)
    real_BS1 = (torch.arange(7) < LENGTHS_B[:, None])[..., None]
    torch.testing.assert_close(states_BSH * real_BS1, expected_BSH)
    torch.testing.assert_close(last, side_by_side(their_last, len(ours.backward)))


@every_cell
@pytest.mark.parametrize("direction", ["forward", "both"])
@pytest.mark.parametrize("gradients", [True, False])
def test_states_alone_are_torchs_too_with_their_gradients(cell: str, direction: str, gradients: bool) -> None:
    ours = encoder(cell, direction, residual=False)
    theirs = torchs(ours, cell)
    real_BS1 = (torch.arange(7) < LENGTHS_B[:, None])[..., None]
    with torch.set_grad_enabled(gradients):
        states_BSH = ours.states(X_BSD, LENGTHS_B) * real_BS1
        expected_BSH, _ = packed(theirs, X_BSD)
    torch.testing.assert_close(states_BSH, expected_BSH)
    if gradients:
        weight_BSH = torch.linspace(-1, 1, states_BSH.numel(), dtype=states_BSH.dtype).view_as(states_BSH)
        (states_BSH * weight_BSH).sum().backward()  # type: ignore[no-untyped-call]
        (expected_BSH * weight_BSH).sum().backward()
        found = {name: each.grad for name, each in ours.named_parameters()}
        for layer, cells in enumerate(ours.layers):
            for number, each in enumerate(cells):
                for name, _ in each.named_parameters():
                    wanted = theirs.get_parameter(f"{name}_l{layer}{'_reverse' * number}").grad
                    torch.testing.assert_close(found[f"layers.{layer}.{number}.{name}"], wanted)


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_states_alone_are_those_of_the_whole_pass_in_fp32(rate: float) -> None:
    torch.manual_seed(0)
    made = RecurrentEncoder("lstm", INPUT, WIDTH, LAYERS, True, rate, "both")
    x_BSD = X_BSD.float()
    torch.manual_seed(1)
    states_BSH, _ = made(x_BSD, LENGTHS_B)
    torch.manual_seed(1)
    torch.testing.assert_close(made.states(x_BSD, LENGTHS_B), states_BSH)


def test_backward_is_forward_over_the_reversed_sentence() -> None:
    backward, forward = encoder("gru", "backward"), encoder("gru", "forward")
    forward.load_state_dict(backward.state_dict())
    states_BSH, last = backward(X_BSD, LENGTHS_B)
    expected_BSH, expected_last = forward(reversed_within(X_BSD, LENGTHS_B), LENGTHS_B)
    torch.testing.assert_close(states_BSH, reversed_within(expected_BSH, LENGTHS_B))
    torch.testing.assert_close(last, expected_last)


@every_cell
@pytest.mark.parametrize("projects", [True, False])
@pytest.mark.parametrize("gradients", [True, False])
def test_a_stack_is_torchs_and_can_be_cut_anywhere(cell: str, projects: bool, gradients: bool) -> None:
    stack, theirs = stacks(cell)

    def read(x_BSD: Tensor, state: StackState) -> tuple[Tensor, StackState]:
        return stack.extend(stack.project(x_BSD), state) if projects else stack.read(x_BSD, state)

    with torch.set_grad_enabled(gradients):
        expected_BTH, _ = theirs(X_BSD)
        whole_BTH, end = read(X_BSD, stack.empty(3))
        torch.testing.assert_close(whole_BTH, expected_BTH)
        first_BTH, state = read(X_BSD[:, :3], stack.empty(3))
        second_BTH, state = read(X_BSD[:, 3:], state)
    torch.testing.assert_close(torch.cat((first_BTH, second_BTH), 1), whole_BTH)
    torch.testing.assert_close(state, end)


@every_cell
def test_gradients_flow_through_what_is_read_to_weights_inputs_and_first_state(cell: str) -> None:
    stack, theirs = stacks(cell)
    stack = stack.float()
    x_BSD = X_BSD.float().requires_grad_()
    state = tuple(tuple(torch.randn_like(part).requires_grad_() for part in each) for each in stack.empty(3))
    parts = [torch.stack([each[part] for each in state]).detach().double() for part in range(stack.parts)]
    their_x_BSD = X_BSD.clone().requires_grad_()
    begin = [part.requires_grad_() for part in parts]
    expected_BTH, last = theirs(their_x_BSD, tuple(begin) if len(begin) > 1 else begin[0])
    ends = last if isinstance(last, tuple) else (last,)
    (expected_BTH.sin().sum() + sum(part.cos().sum() for part in ends)).backward()
    output_BTH, end = stack.read(x_BSD, state)
    loss = output_BTH.sin().sum() + sum(part.cos().sum() for each in end for part in each)
    loss.backward()  # type: ignore[no-untyped-call]

    def agree(found: Tensor | None, wanted: Tensor | None) -> None:
        torch.testing.assert_close(found, wanted, check_dtype=False, atol=1e-5, rtol=1e-4)

    agree(x_BSD.grad, their_x_BSD.grad)
    for layer, (mine, before) in enumerate(zip(stack.cells, state, strict=True)):
        for part, given in zip(before, begin, strict=True):
            assert given.grad is not None
            agree(part.grad, given.grad[layer])
        for name, each in mine.named_parameters():
            agree(each.grad, theirs.get_parameter(f"{name}_l{layer}").grad)


def test_residuals_add_the_input_from_the_second_layer_on() -> None:
    ours = encoder("tanh", "forward", residual=True)
    states_BSH, last = ours(X_BSD, LENGTHS_B)
    x_SD = X_BSD[1]
    for layer, (cell,) in enumerate(ours.layers):
        h_H, outputs = torch.zeros(WIDTH, dtype=torch.float64), []
        for x_D in x_SD:
            h_H = (cell.weight_ih @ x_D + cell.bias_ih + cell.weight_hh @ h_H + cell.bias_hh).tanh()
            outputs.append(x_D + h_H if layer else h_H)
        x_SD = torch.stack(outputs)
        torch.testing.assert_close(last[layer][0][1], h_H)
    torch.testing.assert_close(states_BSH[1], x_SD)
    stack = RecurrentStack("tanh", INPUT, WIDTH, LAYERS, residual=True, dropout=0.0).double()
    for mine, (cell,) in zip(stack.cells, ours.layers, strict=True):
        mine.load_state_dict(cell.state_dict())
    top_BTH, _ = stack.extend(stack.project(X_BSD), tuple(each.empty(3) for each in stack.cells))
    torch.testing.assert_close(top_BTH[1], states_BSH[1])
