"""Sampling against the exact distribution."""

import math
from collections import Counter
from itertools import pairwise

import pytest
import torch
from tiny_steps import END, START, PrefixTable, RandomTree, padded

from transduce.search.dispatch import search
from transduce.search.hypothesis import Hypothesis
from transduce.search.request import Request
from transduce.search.sample import cut, inverse
from transduce.search.settings import Search


def samples(model: PrefixTable | RandomTree, lines: int, limit: int, **settings: object) -> list[Hypothesis]:
    asked = Search.model_validate({"method": "sample", **settings})
    requests = [Request(limit, line=line) for line in range(lines)]
    found = search(model, None, requests, asked, start=START, end=END, forbidden=[START])
    return [h for row in found for h in row]


def chi_square(observed: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> float:
    assert set(observed) <= set(expected)
    return sum((observed[outcome] - count) ** 2 / count for outcome, count in expected.items())


FAIR = PrefixTable({(): (0, 0.1, 0.5, 0.4), (2,): (0, 0.6, 0.1, 0.3), (3,): (0, 0.2, 0.2, 0.6)}, otherwise=(0, 1, 0, 0))


@pytest.mark.parametrize("draws", [1, 4])
def test_outputs_come_as_often_as_the_model_says(draws: int) -> None:
    lines = 4000 // draws
    everything = Search(method="exhaustive", nbest=100)
    (outputs,) = search(FAIR, None, [Request(3)], everything, start=START, end=END, forbidden=[START])
    expected = {h.tokens: math.exp(h.log_probability) * lines * draws for h in outputs}
    observed = Counter(h.tokens for h in samples(FAIR, lines, 3, nbest=draws, seed=11))
    assert len(expected) == 7
    assert chi_square(observed, expected) < 22.46  # 6 degrees of freedom, p = 0.001


@pytest.mark.parametrize(
    ("filters", "weights"),
    [
        ({"temperature": 0.5}, {END: 0.01, 2: 0.25, 3: 0.16}),
        ({"top_k": 2}, {2: 0.5, 3: 0.4}),
        ({"top_p": 0.5}, {2: 0.5}),
        ({"top_p": 0.6}, {2: 0.5, 3: 0.4}),
        ({"top_p": 0.95}, {END: 0.1, 2: 0.5, 3: 0.4}),
        ({"temperature": 2.0, "top_k": 2, "top_p": 0.99}, {2: 0.5**0.5, 3: 0.4**0.5}),
    ],
)
def test_filters(filters: dict[str, float], weights: dict[int, float]) -> None:
    lines, total = 3000, sum(weights.values())
    observed = Counter(h.tokens for h in samples(FAIR, lines, 1, **filters))
    expected: dict[tuple[int, ...], float] = {(token,): w / total * lines for token, w in weights.items()}
    assert chi_square(observed, expected) < 13.82  # at most 2 degrees of freedom, p = 0.001


def test_the_likeliest_alone_is_greedy() -> None:
    model, source = RandomTree(9, seed=4), padded([[3, 4], [5], [6, 7, 8]])
    requests = [Request(8, line=line) for line in range(3)]
    one, greedy = (
        search(model, source, requests, asked, start=START, end=END)
        for asked in (Search(method="sample", top_k=1), Search(method="greedy"))
    )
    assert one == greedy


def test_the_seed_and_the_line_choose_the_sample() -> None:
    def drawn(seed: int, line: int) -> tuple[int, ...]:
        asked = Search(method="sample", seed=seed)
        found = search(RandomTree(50, seed=4), None, [Request(20, line=line)], asked, start=START, end=END)
        return found[0][0].tokens

    assert drawn(1, 5) == drawn(1, 5)
    assert len({drawn(seed, line) for seed in range(4) for line in range(4)}) == 16


def test_draws_of_one_line_are_the_first_of_more() -> None:
    model = RandomTree(50, seed=4)
    two, five = (samples(model, 1, 20, nbest=draws) for draws in (2, 5))
    assert len({h.tokens for h in five}) == 5
    assert {h.tokens for h in two} < {h.tokens for h in five}
    assert all(before.score >= after.score for before, after in pairwise(h for h in five if h.ended))


def test_probabilities_are_the_models_whatever_the_temperature() -> None:
    for sample in samples(FAIR, 20, 1, temperature=3.0, top_p=0.9):
        assert math.exp(sample.log_probability) == pytest.approx({END: 0.1, 2: 0.5, 3: 0.4}[sample.tokens[0]])


def test_the_least_and_the_greatest_number_draw_what_is_possible() -> None:
    probability_NV = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0]] * 4, dtype=torch.float64)
    uniform_N = torch.tensor([0.0, 0.2999, 0.3001, 1 - 2.0**-53], dtype=torch.float64)
    assert inverse(probability_NV, uniform_N).tolist() == [1, 1, 3, 3]
    assert inverse(probability_NV / 3, uniform_N).tolist() == [1, 1, 3, 3]


def test_the_fewest_that_hold_their_share_of_what_top_k_left() -> None:
    sorted_NV = torch.tensor([[0.5, 0.3, 0.2]], dtype=torch.float64).log()
    assert cut(sorted_NV, 2, 0.6).tolist() == [pytest.approx([0.5, 0, 0])]  # 0.5 of 0.8 is more than 0.6 of it
    assert cut(sorted_NV, None, 0.6).tolist() == [pytest.approx([0.5, 0.3, 0])]
    assert cut(torch.zeros(1, 4, dtype=torch.float64), None, 0.5).tolist() == [[0.25, 0.25, 0, 0]]  # which hold just it


def test_filters_keep_at_least_one() -> None:
    sorted_NV = torch.tensor([[0.9, 0.1], [0.5, 0.5]], dtype=torch.float64).log()
    assert cut(sorted_NV, None, 1e-9).tolist() == [pytest.approx([0.9, 0]), pytest.approx([0.5, 0])]
