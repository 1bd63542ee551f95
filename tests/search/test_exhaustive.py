"""Exhaustive search against a walk over all outputs, one at a time."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_steps import END, START, RandomTree, next_log_probabilities, outputs, padded

from transduce.core.errors import InputError
from transduce.search import exhaustive
from transduce.search.dispatch import search
from transduce.search.exhaustive import leaves
from transduce.search.request import Request
from transduce.search.settings import Search


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    vocabulary=st.integers(2, 4),
    limit=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 0.75, 1.0]),
)
def test_lists_all_outputs_best_first(seed: int, vocabulary: int, limit: int, alpha: float) -> None:
    model, source = RandomTree(vocabulary, seed), padded([[3, 4, 2]])

    def score(tokens: tuple[int, ...]) -> float:
        values = [next_log_probabilities(model, source, tokens[:t])[token] for t, token in enumerate(tokens)]
        return math.fsum(values) / math.pow(len(tokens), alpha)

    expected = sorted(outputs(vocabulary, limit), key=lambda tokens: (tokens[-1] != END, -score(tokens)))
    asked = Search(method="exhaustive", alpha=alpha, nbest=len(expected) + 1)
    (found,) = search(model, source, [Request(limit)], asked, start=START, end=END)
    assert [h.tokens for h in found] == expected
    assert [h.score for h in found] == pytest.approx([score(tokens) for tokens in expected])
    assert math.fsum(math.exp(h.log_probability) for h in found) == pytest.approx(1.0)


def test_parts_of_the_tree_together_are_the_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    model, source = RandomTree(5, seed=2), padded([[3], [4, 5]])
    asked = Search(method="exhaustive", nbest=20)
    whole = search(model, source, [Request(limit) for limit in [4, 5]], asked, start=START, end=END)
    monkeypatch.setattr(exhaustive, "AT_ONCE", 3)
    assert search(model, source, [Request(limit) for limit in [4, 5]], asked, start=START, end=END) == whole


def test_counts_its_leaves() -> None:
    assert leaves(3, 4) == sum(1 for _ in outputs(4, 4)) == 121
    assert leaves(1, 5) == 6


def test_refuses_a_tree_too_large() -> None:
    model, asked = RandomTree(100, seed=1), Search(method="exhaustive")
    with pytest.raises(InputError, match=r"line 7 has about 10\^8 outputs of up to 4 tokens, from 99 .*beam"):
        search(model, None, [Request(4, line=7)], asked, start=START, end=END)
    with pytest.raises(InputError, match=r"10\^599 outputs of up to 300"):
        search(model, None, [Request(300)], asked, start=START, end=END)
    # two tokens are given: 9,901 are left
    assert search(model, None, [Request(4, prefix=[5, 6])], asked, start=START, end=END)
