"""The learning rate by hand."""

import math
from typing import Any

import pytest

from transduce.recipe.training import TrainingConfig
from transduce.training.timed_schedule import learning_rate


def rates(at: list[int], **table: Any) -> list[float]:
    config = TrainingConfig.model_validate({"learning_rate": 2e-3, **table})
    return [learning_rate(config, update) for update in at]


def test_cosine() -> None:
    found = rates([1, 50, 100, 350, 600, 850, 1100], schedule="cosine", warmup=100, updates=1100)
    # warm-up 1/100, 50/100, 100/100; then a quarter, half, three quarters and all of the way down
    quarter = 0.5 * (1 + math.sqrt(0.5))
    expected = [2e-5, 1e-3, 2e-3, 2e-3 * quarter, 1e-3, 2e-3 * (1 - quarter), 0]
    assert found == pytest.approx(expected, abs=1e-12)


def test_linear() -> None:
    found = rates([1, 50, 100, 350, 600, 850, 1100], schedule="linear", warmup=100, updates=1100)
    assert found == pytest.approx([2e-5, 1e-3, 2e-3, 1.5e-3, 1e-3, 5e-4, 0], abs=1e-12)


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_it_stays_at_0_past_its_end(schedule: str) -> None:
    assert rates([1101, 5000], schedule=schedule, warmup=100, updates=1100) == pytest.approx([0, 0], abs=1e-12)


def test_inverse_square_root() -> None:
    found = rates([1, 200, 400, 1600, 6400], schedule="inverse_sqrt", warmup=400)
    assert found == pytest.approx([5e-6, 1e-3, 2e-3, 1e-3, 5e-4])


def test_inverse_square_root_is_the_papers_formula() -> None:
    # d^-0.5 min(t^-0.5, t w^-1.5), whose peak is (d w)^-0.5 (Vaswani et al. 2017, equation 3)
    width, warmup = 512, 4000
    for update in (1, 10, 3999, 4000, 4001, 100_000):
        paper = width**-0.5 * min(update**-0.5, update * warmup**-1.5)
        (ours,) = rates([update], schedule="inverse_sqrt", warmup=warmup, learning_rate=(width * warmup) ** -0.5)
        assert ours == pytest.approx(paper)


def test_constant() -> None:
    assert rates([1, 2, 4, 5, 9999], schedule="constant", warmup=4) == pytest.approx([5e-4, 1e-3, 2e-3, 2e-3, 2e-3])


@pytest.mark.parametrize("schedule", ["cosine", "linear", "inverse_sqrt", "constant"])
def test_no_warm_up(schedule: str) -> None:
    (first,) = rates([1], schedule=schedule, warmup=0, updates=1_000_000)
    assert first == pytest.approx(2e-3, rel=1e-5)


@pytest.mark.parametrize("schedule", ["cosine", "linear", "inverse_sqrt", "constant"])
def test_it_rises_then_never_rises_again(schedule: str) -> None:
    found = rates(list(range(1, 301)), schedule=schedule, warmup=30, updates=300)
    assert found[:30] == sorted(found[:30])
    assert found[29:] == sorted(found[29:], reverse=True)
    assert max(found) == pytest.approx(2e-3)


def test_a_warm_up_longer_than_the_training() -> None:
    assert rates([10, 20], schedule="cosine", warmup=40, updates=20) == pytest.approx([5e-4, 1e-3])
