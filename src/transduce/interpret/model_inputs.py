"""One source and one output as token ids, from which all numbers of the explorer are computed.

Shapes: T target positions, V vocabulary.
"""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.core.padded import Padded, map_tree
from transduce.data.collate import Batch
from transduce.data.columns.tokens import Tokens
from transduce.data.columns.words import Words
from transduce.inference.inputs import as_read
from transduce.inference.likelihood import log_probabilities as batch_log_probabilities
from transduce.inference.prediction import Prediction
from transduce.layers.ctc import least_places
from transduce.models.protocols import (
    Aligns,
    Classifies,
    Embeds,
    Encodes,
    Fills,
    Points,
    PredictsMasked,
    ScoresSpans,
    writes_at_once,
)
from transduce.tasks.base import Task


class Given(NamedTuple):
    """source: ids with the end token, or frames (S, F); None for a language model. target: ids of the output, neither
    start nor end. seen: the places of `source` among the tokens of the whole text; None = it is all of them."""

    source: Any
    target: list[int]
    seen: tuple[int, ...] | None = None


def given_of(task: Task, prediction: Prediction) -> Given:
    """The source and the output of a prediction.

    Raises:
        InputError: its text was empty.
    """
    if why := without_words(task):
        raise InputError(why)
    if not prediction.source.strip():
        raise InputError("there is no attention in an empty text; give the model a sentence.")
    source = source_ids(task, prediction.text_read)
    if isinstance(task.columns.get("source"), Words) and len(source) > task.max_source_length:
        raise InputError("this text was read in several windows: its attention is not known.")
    if prediction.seen is not None and prediction.cut is None:  # what is cut is so already
        source = [source[place] for place in prediction.seen]
    return Given(source, task.columns["target"].ids(prediction.written), prediction.seen)


def without_words(task: Task) -> str:
    """Why a model of this task has no attention between words; "" = it has."""
    return next((each.without_words for each in task.columns.values() if each.without_words), "")


def source_ids(task: Task, text: str) -> Any:
    """The ids of a source text, with the end token, or its frames; None for a language model."""
    source = task.columns.get("source")
    return source.closed(source.encode([text])[0]) if source else None


@torch.inference_mode()
def positions(model: nn.Module, given: Given) -> int:
    """How many positions of the source a model attends to: of frames fewer than there are."""
    if given.source is None:
        return 0
    if not isinstance(given.source, np.ndarray) or not isinstance(model, Encodes):
        return len(given.source)
    return int(model.encode(_row(given.source, next(model.parameters()).device)).lengths[0])


def start_of(task: Task) -> int:
    """The id before an output's first token."""
    target = task.columns["target"]
    assert isinstance(target, Tokens)
    return target.start


def next_tokens(model: nn.Module, task: Task, given: Given) -> Tensor:
    """Log-probabilities (T, V) in fp32 of each token of the output given those before it, and of the token after it.

    For a model that fills, they are those of its first pass, with all words hidden, and T is the number of words;
    otherwise T is one more. For a model that aligns, they are those of each place; see
    `transduce.interpret.attention`. For a classifier, they are those of the labels, and T is 1, or the number of
    nodes; for one that embeds, scores spans or predicts hidden words, V is 0. For a model that points, they are those
    of the tokens of its text, and T is 2: the first and the last token of the span.

    Raises:
        InputError: the output is empty and the model writes all words at once.
    """
    device = next(model.parameters()).device
    source = _inputs(task, given.source, 1)
    source = None if source is None else map_tree(lambda each: each.to(device), source)
    if writes_at_once(model) and not given.target:
        raise InputError("an output without words has no attention in a model that writes all words at once.")
    if isinstance(model, Classifies):
        logits_TV = model.classify(source).flatten(0, -2)
    elif isinstance(model, Embeds):
        logits_TV = model.embed_text(source)[:, :0]  # it says nothing of tokens
    elif isinstance(model, PredictsMasked):
        assert source is not None
        logits_TV = model.predict_masked(source.pieces, source.pieces.mask())[:, :0]  # nor of tokens that follow
    elif isinstance(model, ScoresSpans):
        logits_TV = model.word_states(source).new_zeros(len(given.target), 0)  # nor is a tree written in an order
    elif isinstance(model, Points):
        logits_TV = torch.cat(model.point(source))
    elif isinstance(model, Aligns):
        assert source is not None
        logits_TV = model.align(source, least_places(*_row(given.target, device))).values[0]
    elif isinstance(model, Fills):
        assert source is not None
        hidden_BT = torch.ones(1, len(given.target), dtype=torch.bool, device=device)
        logits_TV = model.fill(_row(given.target, device), hidden_BT, model.remember(source))
    else:
        logits_TV = model(source, _row([start_of(task), *given.target], device))[0]
    return logits_TV.log_softmax(-1, dtype=torch.float32)


def log_probabilities(model: nn.Module, task: Task, given: Given, rows: int) -> list[float]:
    """log p of the whole output, including its end, from each row of a batch that contains it `rows` times."""
    if isinstance(model, Embeds | PredictsMasked):
        return [0.0] * rows  # a vector has no probability, nor a text of which nothing is hidden
    source = _inputs(task, given.source, rows)
    column = task.columns["target"]
    written = given.target[len(column.opening) :] if isinstance(column, Tokens) else given.target
    target = column.collate_texts([np.asarray(written, np.int32)] * rows)
    each_BN = batch_log_probabilities(task.objective(model), model, Batch(source, target, 0))
    each: list[float] = each_BN.sum(1).tolist()
    return each


def _inputs(task: Task, source: Any, rows: int) -> Any:
    """As a model reads it, `rows` times; None for a language model."""
    if source is None:
        return None
    column = task.columns["source"]
    if isinstance(column, Tokens):
        return column.inputs([np.asarray(source, np.int32)] * rows)
    return as_read([source] * rows)


def _row(ids: Any, device: torch.device) -> Padded:
    return as_read([ids]).to(device)
