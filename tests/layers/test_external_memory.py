"""The numbers that keep a memory finite, worked out by hand, with the kernel and without it; and where heads begin."""

import math
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from transduce.layers.external_memory import ExternalMemory, MemorySizes, MemoryState
from transduce.layers.memory_unroll import ControllerState, unroll

ONE = math.log(math.e - 1)  # softplus of it is 1
SURE = 1000.0  # softplus of it is itself, sigmoid 1; of -SURE both are 0


class Said(NamedTuple):
    """What one read head says in each step; it cannot shift."""

    key: tuple[float, float]
    strength: float
    exponent: float
    gate: float


def weightings(said: Said, memory_NM: Tensor, before_N: Tensor, steps: int = 1) -> Tensor:
    """(T, N): where the head is, of a memory that nobody writes to."""
    slots, width = memory_NM.shape
    sizes = MemorySizes(slots, width, read=1, write=0, reach=0)
    memory = ExternalMemory(1, sizes, 0.0).to(memory_NM.dtype)
    parameters = [*said.key, said.strength, said.exponent, said.gate, 0.0]
    memory.heads.weight.data = torch.zeros(len(parameters), 1, dtype=memory_NM.dtype)
    memory.heads.bias = torch.nn.Parameter(torch.tensor(parameters, dtype=memory_NM.dtype))
    state = MemoryState(memory_NM[None], before_N[None, None], memory.read.detach()[None])
    given_BTG, recurrent_GU = memory_NM.new_zeros(1, steps, 1), memory_NM.new_zeros(1, sizes.width)
    _, _, weighting_BTHN, _, _ = unroll(given_BTG, recurrent_GU, memory, ControllerState(None, None), state)
    return weighting_BTHN[0, :, 0]


ON_THE_FIRST = torch.tensor([1.0, 0.0, 0.0])
APART = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [-1.0, 0.0]])


@pytest.mark.usefixtures("either_way")
@pytest.mark.parametrize(("exponent", "others"), [(-SURE, 1e-12), (ONE, 1e-24)])
def test_a_slot_without_weight_counts_1e_12(exponent: float, others: float) -> None:
    found_N = weightings(Said((1.0, 0.0), SURE, exponent, 0.0), APART, ON_THE_FIRST)[0]
    torch.testing.assert_close(found_N, torch.tensor([1.0, others, others]), rtol=1e-4, atol=0)


@pytest.mark.usefixtures("either_way")
def test_slots_without_weight_have_finite_gradients() -> None:
    def gradients(dtype: torch.dtype) -> list[Tensor]:
        memory_NM, before_N = (each.to(dtype).requires_grad_() for each in (APART, ON_THE_FIRST))
        found_TN = weightings(Said((1.0, 0.0), SURE, ONE, 0.0), memory_NM, before_N, steps=3)
        return [*torch.autograd.grad(found_TN[:, 0].sum() + 1e12 * found_TN[:, 1].sum(), (memory_NM, before_N))]

    for found, expected in zip(gradients(torch.float32), gradients(torch.float64), strict=True):
        assert found.isfinite().all()
        torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-6)


@pytest.mark.usefixtures("either_way")
def test_lengths_are_those_of_vectors_with_1e_8_more_under_the_root() -> None:
    memory_NM = torch.tensor([[1e-4, 0.0], [0.0, 0.0], [0.0, 1e-4]])
    found_N = weightings(Said((1e-4, 0.0), ONE, -SURE, SURE), memory_NM, ON_THE_FIRST)[0]
    cosine_N = torch.tensor([0.5, 0.0, 0.0])  # 1e-8 / (sqrt(2e-8) sqrt(2e-8))
    torch.testing.assert_close(found_N, cosine_N.softmax(0), rtol=1e-5, atol=0)


@pytest.mark.usefixtures("either_way")
def test_equal_weights_stay_equal_however_sharp_they_become() -> None:
    found_N = weightings(Said((1.0, 0.0), ONE, SURE, -SURE), APART, torch.full((3,), 1 / 3))[0]
    torch.testing.assert_close(found_N, torch.full((3,), 1 / 3), rtol=1e-4, atol=0)


def test_heads_begin_at_the_first_slot() -> None:
    torch.manual_seed(0)
    memory = ExternalMemory(3, MemorySizes(slots=64, width=2, read=2, write=2, reach=1), 0.25)
    state = memory.initial(2)
    first_BH = state.weighting[..., 0]
    torch.testing.assert_close((first_BH / (1 - first_BH)).log(), torch.full((2, 4), 3.0), rtol=0, atol=0.4)
    assert torch.equal(state.memory, torch.full((2, 64, 2), 0.25))
    assert (state.read != 0).all(), "what was read before the first step is drawn"
