"""The worked example of greedy, exhaustive and beam search: tokens A, B, C and end, at most four.

The first table is that of Dive into Deep Learning's figure s2s-prob1; after A C and after A C B the second,
of figure s2s-prob2, holds. Prefixes that neither gives are uniform.
"""

import math
from itertools import product

import pytest
from tiny_steps import END, START, PrefixTable

from forced_decoding import forced
from transduce.search.dispatch import search
from transduce.search.hypothesis import Hypothesis
from transduce.search.request import Request
from transduce.search.settings import Search

A, B, C = 2, 3, 4
NAMES = {A: "A", B: "B", C: "C", END: "e"}

# columns: start, end, A, B, C
TABLE = PrefixTable(
    {
        (): (0, 0.1, 0.5, 0.2, 0.2),
        (A,): (0, 0.2, 0.1, 0.4, 0.3),
        (A, B): (0, 0.2, 0.2, 0.2, 0.4),
        (A, B, C): (0, 0.6, 0.0, 0.2, 0.2),
        (A, C): (0, 0.1, 0.1, 0.6, 0.2),
        (A, C, B): (0, 0.6, 0.1, 0.2, 0.1),
    },
    otherwise=(0, 0.25, 0.25, 0.25, 0.25),
)
FIRST_TABLE = [
    (0, 0.1, 0.5, 0.2, 0.2),
    (0, 0.2, 0.1, 0.4, 0.3),
    (0, 0.2, 0.2, 0.2, 0.4),
    (0, 0.6, 0.0, 0.2, 0.2),
]
WITHOUT_PREFIXES = PrefixTable(
    {prefix: row for t, row in enumerate(FIRST_TABLE) for prefix in product((A, B, C), repeat=t)},
    otherwise=(),
)


def found(**settings: object) -> list[Hypothesis]:
    asked = Search.model_validate(settings)
    return search(TABLE, None, [Request(4)], asked, start=START, end=END, forbidden=[START])[0]


def spelled(hypothesis: Hypothesis) -> str:
    return "".join(NAMES[token] for token in hypothesis.tokens)


def test_greedy_finds_0_048() -> None:
    (best,) = found(method="greedy")
    assert spelled(best) == "ABCe"
    assert math.exp(best.log_probability) == pytest.approx(0.048)
    assert [math.exp(value) for value in best.token_log_probabilities] == pytest.approx([0.5, 0.4, 0.4, 0.6])


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.75, 1.0, 3.0])
def test_a_beam_of_one_is_greedy_for_any_alpha(alpha: float) -> None:
    assert found(beam=1, alpha=alpha) == found(method="greedy", alpha=alpha)


@pytest.mark.parametrize(
    ("beam", "alpha", "output", "probability"),
    [(1, 0.0, "ABCe", 0.048), (2, 0.0, "ACBe", 0.054), (2, 0.75, "ACBe", 0.054), (3, 0.75, "ACBe", 0.054)],
)
def test_beams(beam: int, alpha: float, output: str, probability: float) -> None:
    (best,) = found(beam=beam, alpha=alpha)
    assert spelled(best) == output
    assert math.exp(best.log_probability) == pytest.approx(probability)


def test_a_wider_beam_finds_a_likelier_and_worse_output() -> None:
    (best,) = found(beam=3, alpha=0)
    assert spelled(best) == "Ae"
    assert math.exp(best.log_probability) == pytest.approx(0.10)


def test_exhaustive_without_length_rule_prefers_short_outputs() -> None:
    first, second, *_ = found(method="exhaustive", alpha=0, nbest=120)
    assert {spelled(first), spelled(second)} == {"e", "Ae"}
    assert [math.exp(h.log_probability) for h in (first, second)] == pytest.approx([0.1, 0.1])


@pytest.mark.parametrize("alpha", [0.6, 0.75, 1.0])
def test_exhaustive_with_length_rule(alpha: float) -> None:
    assert spelled(found(method="exhaustive", alpha=alpha)[0]) == "ACBe"


def test_printed_scores() -> None:
    scores = {spelled(h): round(h.score, 4) for h in found(method="exhaustive", alpha=0.75, nbest=120)}
    assert {name: scores[name] for name in ("ACBe", "ABCe", "Ae", "ABe")} == {
        "ACBe": -1.0319,
        "ABCe": -1.0736,
        "Ae": -1.3691,
        "ABe": -1.4121,
    }


@pytest.mark.parametrize(("table", "probability"), [(TABLE, 0.054), (WITHOUT_PREFIXES, 0.018)])
def test_a_token_is_as_likely_as_its_whole_prefix_makes_it(table: PrefixTable, probability: float) -> None:
    (given,) = forced(table, None, [[A, C, B, END]], start=START, end=END)
    assert math.exp(given.log_probability) == pytest.approx(probability)


def test_all_outputs_hold_all_probability() -> None:
    everything = found(method="exhaustive", nbest=121)
    assert len(everything) == 120  # of 121 leaves one, A B C A, is impossible
    assert sum(math.exp(h.log_probability) for h in everything) == pytest.approx(1.0)


def test_costs_of_ten_tokens_from_ten_thousand_words() -> None:
    """Next tokens considered, for V words, T tokens and a beam of k (Zhang et al., Dive into Deep Learning, 10.8)."""
    vocabulary, length, beam = 10_000, 10, 5
    assert beam * vocabulary * length == 5 * 10**5
    assert vocabulary**length == 10**40
    assert vocabulary * length == 10**5
