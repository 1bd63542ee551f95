"""What a source gets depends on that source alone: not on the batch, its padding or its order."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_steps import END, START, RandomTree, TinyAttention, padded

from forced_decoding import forced
from transduce.models.protocols import Steps
from transduce.search.dispatch import search
from transduce.search.hypothesis import Hypothesis
from transduce.search.request import Request
from transduce.search.settings import Search

METHODS = [
    Search(method="greedy"),
    Search(method="beam", beam=1),
    Search(method="beam", beam=4, nbest=3),
    Search(method="beam", beam=3, alpha=0),
    Search(method="beam", beam=4, nbest=2, prune=1.5),
    Search(method="sample", nbest=2, temperature=1.3, seed=5),
    Search(method="sample", top_k=3, top_p=0.8),
]
VOCABULARY = 9
tokens = st.integers(2, VOCABULARY - 1)
# source, limit, prefix
lines = st.tuples(st.lists(tokens, min_size=1, max_size=6), st.integers(3, 9), st.lists(tokens, max_size=3))
corpora = st.lists(lines, min_size=1, max_size=6)


def searched(
    model: Steps, corpus: list[tuple[list[int], int, list[int]]], order: list[int], asked: Search
) -> list[list[Hypothesis]]:
    source = padded([corpus[line][0] for line in order])
    requests = [Request(corpus[line][1], prefix=corpus[line][2], line=line) for line in order]
    return search(model, source, requests, asked, start=START, end=END, forbidden=[START])


def assert_same(some: list[Hypothesis], others: list[Hypothesis]) -> None:
    assert [(h.tokens, h.ended) for h in some] == [(h.tokens, h.ended) for h in others]
    for one, other in zip(some, others, strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-6)
        assert one.token_log_probabilities == pytest.approx(other.token_log_probabilities, abs=1e-6)


@pytest.mark.parametrize("asked", METHODS, ids=str)
@settings(max_examples=5, deadline=None)
@given(corpus=corpora, seed=st.integers(0, 10**6), random=st.randoms(use_true_random=False))
def test_alone_batched_and_shuffled(
    asked: Search, corpus: list[tuple[list[int], int, list[int]]], seed: int, random: Random
) -> None:
    order = list(range(len(corpus)))
    shuffled = random.sample(order, len(order))
    for model in (RandomTree(VOCABULARY, seed), TinyAttention(VOCABULARY, seed)):
        batched = searched(model, corpus, order, asked)
        again = dict(zip(shuffled, searched(model, corpus, shuffled, asked), strict=True))
        for line in order:
            assert_same(searched(model, corpus, [line], asked)[0], batched[line])
            assert_same(again[line], batched[line])


@pytest.mark.parametrize("asked", [*METHODS, Search(method="exhaustive", nbest=4)], ids=str)
@settings(max_examples=6, deadline=None)
@given(corpus=corpora, seed=st.integers(0, 10**6))
def test_prefixes_are_respected_and_probabilities_are_the_models(
    asked: Search, corpus: list[tuple[list[int], int, list[int]]], seed: int
) -> None:
    if asked.method == "exhaustive":
        corpus = [(source, len(prefix) + 2, prefix) for source, _, prefix in corpus]
    model = TinyAttention(VOCABULARY, seed)
    found = searched(model, corpus, list(range(len(corpus))), asked)
    for (source, limit, prefix), hypotheses in zip(corpus, found, strict=True):
        targets = [h.tokens for h in hypotheses]
        scored = forced(model, padded([source] * len(targets)), targets, start=START, end=END, rule=asked.length)
        assert_same(hypotheses, scored)
        for hypothesis in hypotheses:
            assert hypothesis.tokens[: len(prefix)] == tuple(prefix)
            assert START not in hypothesis.tokens[len(prefix) :]
            assert len(hypothesis.tokens) <= limit
            assert hypothesis.ended == (hypothesis.tokens[-1] == END)
            assert hypothesis.ended or len(hypothesis.tokens) == limit
        assert hypotheses == sorted(hypotheses, key=lambda h: (not h.ended, -h.score))
