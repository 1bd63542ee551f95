"""The simpler simple recurrent unit against its equations."""

import math

import pytest
import torch
from torch import Tensor

from transduce.layers.ssru import Ssru


def unit(width: int = 6) -> Ssru:
    torch.manual_seed(1)
    made = Ssru(width).double()
    torch.nn.init.normal_(made.forget.bias)
    return made


def by_the_paper(made: Ssru, x_BTD: Tensor, cell_BD: Tensor) -> tuple[Tensor, Tensor]:
    """Number by number, as Kim et al. 2019 write it."""
    forget_DD, bias_D, value_DD = (each.tolist() for each in (made.forget.weight, made.forget.bias, made.value.weight))
    outputs = torch.zeros_like(x_BTD)
    cells = cell_BD.tolist()
    for b, sentence in enumerate(x_BTD.tolist()):
        for t, x in enumerate(sentence):
            before = list(cells[b])
            for d in range(len(x)):
                gate = bias_D[d] + sum(w * each for w, each in zip(forget_DD[d], x, strict=True))
                f = 1 / (1 + math.exp(-gate))
                new = sum(w * each for w, each in zip(value_DD[d], x, strict=True))
                cells[b][d] = f * before[d] + (1 - f) * new
                outputs[b, t, d] = max(cells[b][d], 0.0)
    return outputs, torch.tensor(cells, dtype=torch.float64)


def test_it_equals_a_loop_from_the_paper() -> None:
    made, x_BTD = unit(), torch.randn(3, 7, 6, dtype=torch.float64)
    for past_BD in (None, torch.randn(3, 6, dtype=torch.float64)):
        output, cell = made(x_BTD, past_BD)
        expected, after = by_the_paper(
            made, x_BTD, torch.zeros(3, 6, dtype=torch.float64) if past_BD is None else past_BD
        )
        torch.testing.assert_close(output, expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(cell, after, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cut", [1, 3, 6])
def test_what_goes_on_from_a_cell_is_what_goes_on(cut: int) -> None:
    made, x_BTD = unit(), torch.randn(2, 7, 6, dtype=torch.float64)
    whole, end = made(x_BTD)
    first, cell = made(x_BTD[:, :cut])
    second, same_end = made(x_BTD[:, cut:], cell)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    torch.testing.assert_close(same_end, end)


def test_its_gradients_are_those_of_differences() -> None:
    given = torch.randn(2, 4, 3, dtype=torch.float64), torch.randn(2, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(unit(3), [each.requires_grad_() for each in given])


def test_in_lower_precision_the_cell_stays_wide() -> None:
    made, x_BTD = unit().float(), torch.randn(2, 40, 6)
    with torch.autocast("cpu", torch.bfloat16):
        output, cell = made(x_BTD)
    assert output.dtype is cell.dtype is torch.float32
    torch.testing.assert_close(output, made(x_BTD)[0], rtol=0, atol=0.03)
