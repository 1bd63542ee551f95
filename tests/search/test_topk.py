"""The greatest of each row against a sort by (value, column)."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.search.topk import top

value = st.sampled_from([-math.inf, -3.0, -2.0, -1.0, 0.0]) | st.floats(-5, 0, width=32)
tables = st.integers(1, 8).flatmap(
    lambda columns: st.lists(st.lists(value, min_size=columns, max_size=columns), min_size=1, max_size=5)
)


@settings(max_examples=200, deadline=None)
@given(table=tables, count=st.integers(1, 9))
def test_equal_values_go_to_the_lower_column(table: list[list[float]], count: int) -> None:
    value_NC, column_NC = top(torch.tensor(table), count)
    for row, values, columns in zip(table, value_NC.tolist(), column_NC.tolist(), strict=True):
        expected = sorted(range(len(row)), key=lambda column: (-row[column], column))[:count]
        assert values == [row[column] for column in expected]
        possible = [column for column in expected if row[column] > -math.inf]
        assert columns[: len(possible)] == possible
        assert len(set(columns)) == len(columns)


@pytest.mark.parametrize("columns", [500, 2048, 3011])  # the longer ones are searched block by block
def test_half_precision_where_ties_are_the_rule(columns: int) -> None:
    values_NV = torch.randn(20, columns, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    _, column_NC = top(values_NV, 7)
    expected = values_NV.float().sort(dim=1, descending=True, stable=True).indices[:, :7]
    assert torch.equal(column_NC, expected)


@pytest.mark.parametrize("equal", [False, True])
def test_the_greatest_are_found_wherever_they_stand(equal: bool) -> None:
    """Each in a block of its own, or several in one, or in what is left behind the last whole block."""
    generator = torch.Generator().manual_seed(2)
    values_NV = torch.rand(400, 2050, generator=generator) - 3
    for values_V in values_NV:
        place_C = torch.randperm(2050, generator=generator)[:6]
        values_V[place_C] = torch.full((6,), -0.5) if equal else -torch.rand(6, generator=generator)
    value_NC, column_NC = top(values_NV, 5)
    sorted_NV, by_value_NV = values_NV.sort(dim=1, descending=True, stable=True)
    assert torch.equal(value_NC, sorted_NV[:, :5].double())
    assert torch.equal(column_NC, by_value_NV[:, :5])


@pytest.mark.parametrize("columns", [6, 2050])
def test_some_columns_count_as_nothing(columns: int) -> None:
    values_NV = torch.randn(30, columns, generator=torch.Generator().manual_seed(3)).to(torch.bfloat16)
    without = [0, 1, 4]
    value_NC, column_NC = top(values_NV, 5, without)
    expected_NC, expected_column_NC = top(values_NV.index_fill(1, torch.tensor(without), -math.inf), 5)
    assert torch.equal(value_NC, expected_NC)
    possible_NC = expected_NC > -math.inf
    assert torch.equal(column_NC[possible_NC], expected_column_NC[possible_NC])
