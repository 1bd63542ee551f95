"""Alarms ring for what no healthy model does, and for nothing else."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.training.diagnostics import alarms, few_draws, many_epochs, unigram_entropy

SOURCES, REFERENCES = ["a b", "c d", "e f"], ["A B", "C D", "E F"]


def test_a_healthy_model_is_left_alone() -> None:
    assert alarms(SOURCES, ["A B", "C", ""], REFERENCES, 1.0, 2.0) == []
    assert alarms([], [], [], 1.0, 2.0) == []  # a language model
    assert alarms(SOURCES, ["A B", "c d", "E F"], REFERENCES, 2.0, 2.0) == []


@pytest.mark.parametrize(
    ("outputs", "said"),
    [
        (["", " ", ""], "Every output is empty"),
        (["A A"] * 3, "Every output is the same, whatever the source: 'A A'."),
        (["a b", "c d ", "X"], "copies of their source"),
    ],
)
def test_sick_outputs_ring_once(outputs: list[str], said: str) -> None:
    [alarm] = alarms(SOURCES, outputs, REFERENCES, 1.0, 2.0)
    assert said in alarm


def test_what_the_references_do_too_is_no_alarm() -> None:
    assert alarms(SOURCES, SOURCES, SOURCES, 1.0, 2.0) == []  # a task that copies
    assert alarms(SOURCES, ["yes"] * 3, ["yes"] * 3, 1.0, 2.0) == []
    assert alarms(["a"], ["A"], ["A"], 1.0, 2.0) == []


def test_worse_than_word_frequencies_rings() -> None:
    [alarm] = alarms(SOURCES, REFERENCES, REFERENCES, 3.14, 2.0)
    assert "3.14" in alarm
    assert "2.00" in alarm


def test_entropy_of_known_frequencies() -> None:
    assert unigram_entropy([1, 1, 2, 3]) == pytest.approx(1.5 * math.log(2))
    assert unigram_entropy([]) == 0.0
    assert unigram_entropy([7] * 9) == 0.0


@given(st.lists(st.integers(0, 5), min_size=1))
def test_entropy_lies_between_certainty_and_equality(tokens: list[int]) -> None:
    assert -1e-12 <= unigram_entropy(tokens) <= math.log(len(set(tokens))) + 1e-12


def test_words_that_may_never_be_drawn_are_told() -> None:
    [told] = few_draws(500, 10_000, 217)  # one of three trainings wrote a German word everywhere
    assert "500 of 10,000: in 217 updates, 0.15 words" in told
    enough = int(told.rpartition(" ")[2].rstrip(".").replace(",", ""))
    assert few_draws(enough, 10_000, 217) == [] != few_draws(enough - 1, 10_000, 217)
    assert few_draws(None, 10_000, 217) == few_draws(500, 10_000, 5000) == few_draws(400, 300, 1) == []


def test_the_expected_number_is_that_of_real_draws() -> None:
    random = np.random.default_rng(0)
    missed = []
    for _ in range(300):
        drawn = {int(word) for _ in range(40) for word in random.choice(60, 6, replace=False)}
        missed.append(60 - len(drawn))
    [told] = few_draws(6, 60, 40)
    expected = float(told.partition(" updates, ")[2].split()[0])
    assert abs(np.mean(missed) - expected) < 3 * np.std(missed) / len(missed) ** 0.5 + 0.05


def test_a_default_of_many_epochs_is_told() -> None:
    [told] = many_epochs(10_000, 5)
    assert "10,000, is 2,000 epochs of this data" in told
    assert "training.updates=100 for 20 epochs" in told
    assert many_epochs(10_000, 50) == [] != many_epochs(10_000, 49)
