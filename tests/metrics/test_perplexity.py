"""Perplexity: the base cancels out, and mixing bases shows."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.core.errors import InputError
from transduce.metrics.perplexity import perplexity, perplexity_of

PROBABILITIES = [0.5, 0.25, 0.125, 0.125]


@pytest.mark.parametrize("base", [2, math.e, 10])
def test_any_matched_base_gives_the_worked_example(base: float) -> None:
    logs = [math.log(p, base) for p in PROBABILITIES]
    assert perplexity_of(logs, base=base).value == pytest.approx(4.756828, abs=5e-7)


def test_mixed_bases_give_the_wrong_figure() -> None:
    nats = -sum(map(math.log, PROBABILITIES))
    assert 2 ** (nats / 4) == pytest.approx(2.9477, abs=5e-5)  # the slip
    assert perplexity(nats, 4).value == pytest.approx(4.756828, abs=5e-7)


@pytest.mark.parametrize(("probability", "value"), [(0.048, 2.1364), (0.054, 2.0744)])
def test_sequences_of_four_tokens(probability: float, value: float) -> None:
    assert perplexity(-math.log(probability), 4).value == pytest.approx(value, abs=5e-5)


@given(st.integers(2, 10_000), st.integers(1, 50))
def test_a_uniform_guess_has_the_perplexity_of_the_vocabulary(vocabulary: int, tokens: int) -> None:
    assert perplexity_of([-math.log(vocabulary)] * tokens).value == pytest.approx(vocabulary)


def test_the_signature_states_base_unit_and_count() -> None:
    score = perplexity(8.0, 4, unit="piece")
    assert score.signature == "base:e|unit:piece|tokens:4|end:counted"
    assert score.interval is None
    assert str(score) == "perplexity 7.4 base:e|unit:piece|tokens:4|end:counted"


def test_a_hopeless_model_is_infinitely_perplexed() -> None:
    assert perplexity(1e6, 1).value == math.inf


def test_no_tokens_have_no_perplexity() -> None:
    with pytest.raises(InputError, match="at least one token"):
        perplexity(0.0, 0)
