"""Forced decoding against one step at a time."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_steps import END, START, PrefixTable, TinyAttention, next_log_probabilities, padded

from forced_decoding import forced
from transduce.core.errors import InputError
from transduce.search.length import LengthRule

VOCABULARY = 9
token = st.integers(2, VOCABULARY - 1)
pairs = st.tuples(st.lists(token, min_size=1, max_size=5), st.lists(token, min_size=1, max_size=6), st.booleans())


@settings(max_examples=20, deadline=None)
@given(corpus=st.lists(pairs, min_size=1, max_size=4), seed=st.integers(0, 10**6))
def test_every_token_given_those_before(corpus: list[tuple[list[int], list[int], bool]], seed: int) -> None:
    model = TinyAttention(VOCABULARY, seed)
    targets = [target + [END] * ended for _, target, ended in corpus]
    found = forced(
        model, padded([source for source, _, _ in corpus]), targets, start=START, end=END, rule=LengthRule("power", 1.0)
    )
    for (source, _, ended), target, hypothesis in zip(corpus, targets, found, strict=True):
        values = [next_log_probabilities(model, padded([source]), target[:t])[token] for t, token in enumerate(target)]
        assert (hypothesis.tokens, hypothesis.ended) == (tuple(target), ended)
        assert hypothesis.token_log_probabilities == pytest.approx(values, abs=1e-5)
        assert hypothesis.log_probability == pytest.approx(math.fsum(values), abs=1e-5)
        assert hypothesis.score == pytest.approx(math.fsum(values) / len(target), abs=1e-5)


def test_an_impossible_target_has_probability_0() -> None:
    model = PrefixTable({}, otherwise=(0, 1, 0))
    impossible, certain = forced(model, None, [[2, 2, END], [END]], start=START, end=END)
    assert (impossible.tokens, impossible.log_probability) == ((2, 2, END), -math.inf)
    assert certain.log_probability == 0


def test_nothing_to_score() -> None:
    assert forced(PrefixTable({}, otherwise=(0, 1)), None, [], start=START, end=END) == []


def test_all_unusable_targets_are_named() -> None:
    with pytest.raises(InputError) as caught:
        forced(PrefixTable({}, (0, 1)), None, [[END], [], [2, END, 3], [-1]], start=START, end=END)
    assert [problem.split(":")[1][:9] for problem in caught.value.problems] == [
        " target 1",
        " target 2",
        " target 3",
    ]


def test_a_target_outside_the_vocabulary() -> None:
    with pytest.raises(InputError, match="token 9 is outside the model's vocabulary of 3"):
        forced(PrefixTable({}, otherwise=(0, 0.5, 0.5)), None, [[2, 9]], start=START, end=END)
