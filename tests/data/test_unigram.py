"""Unigram pieces: every word can be written, frequent parts become pieces, pruning follows its definition."""

import math
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.tokenizers.tokenizer import _best_without, learn_pieces

STEMS, ENDINGS = ["walk", "talk", "jump", "play", "work", "help"], ["", "s", "ed", "ing", "er"]
WORDS = Counter({f"▁{stem}{ending}": 20 for stem in STEMS for ending in ENDINGS})


def test_morphemes_are_found() -> None:
    pieces = dict(learn_pieces(WORDS, 40, 2))
    assert {f"▁{stem}" for stem in STEMS} <= pieces.keys()
    assert len(pieces) <= 40


def test_scores_are_log_probabilities_in_falling_order() -> None:
    pieces = learn_pieces(WORDS, 40, 2)
    scores = [score for _, score in pieces]
    assert scores == sorted(scores, reverse=True)
    assert math.isclose(sum(map(math.exp, scores)), 1, abs_tol=1e-4)


@given(words=st.dictionaries(st.text("abcd▁", min_size=1, max_size=9), st.integers(1, 9), min_size=1, max_size=30))
@settings(max_examples=40, deadline=None)
def test_the_alphabet_is_kept_and_the_order_of_words_does_not_matter(words: dict[str, int]) -> None:
    pieces = learn_pieces(Counter(words), 12, 2)
    assert set("".join(words)) <= {piece for piece, _ in pieces}
    assert len(pieces) <= 12
    assert learn_pieces(Counter(dict(reversed(words.items()))), 12, 2) == pieces


@pytest.mark.parametrize("word", ["ab", "abc", "abcab"])
def test_best_split_equals_trying_all(word: str) -> None:
    scores = {"a": -3.0, "b": -2.5, "c": -4.0, "ab": -3.5, "bc": -5.0, "ca": -9.0, "abc": -4.0, "abcab": -1.0}
    inner = range(1, len(word))
    splits = [cut for size in inner for cut in combinations(inner, size)]
    parts = [[word[a:b] for a, b in zip((0, *cut), (*cut, len(word)), strict=True)] for cut in splits]
    tried = [sum(scores.get(piece, -math.inf) for piece in split) for split in parts]
    assert _best_without(word, scores) == pytest.approx(max(tried))
