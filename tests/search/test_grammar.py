"""The grammar of trees: exactly the trees over so many words can be found, and always some."""

from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_steps import END, START, RandomTree, TinyAttention, padded

from transduce.core.errors import InputError
from transduce.data.structures.trees import of_sequence
from transduce.search.dispatch import search
from transduce.search.grammar import BracketTokens, TreeGrammar
from transduce.search.request import Request
from transduce.search.settings import Search

VOCABULARY = ["<s>", "</s>", "(A", ")B", "XX", ")A", "(B", "(C"]  # (C is never closed, so it may not be opened
TOKENS = BracketTokens(VOCABULARY, END, [START])


def is_tree(tokens: list[str], words: int) -> bool:
    try:
        of_sequence(tokens, ["w"] * words)
    except InputError:
        return False
    return True


@pytest.mark.parametrize(("words", "limit"), [(1, 4), (1, 6), (1, 7), (2, 5), (2, 7), (3, 6), (3, 7)])
def test_every_tree_that_fits_is_found_and_nothing_else(words: int, limit: int) -> None:
    expected = {
        tokens
        for length in range(1, limit)
        for tokens in product(range(2, 7), repeat=length)
        if is_tree([VOCABULARY[each] for each in tokens], words)
    }
    assert expected
    model = RandomTree(len(VOCABULARY), seed=words)
    for method, more in (("beam", {"beam": 5000, "nbest": 5000}), ("exhaustive", {"nbest": 5000})):
        asked = Search.model_validate({"method": method, **more})
        (found,) = search(
            model,
            padded([[3, 4]]),
            [Request(limit, grammar=TreeGrammar(TOKENS, words))],
            asked,
            start=START,
            end=END,
            forbidden=[START],
        )
        assert {hypothesis.tokens[:-1] for hypothesis in found} == {tuple(each) for each in expected}
        assert all(hypothesis.ended and hypothesis.log_probability > -torch.inf for hypothesis in found)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    method=st.sampled_from(
        [{"method": "greedy"}, {"beam": 1}, {"beam": 4, "nbest": 4}, {"method": "sample", "nbest": 3}]
    ),
)
def test_outputs_are_trees_and_the_same_alone_as_in_a_batch(seed: int, method: dict[str, object]) -> None:
    drawn = Random(seed)
    rows = [[drawn.randrange(1, 9) for _ in range(drawn.randrange(1, 6))] for _ in range(5)]
    model = TinyAttention(10, seed)
    tokens = BracketTokens(["<s>", "</s>", "(A", ")A", "(B", ")B", "NN", "DT", "(C", ")C"], END, [START])
    asked = Search.model_validate({"beam": 3, **method} if "beam" not in method else method)
    words = [drawn.randrange(1, 8) for _ in rows]
    limits = [count + 3 + drawn.randrange(12) for count in words]

    def found(places: list[int]) -> list[list[tuple[int, ...]]]:
        hypotheses = search(
            model,
            padded([rows[place] for place in places]),
            [Request(limits[place], line=place, grammar=TreeGrammar(tokens, words[place])) for place in places],
            asked,
            start=START,
            end=END,
        )
        return [[tuple(each.tokens) for each in several] for several in hypotheses]

    together = found(list(range(5)))
    assert [found([place])[0] for place in range(5)] == together
    names = ["<s>", "</s>", "(A", ")A", "(B", ")B", "NN", "DT", "(C", ")C"]
    for count, several in zip(words, together, strict=True):
        for output in several:
            assert output[-1] == END
            assert is_tree([names[each] for each in output[:-1]], count)


@pytest.mark.parametrize(
    ("asked", "more", "said"),
    [
        ({"no_repeat_ngram": 2}, {}, "no_repeat_ngram"),
        ({}, {"prefix": [2]}, "takes no prefix"),
        ({}, {"min_length": 3}, "no minimum length"),
        ({}, {"limit": 4}, "limit of 4 tokens; its grammar needs 5"),
    ],
)
def test_what_does_not_go_with_a_grammar_is_refused(asked: dict[str, object], more: dict[str, Any], said: str) -> None:
    settings = Search.model_validate({"beam": 2, **asked})
    request = replace(Request(9, grammar=TreeGrammar(TOKENS, 2)), **more)
    with pytest.raises(InputError, match=said):
        search(RandomTree(len(VOCABULARY), 1), padded([[3]]), [request], settings, start=START, end=END)


def test_a_grammar_takes_no_shortlist() -> None:
    every_1V = torch.ones(1, len(VOCABULARY), dtype=torch.bool)
    request, model = Request(9, grammar=TreeGrammar(TOKENS, 2)), RandomTree(len(VOCABULARY), 1)
    with pytest.raises(InputError, match="shortlist"):
        search(model, padded([[3]]), [request], Search(beam=2), start=START, end=END, shortlist=every_1V)


def test_a_grammar_of_another_vocabulary_is_refused() -> None:
    with pytest.raises(InputError, match="another vocabulary"):
        search(
            RandomTree(9, 1),
            padded([[3]]),
            [Request(9, grammar=TreeGrammar(TOKENS, 2))],
            Search(beam=2),
            start=START,
            end=END,
        )


def test_a_vocabulary_without_brackets_and_a_tree_without_words_are_refused() -> None:
    with pytest.raises(InputError, match="no brackets"):
        BracketTokens(["<s>", "</s>", "(A", ")B", "XX"], END, [START])
    with pytest.raises(InputError, match="at least one word"):
        TreeGrammar(TOKENS, 0)
