"""The states of a decoder over given targets, step by step as search computes them.

Shapes: B targets, N targets that have not ended, D width, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.core.padded import Padded
from transduce.models.protocols import select


class TargetStep(NamedTuple):
    """One step of all targets that are so long.

    time: the place of the token that is predicted. rows: (N,) int64 on the CPU, whose. tokens: (N,) int64, these
    tokens. hidden: (N, D), from which they are predicted. log_probabilities: (N, V), of every token in their place.
    """

    time: int
    rows: Tensor
    tokens: Tensor
    hidden: Tensor
    log_probabilities: Tensor


def target_steps(
    model: Any, source: Padded | None, targets: Sequence[Sequence[int]], start: int
) -> Iterator[TargetStep]:
    """The steps of targets that were read by teacher forcing.

    Args:
        model: implements `transduce.models.protocols.StepsWithHidden`.
        source: of the targets; None for a model without a source.
        targets: token ids without the start token, with the end token where it is to be predicted; none is empty.
        start: the start token.
    """
    device = torch.device("cpu") if source is None else source.values.device
    length_B = torch.tensor([len(target) for target in targets])
    row_N, token_N = torch.arange(len(targets)), torch.full((len(targets),), start)
    memory, state = model.start(source, len(targets))
    for time in range(int(length_B.max())):
        going_N = (length_B[row_N] > time).nonzero()[:, 0]
        if len(going_N) < len(row_N):
            row_N, token_N = row_N[going_N], token_N[going_N]
            memory, state = (select(tree, going_N.to(device)) for tree in (memory, state))
        hidden_ND, log_probabilities_NV, state = model.step_hidden(token_N.to(device), memory, state)
        token_N = torch.tensor([targets[row][time] for row in row_N.tolist()])
        yield TargetStep(time, row_N, token_N, hidden_ND, log_probabilities_NV)
