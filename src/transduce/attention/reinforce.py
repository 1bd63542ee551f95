"""How an attention that chooses learns to choose: REINFORCE (Williams 1992; Xu et al. 2015, section 4.1).

    with choices() as made:
        logits = model(source, target)
    loss = cross_entropy + surrogate(made.log_probability, reward, size)

Inside the `with`, hard attention that samples leaves the log-probability of what it chose. Outside it, it samples all
the same, but no gradient flows to the scores by which it chose.

Shapes: B batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor


class Choices:
    """What was chosen so far.

    log_probability: (B,), log p of all choices made for each row, summed over layers, heads and queries; None = nobody
    chose. Those of padded queries are among them: they change no reward, and so add noise to the gradient, not bias.
    """

    def __init__(self) -> None:
        self.log_probability: Tensor | None = None

    def add(self, log_probability_B: Tensor) -> None:
        """Called by attention that has chosen."""
        self.log_probability = (
            log_probability_B if self.log_probability is None else self.log_probability + log_probability_B
        )


_choices: ContextVar[Choices | None] = ContextVar("transduce_attention_choices", default=None)


@contextmanager
def choices() -> Iterator[Choices]:
    """Every choice made while the `with` lasts. They nest (the inner one wins) and threads do not see each other's."""
    made = Choices()
    token = _choices.set(made)
    try:
        yield made
    finally:
        _choices.reset(token)


def active_choices() -> Choices | None:
    """Who asks for choices now, or None."""
    return _choices.get()


def surrogate(log_probability_B: Tensor, reward_B: Tensor, size_B: Tensor) -> Tensor:
    """A scalar whose gradient is, on average over the choices, that of minus the expected reward by way of them.

        - sum_b (r_b - baseline_b) log p_b

    The baseline is what the other rows were rewarded for a unit of size, times the row's own size. As it does not
    depend on the row's own choices, it takes away noise and adds no bias. A row alone has none: 0.

    Args:
        reward_B: r, such as the log-likelihood of each sentence; no gradient goes this way.
        size_B: what rewards grow with, such as a sentence's number of tokens.
    """
    reward_B = reward_B.detach()
    others_B = size_B.sum() - size_B
    baseline_B = torch.where(others_B > 0, size_B * (reward_B.sum() - reward_B) / others_B.clamp(min=1), 0)
    return -((reward_B - baseline_B) * log_probability_B).sum()
