"""What a search refuses, of its caller and of its model."""

import math
from dataclasses import replace

import pytest
import torch
from tiny_steps import END, START, PrefixTable, RandomTree, padded

from transduce.core.errors import InputError, TransduceError
from transduce.core.padded import Padded
from transduce.models.protocols import Steps, Tree
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search

ALL = [Search(), Search(method="greedy"), Search(method="sample"), Search(method="exhaustive")]
every_method = pytest.mark.parametrize("asked", ALL, ids=lambda asked: asked.method)


class Broken:
    """Gives `value` for one token of one row."""

    def __init__(self, value: float) -> None:
        self.value = value

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        return None, None

    def step(self, token: torch.Tensor, memory: Tree, state: Tree) -> tuple[torch.Tensor, Tree]:
        log_probabilities_NV = torch.zeros(len(token), 4).log_softmax(dim=1)
        log_probabilities_NV[-1, 2] = self.value
        return log_probabilities_NV, state


@every_method
@pytest.mark.parametrize(("value", "said"), [(math.nan, "nan"), (math.inf, "inf"), (3.0, "3")])
def test_what_is_no_log_probability(asked: Search, value: float, said: str) -> None:
    with pytest.raises(TransduceError, match=f"log-probability of {said}; it should be at most 0"):
        search(Broken(value), None, [Request(3)] * 3, asked, start=START, end=END, forbidden=[2])


@every_method
def test_minus_infinity_is_a_log_probability(asked: Search) -> None:
    found = search(Broken(-math.inf), None, [Request(3)] * 3, asked, start=START, end=END)
    assert len(found) == 3


@every_method
@pytest.mark.parametrize("prefixes", [[[], []], [[], [3, 2]]])
def test_a_row_without_a_possible_output(asked: Search, prefixes: list[list[int]]) -> None:
    model = PrefixTable({(3,): (1, 0, 0, 0)}, otherwise=(0.5, 0, 0, 0.5))
    requests = [Request(3, prefix=prefix, line=line) for line, prefix in enumerate(prefixes, 4)]
    with pytest.raises(TransduceError, match=r"probability 0 to every output of . of 2 rows, the first at line"):
        search(model, None, requests, asked, start=START, end=END, forbidden=[START])


@every_method
def test_no_rows(asked: Search) -> None:
    assert search(RandomTree(4, seed=1), None, [], asked, start=START, end=END) == []


def test_log_probabilities_of_another_shape() -> None:
    class Transposed(RandomTree):
        def step(self, token: torch.Tensor, memory: Tree, state: Tree) -> tuple[torch.Tensor, Tree]:
            log_probabilities_NV, state = super().step(token, memory, state)
            return log_probabilities_NV.T, state

    with pytest.raises(TransduceError, match=r"should give log-probabilities \(2, vocabulary\) .* gave \(5, 2\)"):
        search(Transposed(5, seed=1), None, [Request(3)] * 2, Search(), start=START, end=END)


def test_all_that_does_not_agree_is_named() -> None:
    model, source = RandomTree(5, seed=1), padded([[3]])
    with pytest.raises(InputError) as caught:
        search(model, source, [Request(3)] * 2, Search(), start=START, end=END, forbidden=[END])
    assert len(caught.value.problems) == 2


def test_all_wrong_rows_are_named() -> None:
    model = RandomTree(5, seed=1)
    wrong = [Request(0), Request(1, prefix=[3, 3]), Request(5, prefix=[END]), Request(5, prefix=[-2])]
    requests = [replace(request, line=line) for line, request in enumerate(wrong, 10)]
    with pytest.raises(InputError) as caught:
        search(model, None, requests, Search(), start=START, end=END)
    told = ["line 10 has a limit of 0", "line 11 has a prefix of 2 tokens, over its limit of 1"]
    told += ["line 12 has the end token 1 in its prefix", "line 13 has a negative token"]
    assert all(part in problem for part, problem in zip(told, caught.value.problems, strict=True))


@every_method
def test_tokens_outside_the_vocabulary(asked: Search) -> None:
    model: Steps = RandomTree(5, seed=1)
    with pytest.raises(InputError) as caught:
        search(model, None, [Request(3, prefix=[7])], asked, start=START, end=8, forbidden=[6])
    assert [problem.split(" is ")[0] for problem in caught.value.problems] == [
        "search: end token 8",
        "search: forbidden token 6",
        "search: line 0: prefix token 7",
    ]


def test_a_forbidden_token_may_stand_in_a_prefix() -> None:
    model = RandomTree(5, seed=1)
    (found,) = search(
        model, None, [Request(3, prefix=[4])], Search(beam=9, nbest=9), start=START, end=END, forbidden=[4, 0]
    )
    assert all(h.tokens[0] == 4 and not {0, 4} & set(h.tokens[1:]) for h in found)


def test_nothing_is_recorded_for_gradients() -> None:
    class Watching(RandomTree):
        def step(self, token: torch.Tensor, memory: Tree, state: Tree) -> tuple[torch.Tensor, Tree]:
            assert torch.is_inference_mode_enabled()
            return super().step(token, memory, state)

    assert search(Watching(5, seed=1), None, [Request(3)], Search(), start=START, end=END)
