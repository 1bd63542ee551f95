"""Choose k, weight, temperature and distance of a datastore (`transduce.search.knn`) on validation data.

Every setting of a grid is tried on what model and memory say of each token, which is computed once:

- the likelihood of references in the memory's domain should be as high as possible;
- of other sentences, so many outputs as are wanted must stay what they are without the memory. Along an output of
  greedy search, it stays if at each of its tokens the memory does not make another token likelier.

Shapes: Q places of tokens, K nearest entries, V vocabulary.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.search.datastore import KnnSettings
from transduce.search.decoder_states import TargetStep
from transduce.search.knn import Memory, Recalled, recalled, share_of
from transduce.search.nearest import Nearest

COUNTS = (2, 4, 8, 16)  # of entries
WEIGHTS = (0.3, 0.5, 0.7, 0.8, 0.9)
SOFTNESS = (0.1, 0.3, 1.0, 3.0, 10.0)  # temperatures, in units of the median distance of the nearest entry
QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99)  # of the distances of the nearest entry: how far the memory counts


class KnnExamination(NamedTuple):
    """What model and memory say at each place of some targets.

    sentence: (Q,) int64, which target. gold: (Q,) int64, its token; best: (Q,) int64, the token that the model finds
    likeliest. gold_log, best_log: (Q,) float64, the model's log-probabilities of these. distance: (Q, K) float64, and
    value: (Q, K) int64, of the nearest entries. value_log: (Q, K) float64, the model's log-probabilities of these.
    """

    sentence: Tensor
    gold: Tensor
    best: Tensor
    gold_log: Tensor
    best_log: Tensor
    distance: Tensor
    value: Tensor
    value_log: Tensor

    @classmethod
    def of_step(
        cls,
        memory: Memory,
        step: TargetStep,
        sentence_Q: Tensor,
        pair_N: Tensor,
        left_out_Q: Tensor | None = None,
        spare: int = 0,
    ) -> Self:
        """What is said at one step.

        Args:
            sentence_Q: which targets.
            pair_N: the pair of each entry.
            left_out_Q: the pair whose entries do not count, by target; None = all count.
            spare: so many of these are expected among the nearest entries.
        """
        count = max(COUNTS)
        found = memory.nearest(step.hidden, count + (0 if left_out_Q is None else spare))
        if left_out_Q is not None:
            found = _without(found, pair_N[found.entry] == left_out_Q.to(pair_N.device)[:, None], count)
        log_QV, value_QK = step.log_probabilities, memory.values_N[found.entry]
        gold_Q = step.tokens.to(log_QV.device)
        best = log_QV.max(1)
        gold_log_Q = log_QV.gather(1, gold_Q[:, None])[:, 0]
        logs = (each.double().cpu() for each in (gold_log_Q, best.values, found.distance))
        value_log_QK = log_QV.gather(1, value_QK).double().cpu()
        parts = (sentence_Q, gold_Q.cpu(), best.indices.cpu(), *logs, value_QK.cpu(), value_log_QK)
        return cls._make(parts)

    def read(self, settings: KnnSettings) -> Recalled:
        """What the nearest entries say with these settings; of entries, their places among the nearest."""
        place_QK = torch.arange(self.value.shape[1]).expand_as(self.value)
        return recalled(Nearest(self.distance, place_QK), self.value, settings)

    def likelihood(self, read: Recalled, share_Q: Tensor) -> float:
        """The mean log-probability of the targets' tokens, where share is lambda."""
        known_Q = (read.weight * (read.value == self.gold[:, None])).sum(1)
        both_Q = torch.logaddexp(self.gold_log + torch.log1p(-share_Q), (share_Q * known_Q).log())
        return float(both_Q.mean())

    def changed(self, read: Recalled, chance_QK: Tensor, share_Q: Tensor) -> float:
        """The share of targets in which another token than `best` is likeliest at some place.

        Args:
            chance_QK: p_knn of each entry's token.
        """
        share_Q1, others_QK = share_Q[:, None], read.value != self.best[:, None]
        other_QK = (1 - share_Q1) * self.value_log[:, : read.value.shape[1]].exp() + share_Q1 * chance_QK
        known_Q = (read.weight * ~others_QK).sum(1)
        best_Q = (1 - share_Q) * self.best_log.exp() + share_Q * known_Q
        changed_Q = other_QK.masked_fill(~others_QK, 0.0).amax(1) > best_Q
        return len(torch.unique(self.sentence[changed_Q])) / self.sentences

    @property
    def sentences(self) -> int:
        """How many targets there are."""
        return len(torch.unique(self.sentence))

    @property
    def loss(self) -> float:
        """The model's own mean negative log-probability of the targets' tokens."""
        return -float(self.gold_log.mean())


class Choice(NamedTuple):
    """The settings that were chosen, and what they give.

    tokens: of references that they were chosen on. before, after: the perplexity of these without and with the memory.
    sentences: so many other outputs were looked at. kept: the share that stays as it is; None = none were looked at.
    """

    settings: KnnSettings
    tokens: int
    before: float
    after: float
    sentences: int
    kept: float | None

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**self._asdict(), "settings": self.settings.model_dump()}


def choose(references: KnnExamination, others: KnnExamination | None, kept: float, given: Mapping[str, Any]) -> Choice:
    """The settings under which `references` are likeliest, and so many of the `others` stay as they are.

    Where no setting keeps so many, the one is taken that keeps most.

    Args:
        kept: the share of the others that is to stay.
        given: settings that are not chosen.

    Raises:
        InputError: a given setting cannot be.
    """
    best: tuple[tuple[float, float], KnnSettings, float] | None = None
    for tried in _grid(references, given):
        read = references.read(tried[0])
        stays_with = _keeper(others, tried[0])
        for settings in tried:
            likelihood = references.likelihood(read, share_of(references.distance[:, 0], settings))
            if best is not None and (0.0, likelihood) <= best[0]:
                continue  # however many outputs stay, it is no better
            stays = stays_with(settings)
            rank = (min(stays - kept, 0.0), likelihood)
            if best is None or rank > best[0]:
                best = rank, settings, stays
    assert best is not None
    (_, likelihood), settings, stays = best
    before, after = (math.exp(min(nats, 700.0)) for nats in (references.loss, -likelihood))
    sentences = others.sentences if others else 0
    return Choice(settings, len(references.gold), before, after, sentences, stays if others else None)


def _keeper(others: KnnExamination | None, first: KnnSettings) -> Callable[[KnnSettings], float]:
    """What tells the share of outputs that stay, with settings of one k and one temperature."""
    if others is None:
        return lambda settings: 1.0
    read = others.read(first)
    chance_QK = read.chance
    return lambda settings: 1 - others.changed(read, chance_QK, share_of(others.distance[:, 0], settings))


def _grid(said: KnnExamination, given: Mapping[str, Any]) -> Iterator[list[KnnSettings]]:
    """All settings, those together that differ in weight and distance alone."""
    nearest_Q = said.distance[:, 0]
    nearest_Q = nearest_Q[nearest_Q.isfinite()]
    if not len(nearest_Q):
        raise InputError("datastore: the memory is too small to choose how it is used: give validation pairs.")
    middle = max(float(nearest_Q.median()), 1e-6)
    reaches = [2 * float(nearest_Q.quantile(each)) for each in QUANTILES]
    counts = _only(given, "k", COUNTS)
    softness = _only(given, "temperature", [_short(each * middle) for each in SOFTNESS])
    weights = _only(given, "weight", WEIGHTS)
    distances = _only(given, "distance", [*(_short(each) for each in reaches if each > 0), None])
    if unknown := given.keys() - KnnSettings.model_fields.keys():
        raise InputError(
            f"knn: there is no {', '.join(sorted(unknown))}; known: {', '.join(KnnSettings.model_fields)}."
        )
    for k, temperature in product(counts, softness):
        yield [
            KnnSettings(k=k, temperature=temperature, weight=weight, distance=distance)
            for weight, distance in product(weights, distances)
        ]


def _only(given: Mapping[str, Any], key: str, values: Any) -> Any:
    return [given[key]] if key in given else values


def _short(number: float) -> float:
    """With three digits, as people read and write it."""
    return float(f"{number:.3g}")


def _without(found: Nearest, left_out_QK: Tensor, count: int) -> Nearest:
    """The first `count` of those that are not left out; where there are fewer, the rest are infinitely far."""
    order_QK = left_out_QK.to(torch.int8).sort(dim=1, stable=True).indices[:, :count]
    distance_QK = found.distance.masked_fill(left_out_QK, torch.inf)
    return Nearest(distance_QK.gather(1, order_QK), found.entry.gather(1, order_QK))
