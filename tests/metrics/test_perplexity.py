"""Perplexity: the base cancels out, and mixing bases shows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scores import perplexity

PROBABILITIES = [0.5, 0.25, 0.125, 0.125]


@pytest.mark.parametrize("base", [2, math.e, 10])
def test_any_matched_base_gives_the_worked_example(base: float) -> None:
    logs = [math.log(p, base) for p in PROBABILITIES]
    assert perplexity(-sum(logs) * math.log(base), len(logs)) == pytest.approx(4.756828, abs=5e-7)


def test_mixed_bases_give_the_wrong_figure() -> None:
    nats = -sum(map(math.log, PROBABILITIES))
    assert 2 ** (nats / 4) == pytest.approx(2.9477, abs=5e-5)  # the slip
    assert perplexity(nats, 4) == pytest.approx(4.756828, abs=5e-7)


@pytest.mark.parametrize(("probability", "value"), [(0.048, 2.1364), (0.054, 2.0744)])
def test_sequences_of_four_tokens(probability: float, value: float) -> None:
    assert perplexity(-math.log(probability), 4) == pytest.approx(value, abs=5e-5)


@given(st.integers(2, 10_000), st.integers(1, 50))
def test_a_uniform_guess_has_the_perplexity_of_the_vocabulary(vocabulary: int, tokens: int) -> None:
    assert perplexity(tokens * math.log(vocabulary), tokens) == pytest.approx(vocabulary)
