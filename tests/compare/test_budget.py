"""Budgets as people write them."""

import pytest

from transduce.compare.config import parse_budget
from transduce.core.errors import InputError


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("20m", 20, "minutes"),
        ("20 min", 20, "minutes"),
        ("1.5h", 90, "minutes"),
        ("90s", 1.5, "minutes"),
        ("5Mtok", 5e6, "tokens"),
        ("500ktoks", 5e5, "tokens"),
        ("1200tok", 1200, "tokens"),
        ("20Ktok", 20_000, "tokens"),
        ("1e15flop", 1e15, "flops"),
        ("2.5Pflops", 2.5e15, "flops"),
    ],
)
def test_a_number_and_a_unit(text: str, amount: float, unit: str) -> None:
    budget = parse_budget(text)
    assert budget.amount == pytest.approx(amount)
    assert (budget.unit, budget.text) == (unit, text)


@pytest.mark.parametrize("text", ["20", "m", "0m", "-5m", "5M", "5mtok", "1e15", "twenty minutes", ""])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a budget: expected time"):
        parse_budget(text)
