"""Beam search against its definition, against exhaustive search, and its stop."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_steps import END, START, Counted, PrefixTable, RandomTree, TinyAttention, padded, slow_beam

from transduce.models.protocols import select
from transduce.search.dispatch import search
from transduce.search.length import LengthRule
from transduce.search.request import Request
from transduce.search.settings import Search

few = settings(max_examples=25, deadline=None)
alphas = st.sampled_from([0.0, 0.5, 0.75, 1.0])
seeds = st.integers(0, 10**6)


@few
@given(
    seed=seeds,
    beam=st.integers(1, 7),
    limit=st.integers(1, 6),
    alpha=alphas,
    vocabulary=st.integers(2, 6),
    prune=st.sampled_from([None, 0.3, 1.0, 3.0]),
)
def test_equals_its_definition_without_early_stop(
    seed: int, beam: int, limit: int, alpha: float, vocabulary: int, prune: float | None
) -> None:
    model, source = RandomTree(vocabulary, seed), padded([[3, 5, seed % 7]])
    slow = slow_beam(model, source, beam, limit, alpha, prune or math.inf)
    for nbest in {1, beam}:
        asked = Search(beam=beam, alpha=alpha, nbest=nbest, prune=prune)
        (found,) = search(model, source, [Request(limit)], asked, start=START, end=END)
        ended = [tokens for tokens in slow if tokens[-1] == END][:nbest]
        assert [h.tokens for h in found if h.ended] == ended
        if len(ended) < nbest:  # nothing may have been stopped
            assert [h.tokens for h in found] == slow[:nbest]


@few
@given(seed=seeds, limit=st.integers(1, 4), alpha=alphas, vocabulary=st.integers(2, 4), nbest=st.integers(1, 9))
def test_a_beam_as_wide_as_the_tree_is_exhaustive(
    seed: int, limit: int, alpha: float, vocabulary: int, nbest: int
) -> None:
    model, source = RandomTree(vocabulary, seed), padded([[seed % 11, 4]])
    wide = Search(beam=sum((vocabulary - 1) ** t for t in range(limit + 1)) + nbest, alpha=alpha, nbest=nbest)
    all_of_them = Search(method="exhaustive", alpha=alpha, nbest=nbest)
    by_beam, by_exhaustion = (
        search(model, source, [Request(limit)], asked, start=START, end=END)[0] for asked in (wide, all_of_them)
    )
    ended = [h for h in by_exhaustion if h.ended]
    assert [h for h in by_beam if h.ended] == ended
    if len(ended) < nbest:
        assert by_beam == by_exhaustion


@few
@given(seed=seeds, alpha=alphas)
def test_a_beam_of_one_is_greedy(seed: int, alpha: float) -> None:
    model, source = TinyAttention(9, seed), padded([[3, 4, 5], [6], [7, 8]])
    beam, greedy = (
        search(model, source, [Request(limit) for limit in [9, 3, 6]], asked, start=START, end=END, forbidden=[START])
        for asked in (Search(beam=1, alpha=alpha), Search(method="greedy", alpha=alpha))
    )
    for (one,), (other,) in zip(beam, greedy, strict=True):
        assert (one.tokens, one.ended) == (other.tokens, other.ended)
        assert one.token_log_probabilities == pytest.approx(other.token_log_probabilities, abs=1e-6)


LATE_WINNER = PrefixTable(
    {(): (0, 0.6, 0.4, 0), **{(2,) * t: (0, 0, 1, 0) for t in range(1, 7)}, (2,) * 7: (0, 1, 0, 0)},
    otherwise=(0, 1, 0, 0),
)


def test_goes_on_while_a_longer_output_can_still_win() -> None:
    """Stopping by the score at the present length, as several toolkits do, would lose the better output."""
    live, finished, limit = math.log(0.4), math.log(0.6), 10
    rule = LengthRule("power", 1.0)
    assert rule.upper_bound(live, 1) < finished  # that bound: at length 1 the live one is behind
    assert rule.upper_bound(live, limit) > finished  # ours: at the limit it may lead
    (found,) = search(LATE_WINNER, None, [Request(limit)], Search(beam=2, alpha=1), start=START, end=END)
    assert found[0].tokens == (2,) * 7 + (END,)
    assert found[0].score == pytest.approx(math.log(0.4) / 8)


@pytest.mark.parametrize(("alpha", "nbest", "steps"), [(0.0, 1, 1), (0.0, 2, 8), (1.0, 1, 8)])
def test_stops_when_nothing_can_win_any_more(alpha: float, nbest: int, steps: int) -> None:
    model = Counted(LATE_WINNER)
    search(model, None, [Request(10)], Search(beam=2, alpha=alpha, nbest=nbest), start=START, end=END)
    assert len(model.rows) == steps


def test_the_work_shrinks_as_hypotheses_and_sentences_finish() -> None:
    model, source = Counted(RandomTree(6, seed=3)), padded([[3], [4], [5], [6]])
    limits = [2, 4, 6, 8]
    requests = [Request(limit) for limit in limits]
    search(model, source, requests, Search(beam=3, nbest=3), start=START, end=END, forbidden=[START])
    assert model.rows[0] == 4  # before the first token the hypotheses of a sentence are one
    for time, rows in enumerate(model.rows):
        assert rows <= 3 * sum(limit > time for limit in limits)
    assert any(rows < 3 * sum(limit > time for limit in limits) for time, rows in enumerate(model.rows[1:], 1))


def test_a_finished_hypothesis_keeps_its_slot() -> None:
    model = Counted(PrefixTable({(): (0, 0.5, 0.3, 0.2)}, otherwise=(0, 0, 0.5, 0.5)))
    search(model, None, [Request(4)], Search(beam=2, nbest=2), start=START, end=END)
    assert model.rows == [1, 1, 1, 1]


def test_what_is_pruned_is_no_work_and_its_slot_is_filled_again() -> None:
    unlikely, likely = math.exp(-2) / 2, 1 - math.exp(-2) / 2
    table = {(): (0, 0, likely, unlikely), (2,): (0, 0, 0.5, 0.5)}
    for prune, rows, last in ((1.9, [1, 1, 2], 2), (3.0, [1, 2, 2], 2)):
        model = Counted(PrefixTable(table, otherwise=(0, 1, 0, 0)))
        asked = Search(beam=2, nbest=2, prune=prune)
        (found,) = search(model, None, [Request(4)], asked, start=START, end=END)
        assert model.rows == rows
        assert len(found) == last


def test_unended_outputs_are_kept_behind_ended_ones() -> None:
    model = PrefixTable({(): (0, 0.1, 0.9, 0), (2,): (0, 0, 0.9, 0.1)}, otherwise=(0, 0, 1, 0))
    (found,) = search(model, None, [Request(3)], Search(beam=3, nbest=3), start=START, end=END)
    assert [(h.tokens, h.ended) for h in found] == [((END,), True), ((2, 2, 2), False), ((2, 3, 2), False)]
    assert found[0].score < found[1].score


def test_an_output_may_end_with_its_last_permitted_token() -> None:
    model = PrefixTable({(2, 2): (0, 1, 0, 0)}, otherwise=(0, 0, 1, 0))
    (found,) = search(model, None, [Request(3)], Search(), start=START, end=END)
    assert [(h.tokens, h.ended) for h in found] == [((2, 2, END), True)]


def test_equal_continuations_go_to_the_lower_slot_then_the_lower_token() -> None:
    model = PrefixTable({}, otherwise=(0, 0, 0.25, 0.25, 0.25, 0.25))
    (found,) = search(model, None, [Request(2)], Search(beam=3, nbest=3), start=START, end=END)
    assert [h.tokens for h in found] == [(2, 2), (2, 3), (2, 4)]


def test_a_vocabulary_smaller_than_the_beam() -> None:
    model = RandomTree(3, seed=1)
    (found,) = search(model, None, [Request(4)], Search(beam=50, nbest=50), start=START, end=END)
    assert len(found) == 31  # 1 + 2 + 4 + 8 + 16


def test_state_and_memory_are_left_alone_where_the_order_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[list[int]] = []

    def noting(tree: object, rows: torch.Tensor) -> object:
        copies.append(rows.tolist())
        return select(tree, rows)

    monkeypatch.setattr("transduce.search.batch_request.select", noting)
    model, source = PrefixTable({(2, 2): (0, 1, 0, 0)}, otherwise=(0, 0.1, 0.9, 0)), padded([[3], [4]])
    search(model, source, [Request(limit) for limit in [3, 3]], Search(beam=1), start=START, end=END)
    assert [rows for rows in copies if rows] == []
