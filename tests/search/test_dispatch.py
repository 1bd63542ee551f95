"""What a search refuses, of its caller and of its model."""

import math

import pytest
import torch
from tiny_steps import END, START, PrefixTable, RandomTree, padded

from transduce.core.errors import InputError, TransduceError
from transduce.core.padded import Padded
from transduce.models.protocols import Steps, Tree
from transduce.search.dispatch import search
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
        search(Broken(value), None, 3, asked, start=START, end=END, limits=[3] * 3, forbidden=[2])


@every_method
def test_minus_infinity_is_a_log_probability(asked: Search) -> None:
    found = search(Broken(-math.inf), None, 3, asked, start=START, end=END, limits=[3] * 3)
    assert len(found) == 3


@every_method
@pytest.mark.parametrize("prefixes", [[[], []], [[], [3, 2]]])
def test_a_row_without_a_possible_output(asked: Search, prefixes: list[list[int]]) -> None:
    model = PrefixTable({(3,): (1, 0, 0, 0)}, otherwise=(0.5, 0, 0, 0.5))
    with pytest.raises(TransduceError, match=r"probability 0 to every output of . of 2 rows, the first at line"):
        search(
            model,
            None,
            2,
            asked,
            start=START,
            end=END,
            limits=[3, 3],
            prefixes=prefixes,
            lines=[4, 5],
            forbidden=[START],
        )


@every_method
def test_no_rows(asked: Search) -> None:
    assert search(RandomTree(4, seed=1), None, 0, asked, start=START, end=END, limits=[]) == []


def test_log_probabilities_of_another_shape() -> None:
    class Transposed(RandomTree):
        def step(self, token: torch.Tensor, memory: Tree, state: Tree) -> tuple[torch.Tensor, Tree]:
            log_probabilities_NV, state = super().step(token, memory, state)
            return log_probabilities_NV.T, state

    with pytest.raises(TransduceError, match=r"should give log-probabilities \(2, vocabulary\) .* gave \(5, 2\)"):
        search(Transposed(5, seed=1), None, 2, Search(), start=START, end=END, limits=[3, 3])


def test_all_that_does_not_agree_is_named() -> None:
    model, source = RandomTree(5, seed=1), padded([[3]])
    with pytest.raises(InputError) as caught:
        search(model, source, 2, Search(), start=START, end=END, limits=[3], lines=[0, 1, 2], forbidden=[END])
    assert len(caught.value.problems) == 4


def test_all_wrong_rows_are_named() -> None:
    model, prefixes = RandomTree(5, seed=1), [[], [3, 3], [END], [-2]]
    with pytest.raises(InputError) as caught:
        search(
            model,
            None,
            4,
            Search(),
            start=START,
            end=END,
            limits=[0, 1, 5, 5],
            prefixes=prefixes,
            lines=[10, 11, 12, 13],
        )
    told = ["line 10 has a limit of 0", "line 11 has a prefix of 2 tokens, over its limit of 1"]
    told += ["line 12 has the end token 1 in its prefix", "line 13 has a negative token"]
    assert all(part in problem for part, problem in zip(told, caught.value.problems, strict=True))


@every_method
def test_tokens_outside_the_vocabulary(asked: Search) -> None:
    model: Steps = RandomTree(5, seed=1)
    with pytest.raises(InputError) as caught:
        search(model, None, 1, asked, start=START, end=8, limits=[3], prefixes=[[7]], forbidden=[6])
    assert [problem.split(" is ")[0] for problem in caught.value.problems] == [
        "search: end token 8",
        "search: forbidden token 6",
        "search: line 0: prefix token 7",
    ]


def test_a_forbidden_token_may_stand_in_a_prefix() -> None:
    model = RandomTree(5, seed=1)
    (found,) = search(
        model,
        None,
        1,
        Search(beam=9, nbest=9),
        start=START,
        end=END,
        limits=[3],
        prefixes=[[4]],
        forbidden=[4, 0],
    )
    assert all(h.tokens[0] == 4 and not {0, 4} & set(h.tokens[1:]) for h in found)


def test_nothing_is_recorded_for_gradients() -> None:
    class Watching(RandomTree):
        def step(self, token: torch.Tensor, memory: Tree, state: Tree) -> tuple[torch.Tensor, Tree]:
            assert torch.is_inference_mode_enabled()
            return super().step(token, memory, state)

    assert search(Watching(5, seed=1), None, 1, Search(), start=START, end=END, limits=[3])
