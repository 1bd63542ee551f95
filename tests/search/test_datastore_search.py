"""Search with a datastore, beside loops written from the paper's equations with brute-force distances in NumPy."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from tiny_steps import END, START, TinyAttention, next_log_probabilities, padded, slow_beam
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.models.protocols import Tree
from transduce.search.datastore import Datastore, KnnSettings, ModelIdentity, PackedTexts
from transduce.search.decoder_states import target_steps
from transduce.search.dispatch import search
from transduce.search.knn import Memory
from transduce.search.request import Request
from transduce.search.settings import Search

VOCABULARY = 9
SOURCES = [[3, 4, 5, 6], [7, 3], [8, 8, 2, 5, 4], [6]]
PAIRS = [([3, 4, 5], [4, 6, 4, END]), ([7, 3], [5, 5, END]), ([6, 6, 2], [2, 3, 4, 5, END]), ([7, 3], [5, 8, END])]
SETTINGS = [
    KnnSettings(k=4, weight=0.6, temperature=0.7),
    KnnSettings(k=1, weight=0.9, temperature=3.0),
    KnnSettings(k=12, weight=0.8, temperature=1.5, distance=2.5),
]


class TinyWithHidden(TinyAttention):
    """The same cell, which also gives its hidden state."""

    def step_hidden(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tensor, Tree]:
        log_probabilities_NV, state = super().step(token, memory, state)
        return state[0], log_probabilities_NV, state

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        return self.step_hidden(token, memory, state)[1:]


def store_of(model: TinyWithHidden) -> Datastore:
    """States one after the other, each target alone."""
    keys, values, pairs, positions = [], [], [], []
    for pair, (source, target) in enumerate(PAIRS):
        memory, state = model.start(padded([source]), 1)
        for position, (before, token) in enumerate(zip([START, *target], target, strict=False)):
            hidden_1D, _, state = model.step_hidden(torch.tensor([before]), memory, state)
            keys.append(hidden_1D[0].half())
            for listed, each in ((values, token), (pairs, pair), (positions, position)):
                listed.append(each)
    numbers = (torch.tensor(each, dtype=torch.int32) for each in (values, pairs, positions))
    texts = PackedTexts.of([f"source {pair}" for pair in range(len(PAIRS))])
    return Datastore(torch.stack(keys), *numbers, texts, texts, torch.arange(4), ModelIdentity("tiny", "0"))


class SlowMixture:
    """p = lambda p_knn + (1 - lambda) p_model of one hypothesis at a time, in plain Python."""

    def __init__(self, model: TinyWithHidden, store: Datastore, settings: KnnSettings) -> None:
        self.model, self.settings = model, settings
        self.keys, self.values = store.keys.numpy().astype(np.float64), store.values.tolist()

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        return self.model.start(source, rows)

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        assert len(token) == 1
        hidden_1D, log_probabilities_1V, state = self.model.step_hidden(token, memory, state)
        query = hidden_1D[0].float().numpy().astype(np.float64)
        distances = [float(((key - query) ** 2).sum()) for key in self.keys]
        near = sorted(range(len(distances)), key=lambda entry: (distances[entry], entry))[: self.settings.k]
        weights = [math.exp(-distances[entry] / self.settings.temperature) for entry in near]
        share = self.settings.weight
        if self.settings.distance is not None:
            share *= max(0.0, 1 - distances[near[0]] / self.settings.distance)
        mixed = [(1 - share) * math.exp(each) for each in log_probabilities_1V[0].tolist()]
        for entry, weight in zip(near, weights, strict=True):
            mixed[self.values[entry]] += share * weight / sum(weights)
        return torch.tensor([mixed], dtype=torch.float64).log(), state


def found(model: Any, memory: Memory | None, sources: list[list[int]], settings: Search) -> list[Any]:
    given = {"start": START, "end": END, "datastore": memory}
    return search(model, padded(sources), [Request(8)] * len(sources), settings, **given)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("beam", [1, 4])
def test_outputs_are_those_of_a_slow_loop(settings: KnnSettings, beam: int) -> None:
    model = TinyWithHidden(VOCABULARY, seed=4)
    store = store_of(model)
    how = Search(method="beam", beam=beam, nbest=beam, alpha=0.5)
    slow = SlowMixture(model, store, settings)
    for source, several in zip(
        SOURCES, found(model, Memory(store, torch.device("cpu"), settings), SOURCES, how), strict=True
    ):
        wanted = slow_beam(slow, padded([source]), beam, 8, 0.5)
        assert [each.tokens for each in several] == wanted[: len(several)]
        for each in several:
            before = [each.tokens[:place] for place in range(len(each.tokens))]
            steps = [next_log_probabilities(slow, padded([source]), prefix) for prefix in before]
            alone = [step[token] for step, token in zip(steps, each.tokens, strict=True)]
            assert each.token_log_probabilities == pytest.approx(alone, abs=1e-6)


def test_the_memory_changes_outputs_and_without_weight_nothing() -> None:
    model = TinyWithHidden(VOCABULARY, seed=4)
    store, how = store_of(model), Search(method="beam", beam=3)
    plain = found(model, None, SOURCES, how)
    idle = found(model, Memory(store, torch.device("cpu"), KnnSettings(weight=0)), SOURCES, how)
    strong = found(model, Memory(store, torch.device("cpu"), KnnSettings(weight=0.95, k=2)), SOURCES, how)
    assert idle == plain
    assert [each[0].tokens for each in strong] != [each[0].tokens for each in plain]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_alone_and_in_any_batch_the_same(settings: KnnSettings) -> None:
    model = TinyWithHidden(VOCABULARY, seed=5)
    memory = Memory(store_of(model), torch.device("cpu"), settings)
    how = Search(method="beam", beam=4, nbest=2)
    together = found(model, memory, SOURCES, how)
    for other in (
        [found(model, memory, [each], how)[0] for each in SOURCES],
        found(model, memory, SOURCES[::-1], how)[::-1],
    ):
        for several, same in zip(together, other, strict=True):
            assert [each.tokens for each in several] == [each.tokens for each in same]
            for one, two in zip(several, same, strict=True):
                assert one.log_probability == pytest.approx(two.log_probability, abs=1e-6)


def test_states_in_a_batch_are_those_of_each_target_alone() -> None:
    model = TinyWithHidden(VOCABULARY, seed=4)
    store = store_of(model)
    seen = torch.zeros(len(store), dtype=torch.bool)
    for step in target_steps(model, padded([each for each, _ in PAIRS]), [target for _, target in PAIRS], START):
        for row, hidden_D, token in zip(step.rows.tolist(), step.hidden, step.tokens.tolist(), strict=True):
            [entry] = ((store.pairs == row) & (store.positions == step.time)).nonzero()[:, 0].tolist()
            seen[entry] = True
            assert token == int(store.values[entry])
            torch.testing.assert_close(hidden_D.half(), store.keys[entry], rtol=1e-3, atol=1e-3)
    assert bool(seen.all())


def test_what_has_no_datastore_is_told_by_name() -> None:
    memory = Memory(store_of(TinyWithHidden(VOCABULARY, seed=4)), torch.device("cpu"))
    with pytest.raises(InputError, match="TinyAttention does not give the states"):
        found(TinyAttention(VOCABULARY, seed=4), memory, SOURCES, Search())
    model = TinyWithHidden(VOCABULARY, seed=4)
    model.step = lambda token, memory, state: TinyAttention.step(model, token, memory, state)  # type: ignore[method-assign]
    with pytest.raises(InputError, match="does not give the states"):  # its own step may say something else
        found(model, memory, SOURCES, Search())
    with pytest.raises(InputError, match=r"does not go with search\.coverage"):
        found(TinyWithHidden(VOCABULARY, seed=4), memory, SOURCES, Search(coverage=0.2))
    with pytest.raises(InputError, match="tokens that are not in the model's vocabulary"):
        found(TinyWithHidden(6, seed=4), memory, [[3, 4]], Search())
