"""Measure how a model's time grows with the length of its sequences.

A model of the recipe's sizes, with a vocabulary so small that its embedding and output cost nothing, reads one random
source of n tokens and writes one target of n tokens, forward and backward. Of speech it reads n frames, and writes a
token every 100 ms. A model that points into a text reads n tokens of it and a short question. Of graphs it reads a ring
of n nodes, each of which reads itself and the next ones; of trees a balanced tree of n words, in which each phrase has
two parts; of stories one of n tokens in short sentences, all of which its memory holds.

The exponent p of t = c n^p is fitted by least squares on logarithms, of the longer half of the lengths: on short ones,
starting each operation takes longer than doing it.

Operations are counted too (see `transduce.compare.operations`), which is free of the machine's noise.
"""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil
import torch
from torch import Tensor, nn

from transduce.compare.operations import count_operations
from transduce.core.padded import Padded
from transduce.core.registry import resolve
from transduce.data.columns import Column, ColumnSpec, Specs
from transduce.data.columns.protocols import column_class, random_tokens
from transduce.models.protocols import (
    Aligns,
    Classifies,
    Embeds,
    Fills,
    HoldsParts,
    Points,
    PredictsMasked,
    Processes,
    ScoresSpans,
)
from transduce.recipe.recipe import Recipe
from transduce.runtime.environment import peak_memory_bytes
from transduce.runtime.settings import random_numbers
from transduce.tasks.base import task_class

VOCABULARY = 16  # and characters, and features of a frame
SHORT = 16  # tokens of a pass that nobody measures
REPEATS, ENOUGH_SECONDS = 5, 0.5  # a length is timed so often at least, and so long


@random_numbers()
def measure_growth(recipe: Recipe, lengths: Sequence[int]) -> dict[str, Any]:
    """Seconds and counted operations of a forward and backward pass at each length, a layer, with their exponents."""
    reads, model = _small(recipe, max(lengths))
    layers = layer_count(recipe)
    seconds, operations = [], []
    for length in lengths:
        step = _pass(model, length, reads)
        seconds.append(_timed(step) / layers)
        operations.append(count_operations(step) / layers)
    longer = min(len(lengths) // 2, len(lengths) - 2)
    return {
        "lengths": list(lengths),
        "unit": (reads or Column).length_unit,
        "layers": layers,
        "seconds_a_layer": seconds,
        "operations_a_layer": operations,
        "fitted_from": lengths[longer],
        "exponent": fitted_exponent(lengths[longer:], seconds[longer:]),
        "exponent_of_operations": fitted_exponent(lengths[longer:], operations[longer:]),
    }


@random_numbers()
def measure_once(recipe: Recipe, length: int) -> dict[str, float]:
    """Seconds of a forward and backward pass at one length, and the bytes that it needs besides the model.

    A process can tell its peak once, so each length takes a process of its own.
    """
    reads, model = _small(recipe, length)
    _pass(model, SHORT, reads)()
    step = _pass(model, length, reads)
    before = psutil.Process().memory_info().rss
    start = time.perf_counter()
    step()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "bytes": max(0, peak_memory_bytes() - before)}


def _small(recipe: Recipe, longest: int) -> tuple[type[Column] | None, nn.Module]:
    """The kind of the source column, if there is one, and the recipe's model with a small vocabulary, to be trained.

    longest: how many sentences a story may have.
    """
    kind: str = recipe.model.kind  # type: ignore[attr-defined]
    torch.manual_seed(0)
    kinds = task_class(recipe).kinds
    source = ColumnSpec(kinds["source"], VOCABULARY, VOCABULARY) if "source" in kinds else None
    config: Any = recipe.model
    if "layer_dropout" in type(config).model_fields:  # a layer that chance leaves out takes no time
        config = config.model_copy(update={"layer_dropout": 0.0})
    if isinstance(config, HoldsParts):
        config = config.holding(longest)
    target = ColumnSpec(kinds["target"], VOCABULARY, words=tuple((each,) for each in range(VOCABULARY)), tags=1)
    model: nn.Module = resolve("models", kind)(config, Specs(source, target))
    return source and column_class(source.kind), model.train()


def layer_count(recipe: Recipe) -> int:
    """Layers of all parts together: the sum of the keys `layers`, `..._layers` and `blocks` of [model]."""
    table = recipe.model.model_dump()
    counts = [value for key, value in table.items() if key in ("layers", "blocks") or key.endswith("_layers")]
    return max(1, sum(value for value in counts if isinstance(value, int)))


def fitted_exponent(lengths: Sequence[int], values: Sequence[float]) -> float | None:
    """p of values = c lengths^p, by least squares on the logarithms; None where a value is not above 0."""
    if len(lengths) < 2 or min(values) <= 0:
        return None
    x, y = [math.log(length) for length in lengths], [math.log(value) for value in values]
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    along = sum((one - x_mean) * (other - y_mean) for one, other in zip(x, y, strict=True))
    return along / sum((one - x_mean) ** 2 for one in x)


def _pass(model: nn.Module, length: int, reads: type[Column] | None) -> Callable[[], None]:
    """Forward and backward over one pair of `length` tokens each, or frames and the tokens spoken in them.

    reads: the kind of the source; None = there is none.
    """
    generator = torch.Generator().manual_seed(length)
    source = reads.drawn(length, VOCABULARY, generator) if reads else None
    target = random_tokens(-(-length // (reads or Column).positions_a_token), VOCABULARY, generator)

    def step() -> None:
        _logits(model, source, target).logsumexp(-1).sum().backward()  # type: ignore[no-untyped-call]
        model.zero_grad(set_to_none=True)

    return step


def _logits(model: nn.Module, source: Any, target: Padded) -> Tensor:
    """What the model says of every position, (B, T, V); of places, of all words, spans, labels or places."""
    if isinstance(model, Classifies | Embeds):
        return model.classify(source) if isinstance(model, Classifies) else model.embed_text(source)
    if isinstance(model, ScoresSpans | Points):
        return _span_logits(model, source)
    if isinstance(model, Processes):
        return model.process(source.values, model.initial(1))[0]
    if isinstance(model, Aligns):
        return model.align(source).values
    if isinstance(model, Fills | PredictsMasked):
        return _hidden_logits(model, source, target)
    logits_BTV: Tensor = model(source, target)
    return logits_BTV


def _span_logits(model: Any, source: Any) -> Tensor:
    if isinstance(model, Points):
        return torch.cat(model.point(source), -1)
    scores_BNNC: Tensor = model.span_scores(model.word_states(source), source.firsts.lengths)
    return scores_BNNC


def _hidden_logits(model: Any, source: Any, target: Padded) -> Tensor:
    """(N, V) of all words, each of them hidden."""
    if isinstance(model, PredictsMasked):
        return model.predict_masked(source.pieces, source.pieces.mask())
    logits_NV: Tensor = model.fill(target, target.mask(), model.remember(source))
    return logits_NV


def _timed(step: Callable[[], None]) -> float:
    """Seconds of the fastest of several, the first not counted: whatever else the machine does can only add."""
    step()
    taken: list[float] = []
    while len(taken) < REPEATS or sum(taken) < ENOUGH_SECONDS:
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return min(taken)
