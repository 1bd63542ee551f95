"""The probability that a trained model gives to texts, in fp32, the same alone and in any batch."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

from transduce.data.batches import BatchConfig, Batches
from transduce.data.collate import Batch, collate
from transduce.data.columns import Columns
from transduce.data.columns.tokens import Tokens
from transduce.data.store import Store
from transduce.data.stream_batches import StreamBatches
from transduce.inference.batches import check_batch_size
from transduce.inference.inputs import sources
from transduce.inference.protocols import Advance
from transduce.models.protocols import Fills
from transduce.objectives.protocols import CarriesState, Objective
from transduce.runtime.process_group import ALONE, ProcessGroup

EVALUATION_BATCH = BatchConfig(tokens=8192)


@dataclass(frozen=True)
class Likelihood:
    """The log-probability of texts.

    log_probability: in nats, summed over all tokens.
    tokens: how many target tokens, ends included.
    pieces, token_log_probabilities: the tokens of a single text and the log-probability of each; empty for several.
    unit: what `tokens` counts, if not tokens.
    """

    log_probability: float
    tokens: int
    pieces: tuple[str, ...] = ()
    token_log_probabilities: tuple[float, ...] = ()
    unit: str = "token"

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
            "unit": self.unit,
            "signature": signature(self.unit),
            **{name: list(values) for name, values in each.items() if values},
        }


def signature(unit: str) -> str:
    """How a likelihood is counted: only texts have ends."""
    return f"base:e|unit:{unit}" + ("|ends:counted" if unit == "token" else "")


class Judged(Protocol):
    """What a task says of likelihood."""

    columns: Columns

    @property
    def context(self) -> str: ...
    def objective(self, model: nn.Module) -> Objective: ...


@runtime_checkable
class Scores(Protocol):
    """A predictor that also says how probable given outputs are, where that takes more than an objective."""

    def score(
        self, model: Any, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
    ) -> list[Likelihood]:
        """One for each (text, output), in their order."""
        ...


def log_probabilities(objective: Objective, model: nn.Module, batch: Batch) -> Tensor:
    """(B, N) of each unit of each example, wherever the batch lies; see `Objective.log_probabilities`."""
    return objective.log_probabilities(model.eval(), batch.to(next(model.parameters()).device))


def dataset_likelihood(model: nn.Module, task: Judged, store: Store, group: ProcessGroup = ALONE) -> Likelihood:
    """The likelihood of all examples of a store, whose batches the processes of a group share."""
    own = [
        (place * group.world + group.rank, float(each_BN.sum()), batch.units)
        for place, (batch, each_BN) in enumerate(dataset_log_probabilities(model, task, store, group))
    ]
    nats, count = 0.0, 0
    for _, summed, units in sorted(each for part in group.gathered(own) for each in part):
        nats, count = nats + summed, count + units
    return Likelihood(nats, count, unit=task.objective(model).unit)


def dataset_log_probabilities(
    model: nn.Module, task: Judged, store: Store, group: ProcessGroup = ALONE
) -> Iterator[tuple[Batch, Tensor]]:
    """Every batch of a store with (B, N), the log-probability of each unit of each example.

    Where the objective carries a state, the store is read as one stream, in order, and by one process.

    group: only this process' batches.
    """
    objective, device = task.objective(model), next(model.parameters()).device
    if isinstance(objective, CarriesState):
        if not group.first:
            return
        state = None
        for rows in StreamBatches(store, 1).epoch(0):
            batch = collate([store], rows, task.columns)
            each_BN, state = objective.evaluated(model.eval(), batch.to(device).after(state))
            yield batch, each_BN
        return
    for rows in islice(Batches([(store, 1.0)], EVALUATION_BATCH, seed=0).epoch(0), group.rank, None, group.world):
        batch = collate([store], rows, task.columns)
        yield batch, log_probabilities(objective, model, batch)


def pair_likelihoods(
    model: nn.Module,
    task: Judged,
    pairs: Sequence[tuple[str, str]],
    batch_size: int = 64,
    advance: Advance | None = None,
    others: Sequence[Judged] = (),
) -> list[Likelihood]:
    """The likelihood of each (source, target) pair, in order; a task without sources uses the target alone.

    Args:
        others: see `transduce.inference.decode.decode`.
    """
    check_batch_size(batch_size)
    if isinstance(predictor := getattr(task, "predictor", None), Scores):
        return predictor.score(model, pairs, batch_size, advance)
    target, objective = task.columns["target"], task.objective(model)
    targets = target.encode([text for _, text in pairs])
    members = [_source_ids(each, [text for text, _ in pairs]) for each in (task, *others)]
    order = sorted(range(len(pairs)), key=lambda place: _length(members[0][place]) + len(targets[place]))
    found: dict[int, Likelihood] = {}
    for first in range(0, len(order), batch_size):
        places = order[first : first + batch_size]
        read = target.collate_texts([np.asarray(targets[place], np.int32) for place in places])
        inputs = _inputs(task, [[ids[place] for place in places] for ids in members])
        each_BN = log_probabilities(objective, model, Batch(inputs, read, 0))
        for row, place in enumerate(places):
            ids = target.closed(targets[place])
            values, pieces = each_BN[row, : len(ids)], tuple(target.tokens(ids))
            found[place] = Likelihood(float(values.sum()), len(ids), pieces, tuple(values.tolist()), objective.unit)
        if advance:
            advance(len(places))
    return [found[place] for place in range(len(pairs))]


def _inputs(task: Judged, members: Sequence[Sequence[Any]]) -> Any:
    """As a model reads them; for an ensemble, ids of each member side by side."""
    column = task.columns.get("source")
    if len(members) == 1 and isinstance(column, Tokens):
        return column.inputs([np.asarray(ids, np.int32) for ids in members[0]])
    return sources(members, torch.device("cpu"))


def _length(ids: Any) -> int:
    return 0 if ids is None else len(ids)


def _source_ids(task: Judged, texts: Sequence[str]) -> list[Any]:
    """Each text as the task's model reads it."""
    source = task.columns.get("source")
    return [source.closed(ids) for ids in source.encode(texts)] if source else [None] * len(texts)


def likelihood_context(model: nn.Module, task: Judged) -> str:
    """In words, what the likelihood of a token is conditioned on."""
    return "the source and the number of target tokens" if isinstance(model, Fills) else task.context
