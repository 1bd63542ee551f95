"""The simpler simple recurrent unit against its equations."""

import math

import pytest
import torch
from torch import Tensor

from transduce.layers.norms import LayerNorm
from transduce.layers.ssru_stack import Ssru, SsruStack
from transduce.layers.stack import StackConfig


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


@pytest.mark.parametrize("cut", [None, 1, 3])
def test_a_stack_that_begins_with_zeros_and_adds_positions_is_one_that_reads_them(cut: int | None) -> None:
    sizes = {"d_model": 8, "heads": 2, "feed_forward": 12, "dropout": 0.0}
    torch.manual_seed(2)
    plain = SsruStack(StackConfig.model_validate(sizes), layers=2)
    placed = SsruStack(StackConfig.model_validate(sizes), 2, zero_start=True, first_position=1)
    placed.load_state_dict(plain.state_dict())
    x_BTD = torch.randn(2, 5, 8)
    sources = plain.keys_values(torch.randn(2, 4, 8))
    read_BTD = x_BTD.clone()
    for t in range(5):
        for j in range(4):
            angle = (t + 1) * 10000 ** (-j / 3)
            for place, wave in ((j, math.sin(angle)), (4 + j, math.cos(angle))):
                read_BTD[:, t, place] = wave + (x_BTD[:, t, place] if t else 0)
    expected_BTD, _ = plain(read_BTD, None, sources, None)
    parts, cells = ([x_BTD] if cut is None else [x_BTD[:, :cut], x_BTD[:, cut:]]), placed.empty(2)
    found = []
    for part_BTD in parts:
        found_BTD, cells = placed(part_BTD, cells, sources, None)
        found.append(found_BTD)
    torch.testing.assert_close(torch.cat(found, 1), expected_BTD)
    assert cells[-1].tolist() == [[5], [5]]


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_a_stack_is_its_parts_one_after_the_other(placement: str) -> None:
    torch.manual_seed(2)
    sizes = {"d_model": 8, "heads": 2, "feed_forward": 12, "dropout": 0.0, "norm": placement}
    stack = SsruStack(StackConfig.model_validate(sizes), layers=2)
    for parameter in stack.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    x_BTD, source_BSD = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
    sources = stack.keys_values(source_BSD)
    found_BTD, cells = stack(x_BTD, None, sources, None)
    for block, source, cell_BD in zip(stack.blocks, sources, cells, strict=True):
        for residual, part in (
            (block.unit_residual, lambda x, block=block: block.unit(x)[0]),
            (block.cross_residual, lambda x, block=block, source=source: block.cross_attention(x, source)),
            (block.feed_forward_residual, block.feed_forward),
        ):
            last_BTD, norm = x_BTD, residual.norm
            x_BTD = x_BTD + part(norm(x_BTD)) if placement == "pre" else norm(x_BTD + part(x_BTD))
            if residual is block.unit_residual:
                torch.testing.assert_close(cell_BD, block.unit(norm(last_BTD) if placement == "pre" else last_BTD)[1])
    norms = sum(isinstance(part, LayerNorm) for part in stack.modules())
    assert norms == (7 if placement == "pre" else 6)
    torch.testing.assert_close(found_BTD, stack.norm(x_BTD) if placement == "pre" else x_BTD)
