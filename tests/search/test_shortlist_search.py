"""Search among few words, of any model, against definitions: restricted probabilities and all outputs there are."""

import itertools
import math
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_steps import END, START, PrefixTable, RandomTree, TinyAttention, next_log_probabilities, padded
from torch import Tensor

from transduce.core.errors import InputError, TransduceError
from transduce.models.protocols import Steps
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search
from transduce.search.shortlist import restricted
from transduce.search.word_lists import words_of

VOCABULARY = 9
SOURCES = [[3, 4, 2], [5], [2, 8, 7, 6, 6]]
METHODS = [
    {"method": "greedy"},
    {"beam": 1},
    {"beam": 4, "nbest": 3},
    {"beam": 4, "nbest": 4, "groups": 2},
    {"beam": 3, "prune": 1.0},
    {"method": "sample", "nbest": 3, "seed": 2},
    {"beam": 4, "min_length": 2},
    {"beam": 4, "no_repeat_ngram": 1},
]


def lists(seed: int, rows: int = len(SOURCES), words: int = VOCABULARY) -> Tensor:
    """(rows, words) bool; 3 is in all lists, so that an output can be as long as is wanted."""
    drawn = Random(seed)
    return torch.tensor([[word == 3 or drawn.random() < 0.4 for word in range(words)] for _ in range(rows)])


class Restricted:
    """A model that says the same as another among one list, by its definition: p(w) over the sum of p in the list."""

    def __init__(self, model: Steps, words: set[int]) -> None:
        self.model, self.words, self.start = model, words, model.start

    def step(self, token: Tensor, memory: Any, state: Any) -> tuple[Tensor, Any]:
        log_probabilities_NV, state = self.model.step(token, memory, state)
        rows = []
        for row in log_probabilities_NV.tolist():
            mass = math.fsum(math.exp(value) for word, value in enumerate(row) if word in self.words)
            rows.append([math.exp(v) / mass if word in self.words else 0.0 for word, v in enumerate(row)])
        return torch.tensor(rows, dtype=torch.float64).log(), state


def searched(
    model: Any,
    sources: list[list[int]],
    asked: dict[str, Any],
    limit: int = 5,
    prefixes: list[list[int]] | None = None,
    **more: Any,
) -> Any:
    settings = Search.model_validate(asked)
    requests = [Request(limit, min_length=settings.min_length, prefix=each) for each in prefixes or [()] * len(sources)]
    given: dict[str, Any] = {"start": START, "end": END, "forbidden": [START, 2]}
    return search(model, padded(sources), requests, settings, **{**given, **more})


def said_of(row: Tensor) -> set[int]:
    """What a list comes to: without the forbidden, with the end."""
    return set(row.nonzero()[:, 0].tolist()) - {START, 2} | {END}


@pytest.mark.parametrize("asked", METHODS, ids=str)
@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_it_is_a_model_that_says_nothing_else(asked: dict[str, Any], seed: int) -> None:
    allowed_BV = lists(seed)
    for model in (RandomTree(VOCABULARY, seed), TinyAttention(VOCABULARY, seed)):
        together = searched(model, SOURCES, asked, shortlist=allowed_BV)
        for row, source in enumerate(SOURCES):
            plain = Restricted(model, said_of(allowed_BV[row]))
            [expected] = searched(plain, [source], asked, forbidden=[START])
            [alone] = searched(model, [source], asked, shortlist=allowed_BV[row : row + 1])
            for mine in (together[row], alone):
                assert [each.tokens for each in mine] == [each.tokens for each in expected]
                assert [each.score for each in mine] == pytest.approx([each.score for each in expected])


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_all_outputs_of_the_list_and_no_others(seed: int) -> None:
    model, row_1V = RandomTree(VOCABULARY, seed), lists(seed, 1)
    [found] = searched(model, [[3, 4]], {"method": "exhaustive", "nbest": 9999}, shortlist=row_1V, limit=3)
    others = sorted(said_of(row_1V[0]) - {END})
    outputs = [(*words, END) for length in range(3) for words in itertools.product(others, repeat=length)]
    outputs += itertools.product(others, repeat=3)
    assert sorted(each.tokens for each in found) == sorted(outputs)
    assert math.fsum(math.exp(each.log_probability) for each in found) == pytest.approx(1.0)
    plain = Restricted(model, said_of(row_1V[0]))
    for each in found:
        steps = [next_log_probabilities(plain, padded([[3, 4]]), each.tokens[:t]) for t in range(len(each.tokens))]
        values = [step[token] for step, token in zip(steps, each.tokens, strict=True)]
        assert each.log_probability == pytest.approx(sum(values))


def test_a_prefix_is_said_though_no_list_holds_it() -> None:
    model = RandomTree(VOCABULARY, 1)
    none = torch.zeros(3, VOCABULARY, dtype=torch.bool)
    for asked in ({"method": "greedy"}, {"beam": 3}):
        found = searched(model, SOURCES, asked, shortlist=none, prefixes=[[7, 8], [6], [2]])
        for prefix, [each, *_] in zip([[7, 8], [6], [2]], found, strict=True):
            assert list(each.tokens[: len(prefix)]) == prefix
            assert set(each.tokens) <= {*prefix, END}


def test_a_list_of_everything_changes_nothing() -> None:
    model = RandomTree(VOCABULARY, 4)
    every = torch.ones(3, VOCABULARY, dtype=torch.bool)
    one = searched(model, SOURCES, {"beam": 4, "nbest": 4}, shortlist=every, forbidden=[])
    other = searched(model, SOURCES, {"beam": 4, "nbest": 4}, forbidden=[])
    assert [[each.tokens for each in row] for row in one] == [[each.tokens for each in row] for row in other]


def test_what_is_impossible_stays_so() -> None:
    values_NV, allowed_NV = torch.tensor([[-torch.inf, 0.0]]), torch.tensor([[True, False]])
    assert restricted(values_NV, allowed_NV).tolist() == [[-torch.inf, -torch.inf]]
    model = PrefixTable({}, [0.0, 0.0, 1.0])
    with pytest.raises(TransduceError, match="gives probability 0 to every output"):
        search(model, None, [Request(2)], Search(), start=START, end=END, shortlist=torch.zeros(1, 3, dtype=torch.bool))


def test_lists_one_behind_the_other() -> None:
    word_L, first_B = words_of(np.array([[True, False, True], [False, False, False], [False, True, True]]))
    assert word_L.tolist() == [0, 2, 1, 2]
    assert first_B.tolist() == [0, 2, 2, 4]


@pytest.mark.parametrize(
    ("shortlist", "said"),
    [
        (lists(0, 2), r"bool \(3, vocabulary\); got torch.bool \(2, 9\)"),
        (lists(0).int(), r"bool \(3, vocabulary\); got torch.int32 \(3, 9\)"),
        (lists(0, words=8), "a shortlist out of 8 tokens; the model has 9"),
    ],
)
def test_a_wrong_list_is_refused(shortlist: Tensor, said: str) -> None:
    with pytest.raises(InputError, match=said):
        searched(RandomTree(VOCABULARY, 1), SOURCES, {}, shortlist=shortlist)


@pytest.mark.parametrize("method", ["mask_predict", "ctc"])
def test_what_writes_all_at_once_has_none(method: str) -> None:
    with pytest.raises(ValueError, match="writes all words at once, out of the whole vocabulary"):
        Search.model_validate({"method": method, "beam": 1, "shortlist": 5})
