"""Merging sub-words: sums over keys, means over queries, and nothing is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.errors import InputError
from transduce.explore.words import words_from_tokens

TOKENS = ["▁The", "▁ani", "mal", "▁was", "▁ti", "r", "ed", ".", "</s>"]
WORDS = ["The", "animal", "was", "tired.", "</s>"]
GROUPS = [[0], [1, 2], [3], [4, 5, 6, 7], [8]]


def test_keys_are_summed_and_queries_averaged():
    weights = np.random.default_rng(0).random((2, 9, 9))
    words, keys = words_from_tokens(TOKENS, weights)
    assert words == WORDS
    for j, group in enumerate(GROUPS):
        np.testing.assert_allclose(keys[..., j], sum(weights[..., i] for i in group))
    words, queries = words_from_tokens(TOKENS, weights, axis="queries")
    assert words == WORDS
    for j, group in enumerate(GROUPS):
        np.testing.assert_allclose(queries[:, j], sum(weights[:, i] for i in group) / len(group))


@given(st.lists(st.sampled_from(["▁a", "b", "▁", "<s>", "▁<", "é"]), min_size=1, max_size=12))
def test_rows_still_sum_to_one(tokens):
    weights = np.random.default_rng(len(tokens)).dirichlet(np.ones(len(tokens)), size=len(tokens))
    words, merged = words_from_tokens(tokens, weights)
    words_too, merged = words_from_tokens(tokens, merged, axis="queries")
    assert words == words_too
    assert merged.shape == (len(words), len(words))
    np.testing.assert_allclose(merged.sum(axis=1), 1)
    assert all(words)
    text = "".join(words).replace("▁", "").replace(" ", "")
    assert text == "".join(tokens).replace("▁", "")


def test_one_query():
    words, weights = words_from_tokens(["▁it", "▁w", "as"], np.array([0.5, 0.2, 0.3]))
    assert words == ["it", "was"]
    np.testing.assert_allclose(weights, [0.5, 0.5])


def test_a_word_begins_after_a_special_token():
    assert words_from_tokens(["<s>", "Le", "chat", "</s>"], np.ones(4))[0] == ["<s>", "Lechat", "</s>"]


def test_no_tokens():
    words, weights = words_from_tokens([], np.zeros((3, 0)))
    assert words == []
    assert weights.shape == (3, 0)


@pytest.mark.parametrize(("shape", "axis"), [((9, 8), "keys"), ((8, 9), "queries"), ((9,), "queries")])
def test_what_does_not_fit_is_refused(shape, axis):
    with pytest.raises(InputError, match="do not fit 9 tokens"):
        words_from_tokens(TOKENS, np.ones(shape), axis=axis)
