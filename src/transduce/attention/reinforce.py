"""REINFORCE for hard attention, which samples the keys that it reads (Williams 1992; Xu et al. 2015, section 4.1).

    with choices() as made:
        logits = model(source, target)
    loss = cross_entropy + surrogate(made.log_probability, reward, size)

Inside the `with` block, hard attention records the log-probability of its samples. Outside, it samples too, but its
scores get no gradient.

Shapes: B batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor


class Choices:
    """The choices recorded so far.

    log_probability: (B,), log p of all choices for each row, summed over layers, heads and queries; None = there were
    none. Choices of padded queries are included. They change no reward, so they add variance to the gradient but no
    bias.
    """

    def __init__(self) -> None:
        self.log_probability: Tensor | None = None

    def add(self, log_probability_B: Tensor) -> None:
        """Record choices; hard attention calls this."""
        self.log_probability = (
            log_probability_B if self.log_probability is None else self.log_probability + log_probability_B
        )


_choices: ContextVar[Choices | None] = ContextVar("transduce_attention_choices", default=None)


@contextmanager
def choices() -> Iterator[Choices]:
    """Record every choice inside the `with` block. If nested, the inner block records. Each thread has its own."""
    made = Choices()
    token = _choices.set(made)
    try:
        yield made
    finally:
        _choices.reset(token)


def active_choices() -> Choices | None:
    """The record of the innermost `choices` block in this thread, or None outside any."""
    return _choices.get()


def surrogate(log_probability_B: Tensor, reward_B: Tensor, size_B: Tensor) -> Tensor:
    """A scalar whose gradient is an unbiased estimate of the gradient of minus the expected reward.

        - sum_b (r_b - baseline_b) log p_b

    The baseline of a row is the reward of the other rows per unit of size, times the row's own size. It does not depend
    on the row's own choices, so it reduces variance without adding bias. For a single row it is 0.

    Args:
        log_probability_B: log p of the choices of each row.
        reward_B: r, such as the log-likelihood of each sentence; it gets no gradient.
        size_B: what rewards grow with, such as the number of tokens of a sentence.
    """
    reward_B = reward_B.detach()
    others_B = size_B.sum() - size_B
    baseline_B = torch.where(others_B > 0, size_B * (reward_B.sum() - reward_B) / others_B.clamp(min=1), 0)
    return -((reward_B - baseline_B) * log_probability_B).sum()
