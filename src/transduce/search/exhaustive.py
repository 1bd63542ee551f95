"""Exhaustive search over every output up to the limit: the reference for other methods, for tiny vocabularies.

Shapes: N hypotheses of one sentence and one length, V vocabulary, T tokens so far.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.models.protocols import Tree, select
from transduce.search.batch_request import BatchRequest
from transduce.search.hypothesis import Hypothesis, hypothesis, rank
from transduce.search.settings import Search

MOST_LEAVES = 2_000_000
AT_ONCE = 4096  # hypotheses in one step of the model


def search(batch: BatchRequest, settings: Search) -> list[list[Hypothesis]]:
    """The `nbest` best of all outputs of each row, best first.

    Raises:
        InputError: there are more than `MOST_LEAVES` outputs.
    """
    memory, state = batch.begin()
    return [_row(batch, settings, row, memory, state) for row in range(batch.rows)]


def leaves(choices: int, steps: int) -> int:
    """The number of outputs of at most `steps` tokens, if each of `choices` tokens may end an output or continue it."""
    return sum(int(choices**step) for step in range(steps + 1))


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Partial outputs of the same length, in the order of their token ids.

    tokens, values: (N, 1 + T) the start token and its 0, then the tokens and their log-probabilities.
    penalties: (N,) float64, see `BatchRequest.penalty`.
    state, row: the model's state of hypothesis n is row[n] of `state`.
    """

    tokens: Tensor
    values: Tensor
    penalties: Tensor
    state: Tree
    row: Tensor

    def chosen(self, selected: Tensor) -> "Beginnings":
        """Those selected by `selected`, a mask or indices."""
        return Beginnings(
            self.tokens[selected], self.values[selected], self.penalties[selected], self.state, self.row[selected]
        )


def _row(batch: BatchRequest, settings: Search, row: int, memory: Tree, state: Tree) -> list[Hypothesis]:
    """The best outputs of a row, found depth first over the tree of outputs, in parts small enough for one step."""
    row_1, zero_11 = torch.tensor([row]), torch.zeros(1, 1, dtype=torch.float64)
    waiting = [Beginnings(torch.full((1, 1), batch.start), zero_11, zero_11[0], state, row_1)]
    best: list[Hypothesis] = []
    while waiting:
        grown = _grown(batch, row, waiting.pop(), memory)
        ended_M = grown.tokens[:, -1] == batch.end
        best += _best(batch, row, grown.chosen(ended_M), True, settings)
        going = grown.chosen(~ended_M)
        if going.tokens.shape[1] - 1 == batch.requests[row].limit:
            best += _best(batch, row, going, False, settings)
        else:
            parts = torch.split(torch.arange(len(going.tokens)), AT_ONCE)
            waiting += [going.chosen(part_N) for part_N in parts if len(part_N)]
        best = rank(best, settings.nbest)
    return best


def _grown(batch: BatchRequest, row: int, part: Beginnings, memory: Tree) -> Beginnings:
    """Every possible continuation of `part` by one token."""
    rows, time = len(part.tokens), part.tokens.shape[1] - 1
    row_N = torch.full((rows,), row)
    memory, state = select(memory, row_N.to(batch.device)), select(part.state, part.row.to(batch.device))
    log_probabilities_NV, state = batch.step(part.tokens[:, -1], memory, state, time)
    if time == 0:
        _refuse_too_many(batch, row, log_probabilities_NV.shape[1])
    value_NV = batch.permitted(log_probabilities_NV, row_N, part.tokens[:, 1:]).cpu().double()
    parent_M, token_M = (value_NV > -torch.inf).nonzero(as_tuple=True)
    tokens_MT = torch.cat([part.tokens[parent_M], token_M[:, None]], dim=1)
    values_MT = torch.cat([part.values[parent_M], value_NV[parent_M, token_M, None]], dim=1)
    return Beginnings(tokens_MT, values_MT, batch.penalty(memory, state, rows)[parent_M], state, parent_M)


def _best(batch: BatchRequest, row: int, outputs: Beginnings, ended: bool, settings: Search) -> list[Hypothesis]:
    """The `nbest` best of outputs of one length."""
    total_M = outputs.values.sum(dim=1)
    length_M = torch.full_like(total_M, outputs.tokens.shape[1] - 1)
    score_M = settings.length.normalised(total_M, length_M) + outputs.penalties
    distance_M = torch.zeros_like(length_M)
    if not ended and batch.rules is not None and batch.rules.must:
        distance_M = torch.tensor([batch.rules.distance(row, tokens) for tokens in outputs.tokens[:, 1:].tolist()])
    order_M = score_M.argsort(descending=True, stable=True)
    order_M = order_M[distance_M[order_M].argsort(stable=True)][: settings.nbest]
    listed, distance_M = outputs.chosen(order_M), distance_M[order_M]
    parts = (listed.tokens[:, 1:], listed.values[:, 1:], listed.penalties, distance_M)
    return [
        hypothesis(tokens, values, ended, settings.length, penalty, int(distance))
        for tokens, values, penalty, distance in zip(*(part.tolist() for part in parts), strict=True)
    ]


def _refuse_too_many(batch: BatchRequest, row: int, vocabulary: int) -> None:
    choices = vocabulary - len({batch.end, *batch.forbidden})
    if batch.shortlist is not None:
        choices = int(batch.shortlist[row].sum()) - 1
    request = batch.requests[row]
    steps = request.limit - len(request.prefix)
    many = leaves(choices, steps)
    if many > MOST_LEAVES:
        raise InputError(
            f"exhaustive search: line {request.line} has about 10^{math.log10(many):.0f} outputs of "
            f"up to {request.limit} tokens, from {choices} and the end token; at most {MOST_LEAVES} can be "
            "looked at. "
            'Lower max_length_factor and max_length_offset, or use method "beam".'
        )
