"""The kernel for a controller with a memory, against a Neural Turing Machine in plain torch, in fp64."""

import copy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transduce.data.columns import ColumnSpec, Specs
from transduce.kernels import native
from transduce.kernels.native import memory
from transduce.models.neural_turing_machine import NeuralTuringMachine, NeuralTuringMachineConfig

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from plain_ntm import plain_copy

pytestmark = pytest.mark.usefixtures("kernels")

SETTINGS: dict[str, dict[str, Any]] = {
    "of the paper": {},
    "feed-forward": {"controller": "feed_forward", "hidden": 9, "slots": 11, "width": 4},
    "many heads": {"read_heads": 2, "write_heads": 3, "shift": 2, "hidden": 33, "slots": 17, "width": 5},
    "feed-forward, many heads": {"controller": "feed_forward", "read_heads": 3, "write_heads": 2, "slots": 5},
    "no shift": {"shift": 0, "slots": 6, "width": 3, "hidden": 7},
    "shifts around and around": {"shift": 5, "slots": 3, "width": 3, "hidden": 7},
}


def built(**settings: Any) -> NeuralTuringMachine:
    torch.manual_seed(0)
    specs = Specs(ColumnSpec("vectors", 9), ColumnSpec("vectors", 8))
    model = NeuralTuringMachine(NeuralTuringMachineConfig(**settings), specs)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model


def gradients(model: NeuralTuringMachine, x_BTF: Tensor) -> list[Tensor]:
    """Of everything that it learns and reads, through outputs and the state that is left, over two pieces."""
    x_BTF = x_BTF.clone().requires_grad_()
    model.zero_grad()
    first_BTO, state = model.process(x_BTF[:, :4], model.initial(len(x_BTF)))
    second_BTO, state = model.process(x_BTF[:, 4:], state)
    left = [each for each in (*state.memory, *state.controller) if each is not None]
    total = torch.cat((first_BTO, second_BTO), 1).square().sum()
    (total + sum((each.square().sum() for each in left), total.new_zeros(()))).backward()
    found = [each.grad for each in (*model.parameters(), x_BTF)]
    return [each for each in found if each is not None]


@pytest.mark.parametrize("name", SETTINGS)
def test_it_says_what_plain_torch_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    unroll = memory.unroll
    monkeypatch.setattr(memory, "unroll", lambda *given: called.append(1) or unroll(*given))
    model, x_BTF = built(**SETTINGS[name]), torch.randn(3, 9, 9)
    expected = plain_copy(copy.deepcopy(model).double())(x_BTF.double())
    with torch.no_grad():
        logits_BTO, _ = model.process(x_BTF, model.initial(3))
    torch.testing.assert_close(logits_BTO.double(), expected, rtol=1e-5, atol=1e-5)
    assert called


@pytest.mark.parametrize("name", SETTINGS)
def test_gradients_are_those_without_it(name: str) -> None:
    model, x_BTF = built(**SETTINGS[name]), torch.randn(3, 9, 9)
    expected = gradients(copy.deepcopy(model).double(), x_BTF.double())
    for ours, theirs in zip(gradients(model, x_BTF), expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, rtol=1e-3, atol=1e-4 * float(theirs.abs().max()))


def test_rows_do_not_know_each_other_and_threads_change_nothing() -> None:
    model, x_BTF = built(), torch.randn(5, 9, 9)
    threads = torch.get_num_threads()

    def said(rows: slice) -> Tensor:
        given_BTG, state = model.input(x_BTF)[rows], model.initial(5)
        before = [each[rows] for each in (*state.memory, *state.controller) if each is not None]
        shape = memory.MemoryShape(100, 128, 20, 1, 1, 1, 1)
        weights = (model.recurrent, model.memory.heads.weight, model.memory.heads.bias)
        return memory.unroll(shape, given_BTG, *weights, *before)[0]

    try:
        torch.set_num_threads(1)
        alone = said(slice(None))
        assert torch.equal(said(slice(3, 4)), alone[3:4])
        torch.set_num_threads(3)
        assert torch.equal(said(slice(None)), alone)
    finally:
        torch.set_num_threads(threads)


def test_other_numbers_are_left_to_torch() -> None:
    model = built()
    assert memory.can_unroll(model.recurrent)
    assert not memory.can_unroll(model.recurrent, model.recurrent.double())
    with native.left_out():
        assert not memory.can_unroll(model.recurrent)
