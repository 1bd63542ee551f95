"""The coverage penalty, for outputs that do not attend to all of their source (Wu et al. 2016, equation 14).

    cp = beta * sum_s log(min(sum_t alpha_ts, 1))

The sum over t is the total attention that source position s received from all output tokens, including the end token.
The sum over s includes all source positions, including the end token. alpha is the mean over all heads of all attention
modules that declare role "cross" (`transduce.attention.capture`), for any architecture. The penalty is added to the
score by which finished hypotheses are ranked. During beam search, only probability counts.

Shapes: N hypotheses, S source positions, H heads, T queries.
"""

from typing import Any

import torch
from torch import Tensor, nn

from transduce.attention.capture import Record, capture
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.models.protocols import Steps, Tree

LEAST = 1e-6  # least attention of a position: sparse normalizers can give 0, and no penalty should be infinite


class Coverage:
    """A wrapper that implements `Steps` and keeps the sum of each hypothesis's attention in the state.

    Search uses it in place of the model, so the sum is reordered with the rest of the state.

    Raises:
        InputError: the model has no source, or is not a module whose attention can be recorded.
    """

    def __init__(self, model: Steps, beta: float) -> None:
        if not isinstance(model, nn.Module):
            raise InputError("search: coverage needs a torch module, whose attention can be recorded.")
        self.model: Any = model
        self.beta = beta

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        """The model's memory with the mask of real positions, and its state with a sum of 0."""
        if source is None:
            raise InputError("search: coverage needs a source, but this model reads none; leave it at 0.")
        memory, state = self.model.start(source, rows)
        read_BS = torch.zeros(source.values.shape[:2], dtype=torch.float64, device=source.values.device)
        return (memory, source.mask()), (state, read_BS)

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        """The model's log-probabilities, and its state with this step's attention added to the sum."""
        (inner_memory, _), (inner_state, read_NS) = memory, state
        with capture(self.model) as record:
            log_probabilities_NV, inner_state = self.model.step(token, inner_memory, inner_state)
        return log_probabilities_NV, (inner_state, read_NS + self._attention(record, read_NS.shape[1]))

    def penalty(self, memory: Tree, state: Tree) -> Tensor:
        """(N,) float64 on the CPU: the penalty cp of each hypothesis, at most 0."""
        (_, real_NS), (_, read_NS) = memory, state
        each_NS = read_NS.clamp(LEAST, 1.0).log().masked_fill(~real_NS, 0.0)
        return self.beta * each_NS.sum(1).cpu()

    def _attention(self, record: Record, positions: int) -> Tensor:
        """(N, S): alpha of this step."""
        reading = [name for name in sorted(record.of("cross")) if record[name][-1].shape[-1] == positions]
        if not reading:
            raise InputError(
                "search: coverage needs attention over the source, and this model records none over its "
                f"{positions} positions (recorded: {', '.join(record) or 'nothing'}); leave coverage at 0, or "
                'declare role = "cross" in your own module that attends to the source.'
            )
        last_NHS = torch.cat([record[name][-1][:, :, -1].double() for name in reading], dim=1)
        return last_NHS.mean(1)
