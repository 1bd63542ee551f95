"""Exhaustive search: every output up to the limit. The oracle of the other searches, for tiny vocabularies.

Shapes: N hypotheses of one sentence and one length, V vocabulary, T tokens so far.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.errors import InputError
from transduce.models.protocols import Tree, select
from transduce.search.hypothesis import Hypothesis, hypothesis, rank
from transduce.search.job import Job
from transduce.search.length import normalised
from transduce.search.settings import Search

MOST_LEAVES = 2_000_000
AT_ONCE = 4096  # hypotheses in one step of the model


def search(job: Job, settings: Search) -> list[list[Hypothesis]]:
    """The `nbest` best of all outputs of each row, best first.

    Raises:
        InputError: there are more than `MOST_LEAVES` outputs to look at.
    """
    memory, state = job.begin()
    return [_row(job, settings, row, memory, state) for row in range(job.rows)]


def leaves(choices: int, steps: int) -> int:
    """Outputs of at most `steps` tokens: after each of `choices` tokens an output may end or go on."""
    return sum(int(choices**step) for step in range(steps + 1))


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Beginnings of one length, in the order of their token ids.

    tokens, values: (N, 1 + T) the start token and its 0, then the tokens and their log-probabilities.
    """

    tokens: Tensor
    values: Tensor
    state: Tree


def _row(job: Job, settings: Search, row: int, memory: Tree, state: Tree) -> list[Hypothesis]:
    """Depth first over the tree of outputs, in parts small enough for one step."""
    row_1 = torch.tensor([row])
    start_11, zero_11 = torch.full((1, 1), job.start), torch.zeros(1, 1, dtype=torch.float64)
    waiting = [Prefixes(start_11, zero_11, select(state, row_1.to(job.device)))]
    best: list[Hypothesis] = []
    while waiting:
        part = waiting.pop()
        time, rows = part.tokens.shape[1] - 1, len(part.tokens)
        of_row = select(memory, row_1.expand(rows).to(job.device))
        log_probabilities_NV, state = job.step(part.tokens[:, -1], of_row, part.state, time)
        if time == 0:
            _refuse_too_many(job, row, log_probabilities_NV.shape[1])
        permitted_NV = job.permitted(log_probabilities_NV, row_1.expand(rows), time)
        parent_M, token_M, value_M = _continuations(permitted_NV)
        token_MT = torch.cat([part.tokens[parent_M], token_M[:, None]], dim=1)
        value_MT = torch.cat([part.values[parent_M], value_M[:, None]], dim=1)
        ended_M = token_M == job.end
        full = time + 1 == job.limits[row]
        for over_M, has_ended in ((ended_M, True), (~ended_M & full, False)):
            best = rank(best + _best(token_MT[over_M], value_MT[over_M], has_ended, settings), settings.nbest)
        if not full:
            for going_N in torch.split((~ended_M).nonzero()[:, 0], AT_ONCE):
                after = select(state, parent_M[going_N].to(job.device))
                waiting.append(Prefixes(token_MT[going_N], value_MT[going_N], after))
    return best


def _continuations(log_probabilities_NV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Parents, tokens and log-probabilities, (M,) each, of all continuations that are not impossible."""
    parent_M, token_M = (log_probabilities_NV > -torch.inf).nonzero(as_tuple=True)
    return parent_M.cpu(), token_M.cpu(), log_probabilities_NV[parent_M, token_M].to("cpu", torch.float64)


def _best(token_MT: Tensor, value_MT: Tensor, ended: bool, settings: Search) -> list[Hypothesis]:
    """The `nbest` best of outputs of one length."""
    score_M = normalised(
        value_MT.sum(dim=1), torch.tensor(token_MT.shape[1] - 1.0).to(value_MT), settings.alpha
    )
    order_M = score_M.argsort(descending=True, stable=True)[: settings.nbest]
    return [
        hypothesis(tokens, values, ended, settings.alpha)
        for tokens, values in zip(token_MT[order_M, 1:].tolist(), value_MT[order_M, 1:].tolist(), strict=True)
    ]


def _refuse_too_many(job: Job, row: int, vocabulary: int) -> None:
    choices = vocabulary - len({job.end, *job.forbidden})
    steps = job.limits[row] - len(job.prefixes[row])
    many = leaves(choices, steps)
    if many > MOST_LEAVES:
        raise InputError(
            f"exhaustive search: line {job.lines[row]} has {many:.3g} outputs of up to {job.limits[row]} "
            f"tokens, from {choices} and the end token; at most {MOST_LEAVES} can be looked at. "
            'Lower max_length_factor and max_length_offset, or use method "beam".'
        )
