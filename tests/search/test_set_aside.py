"""Beams that set ended hypotheses aside, against a slow loop written from what transformers documents."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_steps import END, START, RandomTree, TinyAttention, next_log_probabilities, padded

from transduce.core.errors import InputError
from transduce.models.protocols import Steps
from transduce.search.dispatch import search
from transduce.search.keys import KEYS
from transduce.search.plain_settings import PlainSearch
from transduce.search.request import Request
from transduce.search.settings import Search, search_settings

few = settings(max_examples=40, deadline=None)
Output = tuple[tuple[int, ...], float]


def slow(
    model: Steps,
    source: list[int],
    beam: int,
    limit: int,
    alpha: float,
    stopping: str,
    prefix: tuple[int, ...],
    ends: bool,
) -> list[Output]:
    """The outputs set aside, best first, with their scores; `limit` counts a forced end token, where `ends`."""
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    aside: list[Output] = []
    for length in range(1, limit + 1):
        grown = []
        for tokens, total in live:
            values = next_log_probabilities(model, padded([source]), tokens)
            if length <= len(prefix):
                grown.append(((*tokens, prefix[length - 1]), total))
            elif ends and length == limit:
                grown.append(((*tokens, END), total))
            else:
                grown += [((*tokens, token), total + value) for token, value in enumerate(values) if token != START]
        grown = sorted(grown, key=lambda each: -each[1])[: 2 * beam]
        over = [tokens[-1] == END or length == limit for tokens, _ in grown]
        for place, (tokens, total) in enumerate(grown):
            if over[place] and place < beam:
                aside.append((tokens, total / length**alpha))
        aside = sorted(aside, key=lambda each: -each[1])[:beam]
        live = [each for each, is_over in zip(grown, over, strict=True) if not is_over][:beam]
        if not live or (len(aside) == beam and stopping == "complete"):
            break
        reach = limit if stopping == "never" else length
        if len(aside) == beam and live[0][1] / reach**alpha <= aside[-1][1]:
            break
    return aside


@few
@given(
    seed=st.integers(0, 10**6),
    beam=st.integers(2, 5),
    limit=st.integers(2, 7),
    alpha=st.sampled_from([0.0, 0.6, 1.0, 2.0]),
    stopping=st.sampled_from(["heuristic", "complete", "never"]),
    prefix=st.sampled_from([(), (3,), (4, 2)]),
    ends=st.booleans(),
)
def test_equals_a_slow_loop(
    seed: int, beam: int, limit: int, alpha: float, stopping: str, prefix: tuple[int, ...], ends: bool
) -> None:
    model = RandomTree(9, seed)
    limit = max(limit, len(prefix) + 2)
    asked = Search(
        beam=beam, alpha=alpha, stopping=stopping, nbest=beam, max_length_factor=0, max_length_offset=limit,
        at_limit="end" if ends else "stop",
    )  # fmt: skip
    sources = [[seed % 7, 5], [3, 4, seed % 5], [8]]
    requests = [Request(asked.limit(len(source)), prefix=prefix) for source in sources]
    found = search(model, padded(sources), requests, asked, start=START, end=END, forbidden=[START])
    for source, hypotheses in zip(sources, found, strict=True):
        wanted = slow(model, source, beam, limit, alpha, stopping, prefix, ends)
        ours = [(each.tokens if each.ended or not ends else (*each.tokens, END)) for each in hypotheses]
        assert ours == [tokens for tokens, _ in wanted]
        assert [each.score for each in hypotheses] == pytest.approx([score for _, score in wanted])


def test_it_is_the_same_in_any_batch() -> None:
    model, sources = TinyAttention(9, 4), [[3, 4, 5], [6], [7, 8]]
    asked = Search(beam=3, stopping="heuristic", nbest=3)
    requests = [Request(limit) for limit in (9, 3, 6)]
    together = search(model, padded(sources), requests, asked, start=START, end=END, forbidden=[START])
    for source, request, wanted in zip(sources, requests, together, strict=True):
        [alone] = search(model, padded([source]), [request], asked, start=START, end=END, forbidden=[START])
        assert [each.tokens for each in alone] == [each.tokens for each in wanted]


def test_a_beam_of_one_is_greedy_whatever_stops_it() -> None:
    model, source = RandomTree(6, 3), padded([[3, 4]])
    one, other = (
        search(model, source, [Request(7)], asked, start=START, end=END)[0]
        for asked in (Search(beam=1, stopping="heuristic"), Search(method="greedy"))
    )
    assert one[0].tokens == other[0].tokens


def test_what_does_not_go_with_it_is_refused() -> None:
    with pytest.raises(InputError, match='they need stopping = "slots"'):
        search_settings(Search(), {"groups": 5, "stopping": "heuristic"})


def test_a_forced_end_token_takes_a_place_of_the_limit() -> None:
    assert Search(max_length_factor=0, max_length_offset=9, at_limit="end").limit(5) == 8
    assert PlainSearch.of({"max_length_factor": 0.0, "max_length_offset": 9, "at_limit": "end"}).limit(5) == 8
    assert KEYS["stopping"].default == "slots"
