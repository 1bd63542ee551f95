"""The probability that a trained model gives to texts, in fp32, the same alone and in any batch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from transduce.data.batches import BatchConfig, Batches
from transduce.data.collate import Batch, collate, padded
from transduce.data.store import Store
from transduce.inference.decode import Advance
from transduce.models.protocols import Fills
from transduce.objectives.likelihood import batch_log_probabilities
from transduce.tasks.inputs import check_batch_size, sources
from transduce.tasks.protocols import Task

EVALUATION_BATCH = BatchConfig(tokens=8192)


@dataclass(frozen=True)
class Likelihood:
    """The log-probability of texts: natural logarithms, summed over `tokens` target tokens, ends included.

    pieces, token_log_probabilities: the tokens of a single text and the log-probability of each; empty for several.
    """

    log_probability: float
    tokens: int
    pieces: tuple[str, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()

    @property
    def loss(self) -> float:
        """Mean negative log-probability in nats a token."""
        return -self.log_probability / self.tokens if self.tokens else float("nan")

    @property
    def perplexity(self) -> float:
        """e^loss, a token: not comparable between tokenizers."""
        return math.exp(min(self.loss, 700.0))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        each = {"pieces": self.pieces, "token_log_probabilities": self.token_log_probabilities}
        return {
            "log_probability": self.log_probability,
            "tokens": self.tokens,
            "loss": self.loss,
            "perplexity": self.perplexity,
            "signature": "base:e|unit:token|ends:counted",
            **{name: list(values) for name, values in each.items() if values},
        }


def dataset_likelihood(model: nn.Module, task: Task, store: Store) -> Likelihood:
    """The likelihood of all examples of a store."""
    batches = Batches([(store, 1.0)], EVALUATION_BATCH, seed=0)
    total = Likelihood(0.0, 0)
    for rows in batches.epoch(0):
        batch = collate([store], rows, task.start, task.end)
        each_BT = batch_log_probabilities(model, batch)
        total = Likelihood(total.log_probability + float(each_BT.sum()), total.tokens + batch.count)
    return total


def pair_likelihoods(
    model: nn.Module,
    task: Task,
    pairs: Sequence[tuple[str, str]],
    batch_size: int = 64,
    advance: Advance | None = None,
    others: Sequence[Task] = (),
) -> list[Likelihood]:
    """The likelihood of each (source, target) pair, in order; a task without sources uses the target alone.

    Args:
        others: see `decode`.
    """
    check_batch_size(batch_size)
    device, target = next(model.parameters()).device, task.tokenizers["target"]
    targets = target.encode([text for _, text in pairs])
    members = [_source_ids(each, [text for text, _ in pairs]) for each in (task, *others)]
    order = sorted(range(len(pairs)), key=lambda place: len(members[0][place] or ()) + len(targets[place]))
    found: dict[int, Likelihood] = {}
    for first in range(0, len(order), batch_size):
        places = order[first : first + batch_size]
        target_rows = padded([np.asarray(targets[place], np.int32) for place in places], 0, task.start, task.end)
        source_rows = sources([[ids[place] for place in places] for ids in members], device)
        each_BT = batch_log_probabilities(model, Batch(source_rows, target_rows, 0))
        for row, place in enumerate(places):
            values = each_BT[row, : len(targets[place]) + 1]
            pieces = target.tokens([*targets[place], task.end])
            found[place] = Likelihood(float(values.sum()), len(values), tuple(pieces), tuple(values.tolist()))
        if advance:
            advance(len(places))
    return [found[place] for place in range(len(pairs))]


def _source_ids(task: Task, texts: Sequence[str]) -> list[list[int] | None]:
    """Each text as the task's model reads it, the end token behind it."""
    source = task.tokenizers.get("source")
    if source is None:
        return [None] * len(texts)
    return [[*ids, source.end] for ids in source.encode(texts)]


def likelihood_context(model: nn.Module, task: Task) -> str:
    """In words, what the likelihood of a token is conditioned on."""
    return "the source and the number of target tokens" if isinstance(model, Fills) else task.context
