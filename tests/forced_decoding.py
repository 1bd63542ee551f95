"""Forced decoding: the scores of given outputs, computed step by step. The slow reference for scoring."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.models.protocols import Steps
from transduce.search.batch_request import BatchRequest
from transduce.search.hypothesis import Hypothesis
from transduce.search.length import UNRULED, LengthRule
from transduce.search.request import Request
from transduce.search.stepwise import follow


@torch.inference_mode()
def forced(
    model: Steps,
    source: Padded | None,
    targets: Sequence[Sequence[int]],
    *,
    start: int,
    end: int,
    rule: LengthRule = UNRULED,
    device: torch.device | str | None = None,
) -> list[Hypothesis]:
    """The hypotheses with the tokens `targets`, one for each row of the source.

    Args:
        model: the model.
        source: the sources; None for a model without a source.
        targets: token ids without the start token, and with the end token if it should count.
        start, end: token ids.
        rule: the length rule of `score`.
        device: the model's device; needed only without a source.

    Raises:
        InputError: a target is empty, continues after its end token, or has a token that is not in the vocabulary.
        TransduceError: the model returned invalid log-probabilities.
    """
    refuse_unusable(targets, end)
    if not targets:
        return []
    place = torch.device(device or "cpu") if source is None else source.values.device
    requests = [Request(len(target), prefix=target, line=line) for line, target in enumerate(targets)]
    job = BatchRequest(model, source, requests, start, end, (), place)
    target_NT = pad_sequence([torch.tensor(target) for target in targets], batch_first=True)

    def given(log_probabilities_NV: Tensor, path_N: Tensor, time: int) -> Tensor:
        return target_NT[path_N, time]

    return follow(job, given, rule)


def refuse_unusable(targets: Sequence[Sequence[int]], end: int) -> None:
    """Raises InputError for targets that no search could have found."""
    problems = []
    for row, target in enumerate(targets):
        if not target:
            problems.append(f"forced: target {row} is empty; give at least the end token {end}.")
        elif min(target) < 0:
            problems.append(f"forced: target {row} holds {min(target)}; token ids start at 0.")
        elif end in target[:-1]:
            problems.append(f"forced: target {row} goes on after its end token {end}; cut it there.")
    if problems:
        raise InputError(problems)
