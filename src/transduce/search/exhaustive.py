"""Exhaustive search over every output up to the limit: the reference for other methods, for tiny vocabularies.

Shapes: N hypotheses of one sentence and one length, V vocabulary, T tokens so far.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.models.protocols import Tree, select
from transduce.search.hypothesis import Hypothesis, hypothesis, rank
from transduce.search.request import BatchRequest
from transduce.search.settings import Search

MOST_LEAVES = 2_000_000
AT_ONCE = 4096  # hypotheses in one step of the model


def search(job: BatchRequest, settings: Search) -> list[list[Hypothesis]]:
    """The `nbest` best of all outputs of each row, best first.

    Raises:
        InputError: there are more than `MOST_LEAVES` outputs.
    """
    memory, state = job.begin()
    return [_row(job, settings, row, memory, state) for row in range(job.rows)]


def leaves(choices: int, steps: int) -> int:
    """The number of outputs of at most `steps` tokens, if each of `choices` tokens may end an output or continue it."""
    return sum(int(choices**step) for step in range(steps + 1))


@dataclass(frozen=True, slots=True)
class Beginnings:
    """Partial outputs of the same length, in the order of their token ids.

    tokens, values: (N, 1 + T) the start token and its 0, then the tokens and their log-probabilities.
    penalties: (N,) float64, see `Job.penalty`.
    state, row: the model's state of hypothesis n is row[n] of `state`.
    """

    tokens: Tensor
    values: Tensor
    penalties: Tensor
    state: Tree
    row: Tensor

    def chosen(self, these: Tensor) -> "Beginnings":
        """Those selected by `these`, a mask or indices."""
        return Beginnings(self.tokens[these], self.values[these], self.penalties[these], self.state, self.row[these])


def _row(job: BatchRequest, settings: Search, row: int, memory: Tree, state: Tree) -> list[Hypothesis]:
    """The best outputs of a row, found depth first over the tree of outputs, in parts small enough for one step."""
    row_1, zero_11 = torch.tensor([row]), torch.zeros(1, 1, dtype=torch.float64)
    waiting = [Beginnings(torch.full((1, 1), job.start), zero_11, zero_11[0], state, row_1)]
    best: list[Hypothesis] = []
    while waiting:
        grown = _grown(job, row, waiting.pop(), memory)
        ended_M = grown.tokens[:, -1] == job.end
        best += _best(job, row, grown.chosen(ended_M), True, settings)
        going = grown.chosen(~ended_M)
        if going.tokens.shape[1] - 1 == job.limits[row]:
            best += _best(job, row, going, False, settings)
        else:
            parts = torch.split(torch.arange(len(going.tokens)), AT_ONCE)
            waiting += [going.chosen(part_N) for part_N in parts if len(part_N)]
        best = rank(best, settings.nbest)
    return best


def _grown(job: BatchRequest, row: int, part: Beginnings, memory: Tree) -> Beginnings:
    """Every possible continuation of `part` by one token."""
    rows, time = len(part.tokens), part.tokens.shape[1] - 1
    row_N = torch.full((rows,), row)
    memory, state = select(memory, row_N.to(job.device)), select(part.state, part.row.to(job.device))
    log_probabilities_NV, state = job.step(part.tokens[:, -1], memory, state, time)
    if time == 0:
        _refuse_too_many(job, row, log_probabilities_NV.shape[1])
    value_NV = job.permitted(log_probabilities_NV, row_N, part.tokens[:, 1:]).cpu().double()
    parent_M, token_M = (value_NV > -torch.inf).nonzero(as_tuple=True)
    tokens_MT = torch.cat([part.tokens[parent_M], token_M[:, None]], dim=1)
    values_MT = torch.cat([part.values[parent_M], value_NV[parent_M, token_M, None]], dim=1)
    return Beginnings(tokens_MT, values_MT, job.penalty(memory, state, rows)[parent_M], state, parent_M)


def _best(job: BatchRequest, row: int, outputs: Beginnings, ended: bool, settings: Search) -> list[Hypothesis]:
    """The `nbest` best of outputs of one length."""
    total_M = outputs.values.sum(dim=1)
    length_M = torch.full_like(total_M, outputs.tokens.shape[1] - 1)
    score_M = settings.length.normalised(total_M, length_M) + outputs.penalties
    distance_M = torch.zeros_like(length_M)
    if not ended and job.rules is not None and job.rules.must:
        distance_M = torch.tensor([job.rules.distance(row, tokens) for tokens in outputs.tokens[:, 1:].tolist()])
    order_M = score_M.argsort(descending=True, stable=True)
    order_M = order_M[distance_M[order_M].argsort(stable=True)][: settings.nbest]
    listed, distance_M = outputs.chosen(order_M), distance_M[order_M]
    parts = (listed.tokens[:, 1:], listed.values[:, 1:], listed.penalties, distance_M)
    return [
        hypothesis(tokens, values, ended, settings.length, penalty, int(distance))
        for tokens, values, penalty, distance in zip(*(part.tolist() for part in parts), strict=True)
    ]


def _refuse_too_many(job: BatchRequest, row: int, vocabulary: int) -> None:
    choices = vocabulary - len({job.end, *job.forbidden})
    if job.shortlist is not None:
        choices = int(job.shortlist[row].sum()) - 1
    steps = job.limits[row] - len(job.prefixes[row])
    many = leaves(choices, steps)
    if many > MOST_LEAVES:
        raise InputError(
            f"exhaustive search: line {job.lines[row]} has about 10^{math.log10(many):.0f} outputs of "
            f"up to {job.limits[row]} tokens, from {choices} and the end token; at most {MOST_LEAVES} can be "
            "looked at. "
            'Lower max_length_factor and max_length_offset, or use method "beam".'
        )
