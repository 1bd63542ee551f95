"""The length rule, the order of hypotheses and the settings."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from transduce.search.hypothesis import Hypothesis, hypothesis, rank
from transduce.search.length import UNRULED, LengthRule, RuleName
from transduce.search.settings import Search

rules = st.builds(LengthRule, st.sampled_from(["power", "gnmt", "none"]), st.floats(0, 2))


def test_the_length_rule_rewards_length() -> None:
    power = LengthRule("power", 0.75)
    assert power.normalised(-8.0, 4) == -8.0 / 4**0.75
    assert power.normalised(-8.0, 8) > power.normalised(-8.0, 4)
    assert LengthRule("power", 0.0).normalised(-8.0, 4) == -8.0


def test_the_rule_of_gnmt_is_its_equation_14() -> None:
    gnmt = LengthRule("gnmt", 0.6)
    assert gnmt.normalised(-8.0, 1) == -8.0
    assert gnmt.normalised(-8.0, 7) == pytest.approx(-8.0 / (12**0.6 / 6**0.6))
    assert gnmt.normalised(-8.0, 20) < LengthRule("power", 0.6).normalised(-8.0, 20)  # it rewards length less


def test_no_rule_is_the_probability() -> None:
    assert LengthRule("none", 0.75).normalised(-8.0, 4) == -8.0


@pytest.mark.parametrize("name", ["power", "gnmt", "none"])
def test_the_length_rule_of_tensors_is_that_of_numbers(name: RuleName) -> None:
    rule = LengthRule(name, 0.6)
    total, length = torch.tensor([-8.0, -3.5, -math.inf]).double(), torch.tensor([4, 3, 7]).double()
    pairs = zip(total.tolist(), length.tolist(), strict=True)
    assert rule.normalised(total, length).tolist() == [rule.normalised(p, n) for p, n in pairs]


@given(
    live=st.floats(-50, 0),
    costs=st.lists(st.floats(0, 5), min_size=1, max_size=20),
    room=st.integers(0, 20),
    before=st.integers(0, 20),
    rule=rules,
)
def test_no_continuation_beats_the_bound(
    live: float, costs: list[float], room: int, before: int, rule: LengthRule
) -> None:
    length = before + len(costs)
    bound = rule.upper_bound(live, length + room)
    assert rule.normalised(live - sum(costs), length) <= bound + 1e-12
    assert rule.normalised(live, length + room) == bound  # and it is reached: by tokens that are certain


def test_ranked_by_end_then_score_then_length_then_ids() -> None:
    def of(*tokens: int, value: float = -1.0, ended: bool = True) -> Hypothesis:
        return hypothesis(tokens, [value / len(tokens)] * len(tokens), ended, UNRULED)

    ordered = [
        of(9, value=-0.5),
        of(4),
        of(3, 1),
        of(3, 2),
        of(1, value=-2.0),
        of(5, value=-0.1, ended=False),
    ]
    assert rank(reversed(ordered), 6) == ordered
    assert rank(ordered, 2) == ordered[:2]


def test_probability_is_the_sum_of_the_tokens() -> None:
    found = hypothesis([5, 6, 1], [-0.1, -0.2, -0.3], True, LengthRule("power", 1.0))
    assert (found.tokens, found.log_probability) == ((5, 6, 1), math.fsum([-0.1, -0.2, -0.3]))
    assert found.score == pytest.approx(-0.2)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"beam": 0}, "greater than or equal to 1"),
        ({"alpha": -0.1}, "greater than or equal to 0"),
        ({"nbest": 6}, "nbest = 6 is more than beam = 5"),
        ({"method": "greedy", "nbest": 2}, '"greedy" finds one'),
        ({"method": "beem"}, "'greedy', 'beam', 'sample', 'exhaustive'"),
        ({"temperature": 0.7}, 'temperature: only method "sample"'),
        ({"top_k": 3, "top_p": 0.9}, 'top_k, top_p: only method "sample"'),
        ({"method": "sample", "temperature": 0.0}, "greater than 0"),
        ({"method": "sample", "top_p": 1.5}, "less than or equal to 1"),
        ({"length_rule": "wu"}, "'power', 'gnmt' or 'none'"),
        ({"groups": 2}, "beam = 5 slots cannot be shared evenly among groups = 2"),
        ({"groups": 2, "method": "greedy"}, 'only method "beam" has groups'),
        ({"diversity": 1.0}, "set groups above 1"),
        ({"coverage": -0.1}, "greater than or equal to 0"),
        ({"no_repeat_ngram": 0}, "greater than or equal to 1"),
        ({"min_length": -1}, "greater than or equal to 0"),
        ({"lenpen": 1.0}, "Extra inputs are not permitted"),
    ],
)
def test_settings_that_cannot_be_meant(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Search.model_validate(wrong)


def test_more_samples_than_beam() -> None:
    assert Search(method="sample", nbest=100).nbest == 100


def test_limits_grow_with_the_source() -> None:
    assert Search().limit(10) == 35
    assert Search(max_length_factor=0.0, max_length_offset=300).limit(10) == 300
    assert Search(max_length_factor=0.1, max_length_offset=0).limit(3) == 1
