"""The greatest of each row against a sort by (value, column)."""

import math

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.search.top import top

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


def test_half_precision_where_ties_are_the_rule() -> None:
    values_NV = torch.randn(20, 500, generator=torch.Generator().manual_seed(1)).to(torch.bfloat16)
    _, column_NC = top(values_NV, 7)
    expected = values_NV.float().sort(dim=1, descending=True, stable=True).indices[:, :7]
    assert torch.equal(column_NC, expected)
