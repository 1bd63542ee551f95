"""What a trained model is used for: decoding texts, and the likelihood of given ones.

Everything runs in fp32 and gives each text the same result alone or in any batch.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transduce.data.batches import BatchConfig, Batches
from transduce.data.collate import Batch, collate, padded, words
from transduce.data.store import Store
from transduce.models.protocols import Fills, Padded
from transduce.search.run import search
from transduce.search.settings import Search
from transduce.tasks.protocols import Prediction, Request, Task

Advance = Callable[[int], None]  # told how many more texts are done

EVALUATION_BATCH = BatchConfig(tokens=8192)


@dataclass(frozen=True)
class Likelihood:
    """How probable texts are to a model: natural logarithms, summed over `tokens` target tokens, ends included."""

    log_probability: float
    tokens: int

    @property
    def loss(self) -> float:
        """Mean negative log-probability in nats a token."""
        return -self.log_probability / self.tokens if self.tokens else float("nan")

    @property
    def perplexity(self) -> float:
        """e^loss, a token: not comparable between tokenizers."""
        return math.exp(min(self.loss, 700.0))

    def to_dict(self) -> dict[str, float | int | str]:
        """For JSON."""
        return {
            "log_probability": self.log_probability,
            "tokens": self.tokens,
            "loss": self.loss,
            "perplexity": self.perplexity,
            "signature": "base:e|unit:token|ends:counted",
        }


def decode(
    model: nn.Module,
    task: Task,
    texts: Sequence[str],
    settings: Search,
    batch_size: int = 64,
    lines: Sequence[int] | None = None,
    advance: Advance | None = None,
) -> list[Prediction]:
    """One prediction a text, in their order. A text without a token gives an empty prediction.

    Args:
        batch_size: texts searched together; like lengths are put together, whatever their order.
        lines: the number of each text in its file, from 0, which seeds its samples.
    """
    numbers = range(len(texts)) if lines is None else lines
    reads = task.tokenizers.get("source") or task.tokenizers["target"]
    empty = {place for place, ids in enumerate(reads.encode(texts)) if not ids or not texts[place].strip()}
    predictions = {place: Prediction(texts[place], "", 0.0, 0.0, (), ()) for place in empty}
    requests = {place: task.request(text, settings) for place, text in enumerate(texts) if place not in empty}
    order = sorted(requests, key=lambda place: -_work(requests[place]))
    model.eval()
    if advance:
        advance(len(empty))
    for first in range(0, len(order), batch_size):
        places = order[first : first + batch_size]
        found = _search(model, task, [requests[place] for place in places], [numbers[p] for p in places], settings)
        for place, hypotheses in zip(places, found, strict=True):
            predictions[place] = Prediction.from_hypotheses(texts[place], hypotheses, task.tokenizers["target"])
        if advance:
            advance(len(places))
    return [predictions[place] for place in range(len(texts))]


def _work(request: Request) -> int:
    return len(request.source or ()) + len(request.prefix)


def _search(model: Any, task: Task, requests: list[Request], lines: list[int], settings: Search) -> Any:
    device = next(model.parameters()).device
    sources = [request.source for request in requests if request.source is not None]
    target = task.tokenizers["target"]
    return search(
        model,
        to_device(padded([np.asarray(ids, np.int32) for ids in sources]), device) if sources else None,
        len(requests),
        settings,
        start=task.start,
        end=task.end,
        limits=[request.limit for request in requests],
        prefixes=[request.prefix for request in requests],
        lines=lines,
        forbidden=sorted({target.pad, target.start, target.unknown} - {task.end}),
        device=device,
    )


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
    model: nn.Module, task: Task, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
) -> list[Likelihood]:
    """Of each (source, target) text, in their order; a task without sources looks at the target alone."""
    target, source = task.tokenizers["target"], task.tokenizers.get("source")
    targets = target.encode([text for _, text in pairs])
    sources = source.encode([text for text, _ in pairs]) if source else [[] for _ in pairs]
    order = sorted(range(len(pairs)), key=lambda place: len(sources[place]) + len(targets[place]))
    found: dict[int, Likelihood] = {}
    for first in range(0, len(order), batch_size):
        places = order[first : first + batch_size]
        target_rows = padded([np.asarray(targets[place], np.int32) for place in places], 0, task.start, task.end)
        source_rows = padded([np.asarray(sources[p], np.int32) for p in places], 0, end=source.end) if source else None
        each_BT = batch_log_probabilities(model, Batch(source_rows, target_rows, 0))
        for row, place in enumerate(places):
            found[place] = Likelihood(float(each_BT[row].sum()), len(targets[place]) + 1)
        if advance:
            advance(len(places))
    return [found[place] for place in range(len(pairs))]


@torch.inference_mode()
def batch_log_probabilities(model: nn.Module, batch: Batch) -> Tensor:
    """(B, T - 1) fp64 log-probability of each target token after the first; 0 behind a row's end.

    Of a model that fills: of each word, all words hidden, given the length; at the end token, of the length.
    """
    model.eval()
    device = next(model.parameters()).device
    source = to_device(batch.source, device) if batch.source else None
    target = to_device(batch.target, device)
    if isinstance(model, Fills):
        assert source is not None
        return _with_all_words_hidden(model, source, words(target))
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


def likelihood_context(model: nn.Module, task: Task) -> str:
    """What a token's likelihood sees, in words."""
    return "the source and the number of target tokens" if isinstance(model, Fills) else task.context


def to_device(sequences: Padded, device: torch.device) -> Padded:
    """Both tensors on `device`."""
    return Padded(sequences.values.to(device), sequences.lengths.to(device))


def batches_of(stores: Sequence[Store], task: Task, device: torch.device) -> Callable[[Any], Batch]:
    """Rows -> a batch on `device`."""

    def load(rows: Any) -> Batch:
        source, target, count = collate(stores, rows, task.start, task.end)
        return Batch(to_device(source, device) if source else None, to_device(target, device), count)

    return load
