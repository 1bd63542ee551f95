"""The cell with an external memory: an LSTM by torch, a memory slot by slot."""

import numpy as np
import torch
from torch import nn

from memory_by_loops import addressed, heads_of
from transduce.attention import capture
from transduce.layers.recurrent import Ntm, unroll

INPUT, WIDTH, STEPS = 4, 5, 6


def randomised() -> Ntm:
    torch.manual_seed(0)
    cell = Ntm(INPUT, WIDTH)
    for parameter in cell.parameters():
        nn.init.normal_(parameter, std=0.7)
    return cell.double()


@torch.no_grad()
def test_it_is_an_lstm_beside_the_papers_memory() -> None:
    cell, x_1TD = randomised(), torch.randn(1, STEPS, INPUT, dtype=torch.float64)
    lstm = nn.LSTMCell(INPUT, WIDTH).double()
    lstm.load_state_dict({name: getattr(cell, name) for name in lstm.state_dict()})
    with capture(cell) as record:
        (h_1TH, c_1TH), after = unroll(cell, cell.project(x_1TD), cell.empty(1))
    sizes, c_BH = cell.sizes, torch.zeros(1, WIDTH, dtype=torch.float64)
    h_BH = cell.reader(cell.memory.read)
    memory = np.full((sizes.slots, sizes.width), cell.constant)
    weightings = list(cell.memory.weighting.softmax(-1).numpy())
    for step in range(STEPS):
        h_BH, c_BH = lstm(x_1TD[:, step], (h_BH, c_BH))
        heads = heads_of(cell.memory.heads(h_BH)[0].numpy(), sizes)
        weightings = [
            addressed(head, memory, before, sizes.reach) for head, before in zip(heads, weightings, strict=True)
        ]
        for name, weighting in zip(("read", "write"), weightings, strict=True):
            np.testing.assert_allclose(record[f"memory.{name}_head.0"][step][0, 0, 0], weighting, rtol=1e-6, atol=1e-12)
        read = sum(weightings[0][slot] * memory[slot] for slot in range(sizes.slots))
        for slot in range(sizes.slots):
            kept = memory[slot] * (1 - weightings[1][slot] * heads[1]["erase"])
            memory[slot] = kept + weightings[1][slot] * heads[1]["add"]
        h_BH = h_BH + cell.reader(torch.from_numpy(np.asarray(read)))
        torch.testing.assert_close(h_1TH[:, step], h_BH)
        torch.testing.assert_close(c_1TH[:, step], c_BH)
    np.testing.assert_allclose(after[2][0], memory, rtol=1e-6, atol=1e-12)


def test_gradients_are_those_of_finite_differences() -> None:
    cell = Ntm(2, 3).double()
    nn.init.normal_(cell.memory.heads.weight, std=0.5)
    x_1TD = torch.randn(1, 3, 2, dtype=torch.float64, requires_grad=True)

    def said(given: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        names = ("weight_hh", "reader.weight", "memory.read")
        with_these = dict(zip(names, weights, strict=True))

        class Says(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.cell = cell

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return unroll(self.cell, self.cell.project(x), self.cell.empty(1))[0][0]

        named = {f"cell.{name}": weight for name, weight in with_these.items()}
        found: torch.Tensor = torch.func.functional_call(Says(), named, (given,))
        return found

    weights = [cell.weight_hh, cell.reader.weight, cell.memory.read]
    assert torch.autograd.gradcheck(said, (x_1TD, *weights))
