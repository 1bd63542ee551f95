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

import numpy as np
import psutil
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.compare.operations import count_operations
from transduce.core.graphs import Graphs
from transduce.core.padded import Padded
from transduce.core.registry import resolve
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.columns.question_context import LONGEST_TOKEN, Passage
from transduce.data.columns.story import Sentences
from transduce.data.columns.tree_nodes import PHRASE, Forest, forest
from transduce.data.structures.graphs import EdgeReading
from transduce.models.protocols import Aligns, Classifies, Fills, Points, Processes
from transduce.recipe.recipe import Recipe
from transduce.runtime.environment import peak_memory_bytes
from transduce.runtime.settings import random_numbers

VOCABULARY, CHARACTERS = 16, 16  # and features of a frame
FRAMES_A_TOKEN = 10
SENTENCE = 6  # tokens of a sentence of a story
QUESTION = 16  # tokens of the question that a model which points is asked
UNITS = {"frames": "frame", "vectors": "vector", "graph": "node", "node": "node", "tree_nodes": "word"}
"""Of a length; others are tokens."""
SHORT = 16  # tokens of a pass that nobody measures
REPEATS, ENOUGH_SECONDS = 5, 0.5  # a length is timed so often at least, and so long


@random_numbers()
def measure_growth(recipe: Recipe, lengths: Sequence[int]) -> dict[str, Any]:
    """Seconds and counted operations of a forward and backward pass at each length, a layer, with their exponents."""
    kinds, model = _small(recipe, max(lengths))
    layers = layer_count(recipe)
    seconds, operations = [], []
    for length in lengths:
        step = _pass(model, length, kinds.get("source"))
        seconds.append(_timed(step) / layers)
        operations.append(count_operations(step) / layers)
    longer = min(len(lengths) // 2, len(lengths) - 2)
    return {
        "lengths": list(lengths),
        "unit": UNITS.get(kinds.get("source", ""), "token"),
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
    kinds, model = _small(recipe, length)
    _pass(model, SHORT, kinds.get("source"))()
    step = _pass(model, length, kinds.get("source"))
    before = psutil.Process().memory_info().rss
    start = time.perf_counter()
    step()
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "bytes": max(0, peak_memory_bytes() - before)}


def _small(recipe: Recipe, longest: int) -> tuple[dict[str, str], nn.Module]:
    """The kinds of the task's columns, and the recipe's model with a small vocabulary, to be trained.

    longest: how many sentences a story may have.
    """
    kind: str = recipe.model.kind  # type: ignore[attr-defined]
    torch.manual_seed(0)
    kinds: dict[str, str] = resolve("tasks", recipe.task.kind).kinds  # type: ignore[attr-defined]
    source = ColumnSpec(kinds["source"], VOCABULARY, CHARACTERS) if "source" in kinds else None
    config: Any = recipe.model
    if "layer_dropout" in type(config).model_fields:  # a layer that chance leaves out takes no time
        config = config.model_copy(update={"layer_dropout": 0.0})
    if "slots" in type(config).model_fields and kinds.get("source") == "story":
        config = config.model_copy(update={"slots": longest})
    words = tuple((each,) for each in range(VOCABULARY)) if kinds["target"] == "label" else ()
    target = ColumnSpec(kinds["target"], VOCABULARY, words=words)
    model: nn.Module = resolve("models", kind)(config, Specs(source, target))
    return kinds, model.train()


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


def _pass(model: nn.Module, length: int, reads: str | None) -> Callable[[], None]:
    """Forward and backward over one pair of `length` tokens each, or frames and the tokens spoken in them.

    reads: the kind of the source; None = there is none.
    """
    generator = torch.Generator().manual_seed(length)
    source: Padded | Graphs | Forest | None = None
    if reads in ("frames", "vectors"):
        source = Padded(torch.randn(1, length, VOCABULARY, generator=generator), torch.tensor([length]))
    elif reads in ("graph", "node"):
        source = _ring(length, generator, chosen=reads == "node")
    elif reads:
        source = (_tree if reads == "tree_nodes" else _random)(length, generator)
    target = _random(-(-length // FRAMES_A_TOKEN) if reads == "frames" else length, generator)

    def step() -> None:
        _logits(model, source, target, reads).logsumexp(-1).sum().backward()  # type: ignore[no-untyped-call]
        model.zero_grad(set_to_none=True)

    return step


def _logits(model: nn.Module, source: Any, target: Padded, reads: str | None) -> Tensor:
    """What the model says of every position, (B, T, V); of places, of all words, or (B, C) of the labels or places."""
    if isinstance(model, Classifies):
        return model.classify(_story(source) if reads == "story" else source)
    assert not isinstance(source, Forest)
    if isinstance(model, Points):
        return torch.cat(model.point(_passage(source)), -1)
    if isinstance(model, Processes):
        return model.process(source.values, model.initial(1))[0]
    if isinstance(model, Aligns):
        return model.align(source).values
    if isinstance(model, Fills):
        return model.fill(target, target.mask(), model.remember(source))
    logits_BTV: Tensor = model(source, target)
    return logits_BTV


def _passage(context: Padded) -> Passage:
    """A random question of `QUESTION` tokens on this text, with as many characters as tokens have at most."""
    generator = torch.Generator().manual_seed(0)
    question = _random(QUESTION, generator)
    spelled = [
        Padded(torch.randint(1, CHARACTERS, (*side.values.shape, LONGEST_TOKEN), generator=generator), side.lengths)
        for side in (question, context)
    ]
    return Passage(question, context, *spelled)


def _story(tokens: Padded) -> Sentences:
    """These tokens in sentences, and a question of one sentence."""
    count = -(-tokens.values.shape[1] // SENTENCE)
    filled_N = F.pad(tokens.values[0], (0, count * SENTENCE - tokens.values.shape[1]), value=VOCABULARY - 1)
    lengths, words = torch.tensor([count]), torch.full((1, count), SENTENCE)
    question = Padded(filled_N[None, :SENTENCE], torch.tensor([SENTENCE]))
    return Sentences(Padded(filled_N.view(1, count, SENTENCE), lengths), Padded(words, lengths), question)


def _ring(length: int, generator: torch.Generator, chosen: bool) -> Graphs:
    """A graph of n nodes in a ring; or all of them chosen."""
    each = np.arange(length)
    edges = EdgeReading().read(np.stack([each, (each + 1) % length], 1), length)
    source, target = (torch.from_numpy(ends) for ends in edges)
    features_NF = torch.randn(length, VOCABULARY, generator=generator)
    return Graphs(features_NF, source, target, torch.tensor([length]), torch.from_numpy(each) if chosen else None)


def _random(length: int, generator: torch.Generator) -> Padded:
    values_BS = torch.randint(4, VOCABULARY, (1, length), generator=generator)
    return Padded(values_BS, torch.tensor([length]))


def _tree(words: int, generator: torch.Generator) -> Forest:
    """A balanced tree of `words` random words."""
    parts_N = torch.tensor(_balanced(words))
    ids_N = _random(len(parts_N), generator).values[0].where(parts_N == 0, PHRASE)
    return forest(Padded(ids_N[None], torch.tensor([len(parts_N)])), [parts_N.tolist()])


def _balanced(words: int) -> list[int]:
    """How many parts each node has, every node behind its parts."""
    return [0] if words == 1 else [*_balanced(words // 2), *_balanced(words - words // 2), 2]


def _timed(step: Callable[[], None]) -> float:
    """Seconds of the fastest of several, the first not counted: whatever else the machine does can only add."""
    step()
    taken: list[float] = []
    while len(taken) < REPEATS or sum(taken) < ENOUGH_SECONDS:
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return min(taken)
