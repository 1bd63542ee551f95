"""What a trained model is used for: decoding texts, and the likelihood of given ones.

Everything runs in fp32 and gives each text the same result alone or in any batch.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.data.batches import BatchConfig, Batches
from transduce.data.collate import Batch, collate, padded, words
from transduce.data.store import Store
from transduce.errors import InputError
from transduce.models.protocols import Fills, Padded
from transduce.search.hypothesis import Hypothesis
from transduce.search.lattice import Lattice
from transduce.search.run import search
from transduce.search.settings import Search
from transduce.tasks.protocols import Prediction, Request, Task, unmet
from transduce.wanted import Demands, Wanted

Advance = Callable[[int], None]  # told how many more texts are done

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


def decode(
    model: nn.Module,
    task: Task,
    texts: Sequence[str],
    settings: Search,
    batch_size: int = 64,
    lines: Sequence[int] | None = None,
    advance: Advance | None = None,
    wanted: Sequence[Wanted] | None = None,
    others: Sequence[Task] = (),
    lattice: bool = False,
) -> list[Prediction]:
    """One prediction a text, in their order. A text without a token gives an empty prediction.

    Args:
        batch_size: texts searched together; like lengths are put together, whatever their order.
        lines: the number of each text in its file, from 0, which seeds its samples.
        wanted: phrases that each output must or must not hold, and how it begins.
        others: the tasks of an ensemble's further members, which read each text in their own tokens.
        lattice: keep everything that a beam weighed.

    Raises:
        InputError: what is wanted cannot be; all such lines are named.
    """
    _refuse_unequal_readings(task, others, settings)
    numbers = range(len(texts)) if lines is None else lines
    wanted = [Wanted()] * len(texts) if wanted is None else wanted
    demands = Demands(task.tokenizers["target"]) if any(wanted) else None
    reads = task.tokenizers.get("source") or task.tokenizers["target"]
    empty = {place for place, ids in enumerate(reads.encode(texts)) if not ids or not texts[place].strip()}
    requests: dict[int, Request] = {}
    predictions: dict[int, Prediction] = {}
    problems = []
    for place, text in enumerate(texts):
        try:
            if place in empty:
                predictions[place] = _nothing(text, wanted[place], demands)
            else:
                requests[place] = _demanded(task.request(text, settings), wanted[place], demands)
        except InputError as error:
            problems += [f"line {numbers[place] + 1}: {problem}" for problem in error.problems]
    if problems:
        raise InputError(problems)
    order = sorted(requests, key=lambda place: -_work(requests[place]))
    if model.training:  # to tell all parts takes half a millisecond
        model.eval()
    if advance:
        advance(len(empty))
    for first in range(0, len(order), batch_size):
        places = order[first : first + batch_size]
        lattices: list[Lattice] | None = [] if lattice else None
        members = [[requests[place] for place in places]]
        members += [[other.request(texts[place], settings) for place in places] for other in others]
        found = _search(model, task, members, [numbers[p] for p in places], settings, lattices)
        for row, (place, hypotheses) in enumerate(zip(places, found, strict=True)):
            constraint = requests[place].constraint
            predictions[place] = Prediction.from_hypotheses(
                texts[place],
                hypotheses,
                task.tokenizers["target"],
                constraint.phrases if constraint else None,
                lattices[row] if lattices else None,
            )
        if advance:
            advance(len(places))
    return [predictions[place] for place in range(len(texts))]


def _refuse_unequal_readings(task: Task, others: Sequence[Task], settings: Search) -> None:
    if not others or settings.coverage == 0:  # writing out a tokenizer takes milliseconds
        return
    reads = {each.tokenizers["source"].to_json() for each in (task, *others) if "source" in each.tokenizers}
    if len(reads) > 1:
        raise InputError("search.coverage: the members of this ensemble read their sources in different tokens.")


def _work(request: Request) -> int:
    return len(request.source or ()) + len(request.prefix)


def _nothing(text: str, wanted: Wanted, demands: Demands | None) -> Prediction:
    """What comes of a text without a token."""
    lack = unmet(demands.phrases(wanted), "") if demands else ()
    return Prediction(text, "", 0.0, 0.0, (), (), unmet=lack)


def _demanded(request: Request, wanted: Wanted, demands: Demands | None) -> Request:
    """The request with what is wanted of its output, which is checked for being possible."""
    if demands is None or not wanted:
        return request
    if wanted.prefix and request.source is None:
        raise InputError("a language model goes on from its text: put the prefix there.")
    prefix = [*request.prefix, *demands.prefix(wanted)]
    return replace(request, prefix=prefix, constraint=demands.constraint(wanted))


def _search(
    model: Any,
    task: Task,
    members: Sequence[Sequence[Request]],
    lines: list[int],
    settings: Search,
    lattices: list[Lattice] | None,
) -> list[list[Hypothesis]]:
    """members: the requests as each member of an ensemble reads them; of one alone, as the model does."""
    device = next(model.parameters()).device
    target, requests = task.tokenizers["target"], members[0]
    return search(
        model,
        _sources([[request.source for request in each] for each in members], device),
        len(requests),
        settings,
        start=task.start,
        end=task.end,
        limits=[request.limit for request in requests],
        prefixes=[request.prefix for request in requests],
        lines=lines,
        forbidden=sorted({target.pad, target.start, target.unknown} - {task.end}),
        least=[request.least for request in requests],
        constraints=[request.constraint for request in requests],
        lattices=lattices,
        device=device,
    )


def _sources(members: Sequence[Sequence[Sequence[int] | None]], device: torch.device) -> Padded | None:
    """Ids as a model reads them, (B, S), or an ensemble of M members, (B, S, M); None for a task without sources."""
    each = [[np.asarray(ids, np.int32) for ids in member if ids is not None] for member in members]
    if not each[0]:
        return None
    if len(each) == 1:
        return to_device(padded(each[0]), device)
    rows = [padded(ids) for ids in each]
    longest = max(row.values.shape[1] for row in rows)
    columns = [
        F.pad(row.values.masked_fill(~row.mask(), -1), (0, longest - row.values.shape[1]), value=-1) for row in rows
    ]
    lengths = torch.stack([row.lengths for row in rows]).amax(0)
    return to_device(Padded(torch.stack(columns, -1), lengths), device)


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
    device, target = next(model.parameters()).device, task.tokenizers["target"]
    targets = target.encode([text for _, text in pairs])
    members = [_source_ids(each, [text for text, _ in pairs]) for each in (task, *others)]
    order = sorted(range(len(pairs)), key=lambda place: len(members[0][place] or ()) + len(targets[place]))
    found: dict[int, Likelihood] = {}
    for first in range(0, len(order), batch_size):
        places = order[first : first + batch_size]
        target_rows = padded([np.asarray(targets[place], np.int32) for place in places], 0, task.start, task.end)
        source_rows = _sources([[ids[place] for place in places] for ids in members], device)
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
