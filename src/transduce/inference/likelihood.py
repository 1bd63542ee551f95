"""How probable given texts are to a trained model, in fp32, the same alone and in any batch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transduce.data.batches import BatchConfig, Batches
from transduce.data.collate import Batch, collate, padded, words
from transduce.data.store import Store
from transduce.inference.decode import Advance
from transduce.inference.inputs import check_batch_size, sources, to_device
from transduce.layers.ctc import blank_of, ids_of, least_places, token_log_probabilities, written
from transduce.models.protocols import Aligns, Fills, Padded
from transduce.tasks.protocols import Task

EVALUATION_BATCH = BatchConfig(tokens=8192)


@dataclass(frozen=True)
class Likelihood:
    """How probable texts are to a model: natural logarithms, summed over `tokens` target tokens, ends included.

    pieces, token_log_probabilities: of one text each of these tokens and its own; empty for several texts.
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
    """Of all examples of a store."""
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
    """Of each (source, target) text, in their order; a task without sources looks at the target alone.

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


@torch.inference_mode()
def batch_log_probabilities(model: nn.Module, batch: Batch) -> Tensor:
    """(B, T - 1) fp64 log-probability of each target token after the first; 0 behind a row's end.

    Of a model that fills: of each word, all words hidden, given the length; at the end token, of the length.
    Of one that aligns: of each token given those before, however they are placed.
    """
    model.eval()
    device = next(model.parameters()).device
    source = to_device(batch.source, device) if batch.source else None
    target = to_device(batch.target, device)
    if isinstance(model, Fills):
        assert source is not None
        return _with_all_words_hidden(model, source, words(target))
    if isinstance(model, Aligns):
        assert source is not None
        return _however_placed(model, source, target)
    logits_BTV = model(source, Padded(target.values[:, :-1], target.lengths - 1))
    normed_BTV = logits_BTV.log_softmax(-1, dtype=torch.float32)
    chosen_BT = normed_BTV.gather(-1, target.values[:, 1:, None])[..., 0].double()
    return chosen_BT.masked_fill(~target.mask()[:, 1:], 0.0)


def _with_all_words_hidden(model: Fills, source: Padded, target: Padded) -> Tensor:
    """(B, T + 1): of the words of each row, and of its length behind them."""
    memory, hidden_BT = model.remember(source), target.mask()
    rows, longest = hidden_BT.shape
    each_BT = torch.zeros(rows, longest + 1, dtype=torch.float64, device=hidden_BT.device)
    length_B1 = target.lengths[:, None]
    each_BT.scatter_(1, length_B1, model.lengths(memory, longest).gather(1, length_B1).double())
    if bool(hidden_BT.any()):
        seen = Padded(target.values, target.lengths.clamp(min=1))  # attention needs something to attend to
        normed_NV = model.fill(seen, hidden_BT, memory).log_softmax(-1, dtype=torch.float32)
        each_BT[:, :-1][hidden_BT] = normed_NV.gather(1, target.values[hidden_BT][:, None])[:, 0].double()
    return each_BT


def _however_placed(model: Aligns, source: Padded, target: Padded) -> Tensor:
    """(B, T - 1): of the words of each row, and of its end."""
    own = words(target)
    places = model.align(source, least_places(*own))
    normed_BPV = places.values.double().log_softmax(-1)
    ids_BPU = ids_of(own.values, normed_BPV.shape[1], blank_of(target.values))
    return token_log_probabilities(written(normed_BPV.gather(2, ids_BPU), places.lengths, *own))


def likelihood_context(model: nn.Module, task: Task) -> str:
    """What a token's likelihood sees, in words."""
    return "the source and the number of target tokens" if isinstance(model, Fills) else task.context
