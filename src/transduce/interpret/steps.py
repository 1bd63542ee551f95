"""One query's computation, step by step, in the model's own numbers.

    scores = q . k     scaled = scores / sqrt(E)     weights = softmax(scaled + bias, where allowed)
    head_output = sum of weights times v             joined = [head_1; ..; head_H]     output = joined W^O

The numbers are computed again from the module's inputs, by its own parts, one after the other. A test compares them
with the module's weights and output.

Shapes: B batch of 1, H heads, T queries, S keys, E width of a head's keys, F of its values, D model width.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transduce.attention.cross_attention import CrossAttention
from transduce.attention.heads import MultiHeadAttention
from transduce.attention.linear import LinearAttention
from transduce.attention.normalizers import Normalizer
from transduce.attention.scaled_dot_product import spread
from transduce.attention.scores import AttentionScore, Dot, ScaledDot
from transduce.core.errors import InputError
from transduce.interpret.attention import looked
from transduce.interpret.model_inputs import Given
from transduce.models.protocols import Aligns
from transduce.tasks.base import Task

HasSteps = MultiHeadAttention | CrossAttention


class Query(NamedTuple):
    """All that one query's computation is made of.

    query: (1, H, 1, E). key, value: (1, H, S, any). allowed: broadcastable to (1, H, 1, S), or None.
    bias: on the scores, or None. position: (1, 1). previous: the weights of the query before, or None.
    read: what the weights read besides the values, or None.
    join: [head_1; ..; head_H] (1, 1, H F) -> (1, 1, D); None where heads are joined and nothing follows.
    """

    score: AttentionScore
    weigh: Normalizer
    query: Tensor
    key: Tensor
    value: Tensor
    allowed: Tensor | None
    bias: Tensor | None
    position: Tensor
    previous: Tensor | None
    read: Callable[[Tensor], Tensor] | None
    join: Callable[[Tensor], Tensor] | None


class Call(NamedTuple):
    """One call of a module that attends: its arguments by name."""

    queries: int
    given: dict[str, Any]


@torch.inference_mode()
def steps(
    model: nn.Module, task: Task, given: Given, texts: tuple[str, str], name: str, head: int, query: int
) -> dict[str, Any]:
    """The computation of one head of one attention module for one query, with arrays as lists of numbers.

    Args:
        model: the model.
        task: its task.
        given: the source and the output.
        texts: the texts of the source and of the output.
        name: name of the attention module.
        head: number of the head, from 0.
        query: number of the query, from 0.

    Raises:
        InputError: there is no such module, head or query, or the module has no queries and keys to show.
    """
    with _watched(model, name) as calls:
        attention, _ = looked(model, task, given, *texts)
    layer = attention.layer(name)
    module, part = model.get_submodule(name), layer.part
    problems = [
        f"{what}: expected 0 to {count - 1}; got {number}."
        for what, number, count in (("head", head, part.heads), ("query", query, layer.weights.shape[1]))
        if not 0 <= number < count
    ]
    if not isinstance(module, HasSteps):
        problems = [f"{type(module).__name__} has no queries and keys to show."]
    if isinstance(module, LinearAttention):
        problems = ["linear attention never compares a single query with a single key: no steps to show."]
    if isinstance(model, Aligns) and "target" in (part.rows, part.columns):
        problems = ["its queries are positions, several of which make one token: no steps to show."]
    if problems:
        raise InputError(f"{name}: {problem}" for problem in problems)
    found = _query(module, *_call_of(calls, query))
    columns = attention.labels(part.columns, layer.weights.shape[2])[-found.key.shape[2] :]
    names = {"query_token": attention.labels(part.rows, layer.weights.shape[1])[query], "columns": columns}
    return {**names, **worked_out(found, head)}


def worked_out(found: Query, head: int) -> dict[str, Any]:
    """The computation of one head; `joined` and `output` are of all heads."""
    score_name = _snake(type(found.score).__name__)
    scaled_BH1S = found.score(found.query, found.key, found.previous)
    raw_BH1S = found.query @ found.key.mT if type(found.score) in (Dot, ScaledDot) else scaled_BH1S
    biased_BH1S = scaled_BH1S if found.bias is None else scaled_BH1S + found.bias
    alpha_BH1S = found.weigh(biased_BH1S, found.allowed, found.query, found.position, found.previous)
    read_BH1F = alpha_BH1S.to(found.value.dtype) @ found.value
    besides_BH1F = found.read(alpha_BH1S) if found.read else None
    whole_BH1F = read_BH1F if besides_BH1F is None else read_BH1F + besides_BH1F
    joined_B1M = whole_BH1F.transpose(1, 2).flatten(2)
    width, keys = found.query.shape[-1], found.key.shape[2]
    everyone = torch.ones(keys, dtype=torch.bool)
    return {
        "score": score_name,
        "formula": vars(type(found.score)).get("formula", score_name),
        "normalizer": _snake(type(found.weigh).__name__),
        "width": width,
        "q": found.query[0, head, 0].tolist(),
        "k": found.key[0, head].tolist(),
        "v": found.value[0, head].tolist(),
        "scores": raw_BH1S[0, head, 0].tolist(),
        "divisor": width**0.5 if type(found.score) is ScaledDot else None,
        "scaled": scaled_BH1S[0, head, 0].tolist(),
        "bias": None if found.bias is None else _row(found.bias, alpha_BH1S, head).tolist(),
        "mask": (everyone if found.allowed is None else _row(found.allowed, alpha_BH1S, head)).tolist(),
        "weights": alpha_BH1S[0, head, 0].tolist(),
        "read_besides": None if besides_BH1F is None else besides_BH1F[0, head, 0].tolist(),
        "head_output": whole_BH1F[0, head, 0].tolist(),
        "joined": joined_B1M[0, 0].tolist(),
        "output": found.join(joined_B1M)[0, 0].tolist() if found.join else None,
    }


def _row(x: Tensor, like_BH1S: Tensor, head: int) -> Tensor:
    return x.expand_as(like_BH1S)[0, head, 0]


@contextmanager
def _watched(model: nn.Module, name: str) -> Iterator[list[Call]]:
    """The calls of one module while the `with` lasts."""
    module = dict(model.named_modules()).get(name, model)
    calls: list[Call] = []

    def note(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        names = ("x", "memory", "allowed", "place", "previous")
        calls.append(Call(given[0].shape[1], dict(zip(names, given, strict=False)) | named))

    hook = module.register_forward_hook(note, with_kwargs=True) if isinstance(module, HasSteps) else None
    try:
        yield calls
    finally:
        if hook:
            hook.remove()


def _call_of(calls: list[Call], query: int) -> tuple[Call, int]:
    """The call that computed query number `query`, and its place there."""
    for call in calls:
        if query < call.queries:
            return call, query
        query -= call.queries
    raise AssertionError("every query was computed by some call")


def _query(module: nn.Module, call: Call, place: int) -> Query:
    if isinstance(module, MultiHeadAttention):
        return _of_heads(module, call, place)
    assert isinstance(module, CrossAttention)
    return _of_reader(module, call, place)


def _of_heads(module: MultiHeadAttention, call: Call, place: int) -> Query:
    memory, offset = call.given["memory"], call.given.get("place", 0) + place
    query_BH1E = _split(module.query(call.given["x"][:, place : place + 1]), module.heads)
    positions, bias, read = module.positions, None, None
    if positions is not None:
        query_BH1E = positions.turn(query_BH1E, offset)
        bias = positions.bias(query_BH1E, memory.length, offset)
        read = (lambda alpha: positions.read(alpha, offset)) if positions.reads else None
    key, value_BHSF = (spread(each, module.heads) for each in memory)
    allowed = _of_query(call.given.get("allowed"), place)
    position_B1 = torch.full((1, 1), offset, device=query_BH1E.device)
    return Query(
        module.score, module.weigh, query_BH1E, key, value_BHSF, allowed, bias, position_B1, None, read, module.output
    )


def _of_reader(module: CrossAttention, call: Call, place: int) -> Query:
    one = slice(place, place + 1)
    query_BH1E = _split(module.query(call.given["x"][:, one]), module.heads)
    key, value_BHSF = call.given["memory"]
    allowed, position_B1 = _of_query(call.given["allowed"], place), call.given["place"][:1, one]
    previous = call.given.get("previous")
    return Query(
        module.score, module.weigh, query_BH1E, key, value_BHSF, allowed, None, position_B1, previous, None, None
    )


def _of_query(allowed: Tensor | None, place: int) -> Tensor | None:
    """The mask's row of one query."""
    return allowed if allowed is None or allowed.shape[2] == 1 else allowed[:, :, place : place + 1]


def _split(x_B1D: Tensor, heads: int) -> Tensor:
    return torch.unflatten(x_B1D, -1, (heads, -1)).transpose(1, 2)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
