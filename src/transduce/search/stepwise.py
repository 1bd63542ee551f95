"""Search along single paths: at each step a function chooses one token.

Greedy search, sampling and forced decoding differ only in this function.
Shapes: B sentences, P paths (of all sentences), N paths that have not ended, V vocabulary, T positions.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from transduce.models.protocols import Tree
from transduce.search.batch_request import BatchRequest, reordered
from transduce.search.hypothesis import Hypothesis, hypothesis
from transduce.search.length import LengthRule
from transduce.search.request import Step

# (log-probabilities (N, V), -inf for what is not permitted; paths (N,); position) -> tokens (N,)
Choose = Callable[[Tensor, Tensor, int], Tensor]


def follow(
    batch: BatchRequest, choose: Choose, rule: LengthRule, copies: int = 1, started: tuple[Tree, Tree] | None = None
) -> list[Hypothesis]:
    """The hypotheses of `copies` paths for each row, in order: path p belongs to row p // copies.

    started: the result of `batch.begin()`, if it was called already.
    """
    paths, longest = batch.rows * copies, max(batch.limits)
    limit_P = torch.tensor(batch.limits).repeat_interleave(copies)
    token_PT = torch.zeros(paths, longest, dtype=torch.int64)
    value_PT = torch.zeros(paths, longest, dtype=torch.float64)
    length_P = limit_P.clone()
    penalty_P = torch.zeros(paths, dtype=torch.float64)

    path_N, token_N = torch.arange(paths), torch.full((paths,), batch.start)
    memory, state = (reordered(tree, path_N // copies, batch.rows, batch.device) for tree in started or batch.begin())
    for time in range(longest):
        log_probabilities_NV, state = batch.step(token_N, memory, state, time)
        log_probabilities_NV = batch.permitted(log_probabilities_NV, path_N // copies, token_PT[path_N, :time])
        token_N = choose(log_probabilities_NV, path_N, time)
        value_N = log_probabilities_NV.gather(1, token_N[:, None].to(batch.device))[:, 0]
        token_N = token_N.cpu()
        token_PT[path_N, time], value_PT[path_N, time] = token_N, value_N.cpu().double()
        if batch.on_step:
            total_N = value_PT[path_N, : time + 1].sum(1)
            batch.on_step(Step(path_N // copies, token_PT[path_N, : time + 1], total_N))
        if batch.coverage is not None:
            penalty_P[path_N] = batch.penalty(memory, state, len(path_N))
        ended_N = token_N == batch.end
        length_P[path_N[ended_N]] = time + 1
        going_N = (~ended_N & (limit_P[path_N] > time + 1)).nonzero()[:, 0]
        if len(going_N) == 0:
            break
        memory, state = (reordered(tree, going_N, len(path_N), batch.device) for tree in (memory, state))
        path_N, token_N = path_N[going_N], token_N[going_N]
    return [
        hypothesis(tokens[:length], values[:length], tokens[length - 1] == batch.end, rule, penalty)
        for tokens, values, length, penalty in zip(
            token_PT.tolist(), value_PT.tolist(), length_P.tolist(), penalty_P.tolist(), strict=True
        )
    ]
