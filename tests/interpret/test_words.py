"""What a word is; merging sub-words: sums over keys, means over queries, and nothing is lost."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.interpret.words import by_words, graphemes, parts_in, words_in
from words_of import WORDS_OF

GROUPS = [[0], [1, 2], [3], [4, 5, 6, 7], [8]]


@pytest.mark.parametrize("text", WORDS_OF)
def test_words_are_what_people_take_for_words(text: str) -> None:
    assert [text[a:b] for a, b in words_in(text)] == WORDS_OF[text]


@given(st.text(alphabet=st.sampled_from("ab1'-., 两ก้हि\u0301😀\u200d🇫👍🏽\n"), max_size=12))
def test_words_are_all_that_is_no_white_space_and_part_no_grapheme(text: str) -> None:
    spans = words_in(text)
    assert "".join(text[a:b] for a, b in spans) == "".join(text.split())
    ends = set(np.cumsum([len(each) for each in graphemes(text)]).tolist()) | {0}
    spaces = {place + 1 for place, character in enumerate(text) if character.isspace()}  # marks on a space stand alone
    assert {place for span in spans for place in span} <= ends | spaces


def test_markup_may_hold_a_part_of_a_word():
    text = "l'animal, n\u0303-2.5"
    assert [text[a:b] for a, b in parts_in(text)] == ["l", "'", "animal", ",", "n\u0303", "-", "2", ".", "5"]


def test_keys_are_summed_and_queries_averaged():
    weights = np.random.default_rng(0).random((2, 9, 9))
    keys = by_words(GROUPS, weights)
    queries = by_words(GROUPS, weights, axis="queries")
    for j, group in enumerate(GROUPS):
        np.testing.assert_allclose(keys[..., j], sum(weights[..., i] for i in group))
        np.testing.assert_allclose(queries[:, j], sum(weights[:, i] for i in group) / len(group))


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_rows_still_sum_to_one(sizes):
    starts = np.cumsum([0, *sizes]).tolist()
    groups = [list(range(first, first + size)) for first, size in zip(starts, sizes, strict=False)]
    weights = np.random.default_rng(starts[-1]).dirichlet(np.ones(starts[-1]), size=starts[-1])
    merged = by_words(groups, by_words(groups, weights), axis="queries")
    assert merged.shape == (len(groups), len(groups))
    np.testing.assert_allclose(merged.sum(axis=1), 1)


def test_one_query():
    np.testing.assert_allclose(by_words([[0], [1, 2]], np.array([0.5, 0.2, 0.3])), [0.5, 0.5])


def test_no_tokens():
    assert by_words([], np.zeros((3, 0))).shape == (3, 0)
