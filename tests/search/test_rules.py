"""Minimum length, repetition, coverage and length rules against all outputs; groups against their definition."""

import math
from collections.abc import Sequence
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_steps import END, START, PrefixTable, RandomTree, TinyAttention, next_log_probabilities, outputs, padded
from torch import Tensor, nn
from toy_words import best_outputs, ended

from transduce.attention.capture import active_record
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.core.registry import resolve
from transduce.data.columns import Specs
from transduce.models.protocols import Steps, Tree
from transduce.search.beam_selection import allocate_slots
from transduce.search.coverage import LEAST
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search

few = settings(max_examples=15, deadline=None)
seeds = st.integers(0, 10**6)
rules = st.sampled_from(
    [{"length_rule": name, "alpha": alpha} for name in ("power", "gnmt", "none") for alpha in (0.6, 1.5)]
)


def repeats(tokens: Sequence[int], ngram: int) -> bool:
    seen = [tuple(tokens[place : place + ngram]) for place in range(len(tokens) - ngram + 1)]
    return len(seen) != len(set(seen))


@few
@given(seed=seeds, vocabulary=st.integers(3, 4), limit=st.integers(2, 5), rule=rules, nbest=st.integers(1, 5))
def test_a_full_beam_stops_when_the_best_are_found_under_every_length_rule(
    seed: int, vocabulary: int, limit: int, rule: dict[str, object], nbest: int
) -> None:
    """A bound too low would stop before; the oracle knows no bound."""
    model, source = RandomTree(vocabulary, seed, peaked=0.5), padded([[seed % 11, 4]])
    asked = Search.model_validate({**rule, "beam": 4000, "nbest": nbest})
    expected = best_outputs(model, source, vocabulary, limit, lambda tokens: True, asked.length)[:nbest]
    for method in ("beam", "exhaustive"):
        chosen = asked.model_copy(update={"method": method})
        (found,) = search(model, source, [Request(limit)], chosen, start=START, end=END, forbidden=[START])
        assert ended(found) == [tokens for _, tokens in expected]
        assert [h.score for h in found if h.ended] == pytest.approx([score for score, _ in expected])


@few
@given(
    seed=seeds,
    min_length=st.integers(0, 3),
    ngram=st.none() | st.integers(1, 3),
    rule=rules,
    prefixed=st.booleans(),
    never_first=st.sets(st.sampled_from([END, 4])),
)
def test_rules_leave_the_best_of_the_others(
    seed: int, min_length: int, ngram: int | None, rule: dict[str, object], prefixed: bool, never_first: set[int]
) -> None:
    vocabulary, limit, prefix = 5, 4, (3,) if prefixed else ()
    model, source = RandomTree(vocabulary, seed), padded([[seed % 11, 4]])
    asked = Search.model_validate({**rule, "beam": 2000, "nbest": 2000, "no_repeat_ngram": ngram})

    def allowed(tokens: tuple[int, ...]) -> bool:
        begins = tokens[: len(prefix)] == prefix
        first = (*tokens, END)[len(prefix)] if begins else END
        return (
            begins and len(tokens) >= min_length and first not in never_first and not (ngram and repeats(tokens, ngram))
        )

    expected = best_outputs(model, source, vocabulary, limit, allowed, asked.length)
    for method in ("beam", "exhaustive"):
        chosen = asked.model_copy(update={"method": method})
        (found,) = search(
            model,
            source,
            [Request(limit, prefix=prefix, min_length=min_length, never_first=[*never_first])],
            chosen,
            start=START,
            end=END,
            forbidden=[START],
        )
        assert ended(found) == [tokens for _, tokens in expected]


@few
@given(
    seed=seeds,
    method=st.sampled_from(["greedy", "beam", "sample"]),
    min_length=st.lists(st.integers(0, 6), min_size=3, max_size=3),
    ngram=st.integers(1, 3),
)
def test_every_method_keeps_the_rules_of_each_line(seed: int, method: str, min_length: list[int], ngram: int) -> None:
    model = TinyAttention(9, seed)
    asked = Search.model_validate({"method": method, "no_repeat_ngram": ngram})
    source, limits = padded([[3, 4, 5], [6], [7, 8]]), [7, 12, 9]
    requests = [Request(limit, min_length=fewest) for limit, fewest in zip(limits, min_length, strict=True)]
    found = search(model, source, requests, asked, start=START, end=END, forbidden=[START])
    for fewest, limit, (best, *_) in zip(min_length, limits, found, strict=True):
        words = best.tokens[:-1] if best.ended else best.tokens
        assert len(words) >= (fewest if best.ended else limit)
        assert not repeats(words, ngram)


def test_what_a_prefix_repeats_is_the_prefixs_own() -> None:
    asked = Search(beam=2, no_repeat_ngram=1)
    (found,) = search(
        RandomTree(5, 3), None, [Request(5, prefix=[3, 3])], asked, start=START, end=END, forbidden=[START]
    )
    assert found[0].tokens[:2] == (3, 3)
    assert 3 not in found[0].tokens[2:]


def test_a_minimum_over_the_limit_is_refused() -> None:
    with pytest.raises(InputError, match=r"line 0 must have at least 5 tokens before its end, but its limit is 5"):
        search(RandomTree(5, 3), None, [Request(5, min_length=5)], Search(), start=START, end=END)


# ---- coverage --------------------------------------------------------------------------------------------------------


class Attending(nn.Module):
    """TinyAttention, whose attention can be recorded; beside it one over its own output, and none that fits another."""

    def __init__(self, vocabulary: int, seed: int, hard: bool = False) -> None:
        super().__init__()
        self.inner, self.over_source, self.over_itself = TinyAttention(vocabulary, seed), nn.Identity(), nn.Identity()
        self.over_source.role = "cross"
        self.hard = hard

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        memory, state = self.inner.start(source, rows)
        return memory, (state, torch.zeros(rows, 0))

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        ((hidden_ND, _), said_NT), (memory_NSD, mask_NS) = state, memory
        said_NT = torch.cat([said_NT, token[:, None].float()], dim=1)
        score_NS = torch.einsum("nd,nsd->ns", hidden_ND, memory_NSD).masked_fill(~mask_NS, -torch.inf)
        alpha_NS = (score_NS * (1e9 if self.hard else 1)).softmax(dim=1)
        record = active_record()
        if record is not None:
            record.take(self.over_itself, said_NT.softmax(1)[:, None, None])
            record.take(self.over_source, torch.stack([alpha_NS, alpha_NS.roll(0, 1)], 1)[:, :, None])
        values, inner = self.inner.step(token, memory, state[0])
        return values, (inner, said_NT)


def coverage_penalty(model: Attending, source: list[int], tokens: Sequence[int], beta: float) -> float:
    """By equation 14, one step after the other, one source position after the other."""
    memory, state = model.start(padded([source]), 1)
    read = [0.0] * len(source)
    for token in (START, *tokens[:-1]):
        hidden_D = state[0][0][0]
        scores = [float(hidden_D @ memory[0][0, place]) * (1e9 if model.hard else 1) for place in range(len(source))]
        each = [math.exp(score - max(scores)) for score in scores]
        read = [so_far + one / sum(each) for so_far, one in zip(read, each, strict=True)]
        _, state = model.step(torch.tensor([token]), memory, state)
    return beta * sum(math.log(max(min(so_far, 1.0), LEAST)) for so_far in read)


@settings(max_examples=5, deadline=None)
@given(seed=seeds, beta=st.sampled_from([0.2, 3.0]), rule=rules, hard=st.booleans(), length=st.integers(1, 4))
def test_coverage_ranks_by_equation_14(
    seed: int, beta: float, rule: dict[str, object], hard: bool, length: int
) -> None:
    vocabulary, limit, sources = 4, 4, [[3, 2, 3, 1][:length], [2, 2, 3]]
    model = Attending(vocabulary, seed, hard)
    asked = Search.model_validate({**rule, "coverage": beta, "beam": 200, "nbest": 40})
    for method in ("beam", "exhaustive"):
        chosen = asked.model_copy(update={"method": method})
        found = search(model, padded(sources), [Request(limit)] * 2, chosen, start=START, end=END, forbidden=[START])
        for source, hypotheses in zip(sources, found, strict=True):
            expected = best_outputs(
                model,
                padded([source]),
                vocabulary,
                limit,
                lambda tokens: True,
                asked.length,
                lambda tokens, source=source: coverage_penalty(model, source, tokens, beta),  # type: ignore[misc]
            )
            scores = [h.score for h in hypotheses if h.ended]
            assert scores == pytest.approx([score for score, _ in expected][: len(scores)], abs=1e-4)
            assert len(scores) == min(40, len(expected))


@few
@given(seed=seeds, beam=st.integers(1, 4), random=st.randoms(use_true_random=False))
def test_coverage_follows_the_beam_and_knows_no_neighbours(seed: int, beam: int, random: Random) -> None:
    model, sources = Attending(7, seed), [[3, 2, 3, 6, 4], [2], [5, 5, 3], [6, 2]]
    asked = Search(beam=beam, nbest=beam, coverage=0.7, alpha=1)

    def of(order: list[int]) -> list[list[tuple[float, tuple[int, ...]]]]:
        picked = padded([sources[line] for line in order])
        found = search(model, picked, [Request(6)] * len(order), asked, start=START, end=END)
        return [[(h.score, h.tokens) for h in hypotheses] for hypotheses in found]

    order = random.sample(range(4), 4)
    for line, hypotheses in zip(order, of(order), strict=True):
        assert [tokens for _, tokens in of([line])[0]] == [tokens for _, tokens in hypotheses]
        for score, tokens in hypotheses:
            total = math.fsum(
                next_log_probabilities(model, padded([sources[line]]), tokens[:t])[token]
                for t, token in enumerate(tokens)
            )
            expected = total / len(tokens) + coverage_penalty(model, sources[line], tokens, 0.7)
            assert score == pytest.approx(expected, abs=1e-4)


def test_coverage_without_attention_over_a_source_is_refused() -> None:
    class Silent(nn.Module):
        start, step = TinyAttention.start, TinyAttention.step

        def __init__(self) -> None:
            super().__init__()
            vars(self).update(vars(TinyAttention(5, 1)))

    def of(model: Steps, source: Padded | None) -> None:
        search(model, source, [Request(3)], Search(coverage=0.2), start=START, end=END)

    with pytest.raises(InputError, match=r"records none over its 2 positions \(recorded: nothing\)"):
        of(Silent(), padded([[3, 4]]))
    with pytest.raises(InputError, match="this model reads none"):
        of(Silent(), None)
    with pytest.raises(InputError, match="needs a torch module"):
        of(TinyAttention(5, 1), padded([[3, 4]]))


SIZES: dict[str, dict[str, object]] = {
    "transformer": {"d_model": 8, "heads": 2, "feed_forward": 12, "encoder_layers": 1, "decoder_layers": 2},
    "rnn": {"d_model": 8, "hidden": 8, "cell": "lstmn"},  # which looks at its own past as well, as far as it is long
    "convolution": {"d_model": 8, "encoder_layers": 1, "decoder_layers": 2},
}


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("beam", [1, 3])
def test_every_architecture_that_records_its_reading_has_coverage(kind: str, beam: int) -> None:
    torch.manual_seed(3)
    made = resolve("models", kind)
    model = made(made.Config.model_validate(SIZES[kind]), Specs.of_tokens(9, 9)).eval()
    sources, asked = [[3, 4, 5, 6, 2], [7, 2], [2]], Search(beam=beam, nbest=beam, coverage=0.5)
    together = search(model, padded(sources), [Request(6)] * 3, asked, start=1, end=2)
    for source, hypotheses in zip(sources, together, strict=True):
        (alone,) = search(model, padded([source]), [Request(6)], asked, start=1, end=2)
        assert [h.tokens for h in alone] == [h.tokens for h in hypotheses]
        assert [h.score for h in alone] == pytest.approx([h.score for h in hypotheses], abs=1e-4)
        assert all(h.score < asked.length.normalised(h.log_probability, len(h.tokens)) + 1e-9 for h in alone)


# ---- groups and banks ------------------------------------------------------------------------------------------------


def slow_groups(
    model: Steps, source: Padded, beam: int, groups: int, strength: float, limit: int
) -> set[tuple[int, ...]]:
    """Diverse beam search by its definition, with lists: all that it finds."""
    width = beam // groups
    live = [[(0.0, ())] for _ in range(groups)]  # type: list[list[tuple[float, tuple[int, ...]]]]
    done: list[list[tuple[float, tuple[int, ...]]]] = [[] for _ in range(groups)]
    for _ in range(limit):
        said: list[int] = []
        for group in range(groups):
            grown = [
                (total + value - strength * said.count(token), total + value, (*tokens, token))
                for total, tokens in live[group]
                for token, value in enumerate(next_log_probabilities(model, source, tokens))
                if value > -math.inf
            ]
            taken = sorted(grown, key=lambda each: -each[0])[: width - len(done[group])]
            done[group] += [(total, tokens) for _, total, tokens in taken if tokens[-1] == END]
            live[group] = [(total, tokens) for _, total, tokens in taken if tokens[-1] != END]
            said += [tokens[-1] for *_, tokens in taken]
    return {tokens for group in done + live for _, tokens in group}


@few
@given(
    seed=seeds,
    groups=st.sampled_from([1, 2, 3]),
    width=st.integers(1, 3),
    strength=st.sampled_from([0.0, 0.5, 2.0, 50.0]),
    limit=st.integers(1, 5),
)
def test_groups_are_diverse_beam_search_by_its_definition(
    seed: int, groups: int, width: int, strength: float, limit: int
) -> None:
    model, source, beam = RandomTree(6, seed), padded([[3, 5, seed % 7]]), groups * width
    asked = {"beam": beam, "nbest": beam, "groups": groups} | ({"diversity": strength} if groups > 1 else {})
    (found,) = search(model, source, [Request(limit)], Search.model_validate(asked), start=START, end=END)
    assert {h.tokens for h in found} == slow_groups(model, source, beam, groups, strength, limit)
    together = search(
        model,
        padded([[4], [3, 5, seed % 7]]),
        [Request(limit) for limit in [5, limit]],
        Search.model_validate(asked),
        start=START,
        end=END,
    )
    assert together[1] == found


def test_a_token_counts_against_a_later_group_once_for_each_that_said_it() -> None:
    # log 0.5 - 0.3 is above log 0.3, and log 0.5 - 0.6 below it: the third group is the first to turn away.
    model = PrefixTable({(): (0, 0, 0.5, 0.3, 0.2)}, otherwise=(0, 1, 0, 0, 0))
    asked = Search(beam=3, nbest=3, groups=3, diversity=0.3)
    (found,) = search(model, None, [Request(2)], asked, start=START, end=END)
    assert sorted(h.tokens for h in found) == [(2, END), (2, END), (3, END)]


def test_each_group_is_pruned() -> None:
    model = PrefixTable({(): (0, 0, 0.6, 0.4)}, otherwise=(0, 1, 0, 0))  # log 0.6 - log 0.4 = 0.405
    for prune, expected in ((0.4, [(2, END)] * 2), (0.41, [(2, END), (2, END), (3, END), (3, END)])):
        asked = Search(beam=4, nbest=4, groups=2, diversity=0.0, prune=prune)
        (found,) = search(model, None, [Request(2)], asked, start=START, end=END)
        assert sorted(h.tokens for h in found) == expected


def test_a_strong_penalty_makes_every_group_begin_differently() -> None:
    asked = Search(beam=4, nbest=4, groups=4, diversity=100.0)
    (found,) = search(RandomTree(9, 2), None, [Request(6)], asked, start=START, end=END, forbidden=[START])
    assert len({h.tokens[0] for h in found}) == 4


@given(banks=st.lists(st.integers(-3, 0), min_size=1, max_size=9), impossible=st.integers(0, 4))
def test_slots_are_dealt_out_among_banks(banks: list[int], impossible: int) -> None:
    turns = [banks[:place].count(bank) for place, bank in enumerate(banks)]
    expected = sorted(range(len(banks)), key=lambda place: (turns[place], -banks[place]))
    possible_BX = torch.tensor([[True] * len(banks) + [False] * impossible])
    order = allocate_slots(torch.tensor([banks + [0] * impossible]), possible_BX)[0].tolist()
    assert order[: len(banks)] == expected
    assert sorted(order[len(banks) :]) == list(range(len(banks), len(banks) + impossible))


# ---- lattices --------------------------------------------------------------------------------------------------------


@few
@given(seed=seeds, beam=st.sampled_from([1, 2, 4]), groups=st.sampled_from([1, 2]), limit=st.integers(1, 5))
def test_a_lattice_holds_all_that_was_weighed(seed: int, beam: int, groups: int, limit: int) -> None:
    groups = min(groups, beam)
    asked, source = Search(beam=beam, nbest=beam, groups=groups), padded([[3, 4], [5], [2, 2, 6]])
    model = RandomTree(6, seed)
    lattices: list = []
    requests = [Request(each) for each in (limit, 1, limit + 1)]
    with_it = search(model, source, requests, asked, start=START, end=END, lattices=lattices)
    assert with_it == search(model, source, requests, asked, start=START, end=END)
    for lattice, hypotheses in zip(lattices, with_it, strict=True):
        finished = [
            (tuple(lattice.path(time, place)), each.total)
            for time, step in enumerate(lattice.steps)
            for place, each in enumerate(step)
            if each.finished
        ]
        assert sorted(finished) == sorted((h.tokens, pytest.approx(h.log_probability)) for h in hypotheses)
        for time, step in enumerate(lattice.steps):
            assert sum(each.kept for each in step) <= beam
            for each in step:
                if time == 0:
                    assert each.parent == -1
                    continue
                parent = lattice.steps[time - 1][each.parent]
                assert parent.kept
                assert not parent.finished
                assert each.total == pytest.approx(parent.total + each.log_probability)
        assert all(set(each) >= {"token", "parent", "kept"} for step in lattice.to_dict()["steps"] for each in step)


def test_only_a_beam_has_a_lattice() -> None:
    with pytest.raises(InputError, match='method "greedy" has none'):
        search(RandomTree(5, 1), None, [Request(3)], Search(method="greedy"), start=START, end=END, lattices=[])


def test_the_outputs_of_the_oracle_are_all() -> None:
    assert len(list(outputs(4, 3))) == 1 + 3 + 9 + 27
