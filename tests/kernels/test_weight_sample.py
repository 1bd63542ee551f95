"""A sample of a weight notices a change of any row or column, however it was made."""

import pytest
import torch

from transduce.kernels.weight_sample import WeightSample


def differs(sample: WeightSample) -> bool:
    return [*sample.then] != [number for view in sample.now for number in view]


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (3, 8), (8, 3), (5, 5), (64, 7), (7, 64), (130, 64)])
def test_any_row_and_any_column_is_noticed(shape: tuple[int, int]) -> None:
    weight = torch.randn(shape)
    for part in (*weight, *weight.T):
        sample = WeightSample(weight)
        assert not differs(sample)
        part.add_(1)
        assert differs(sample)


def test_a_weight_that_lies_otherwise_is_watched_where_it_lies() -> None:
    memory = torch.randn(6, 20)
    for weight in (memory.T, memory[:, ::2], memory[1:3, 3:9]):
        sample = WeightSample(torch.nn.Parameter(weight))
        memory.numpy()[:] += 1
        assert differs(sample)


def test_what_is_no_number_is_equal_to_itself() -> None:
    assert not differs(WeightSample(torch.full((3, 4), torch.nan)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_numbers(dtype: torch.dtype) -> None:
    weight = torch.randn(3, 4).to(dtype)
    sample = WeightSample(weight)
    weight *= 2
    assert differs(sample)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_a_weight_without_numbers(shape: tuple[int, int]) -> None:
    assert not differs(WeightSample(torch.empty(shape)))
