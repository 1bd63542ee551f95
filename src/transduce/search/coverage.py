"""Coverage: an output that leaves parts of its source unread pays for it (Wu et al. 2016, equation 14).

    cp = beta * sum_s log(min(sum_t alpha_ts, 1))

The sum over t is the attention that source position s got while the output was written, the end token included; that
over s takes in every position of the source, its end token too. alpha is the mean over all heads of all attentions that
say they look at the source (role "cross", see `transduce.attention.capture`), whatever architecture it is. The penalty
is added to the score that hypotheses are ranked by; which live on in a beam is decided by probability alone.

Shapes: N hypotheses, S source positions, H heads, T queries.
"""

from typing import Any

import torch
from torch import Tensor, nn

from transduce.attention.capture import Record, capture
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.models.protocols import Steps, Tree

LEAST = (
    1e-6  # of attention, counted for a position that got none, as sparse weighings give it: no output costs infinity
)


class Coverage:
    """A model that steps, and keeps what each hypothesis has read: its sum over attention stands in the state.

    It stands in the place of the model, so that it is reordered with the rest of the state.

    Raises:
        InputError: the model reads no source, or is no module whose attention could be recorded.
    """

    def __init__(self, model: Steps, beta: float) -> None:
        if not isinstance(model, nn.Module):
            raise InputError("search: coverage needs a torch module, whose attention can be recorded.")
        self.model: Any = model
        self.beta = beta

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        """The model's, with which source positions are real, and attention of none."""
        if source is None:
            raise InputError("search: coverage is of a source, and this model reads none; leave it at 0.")
        memory, state = self.model.start(source, rows)
        read_BS = torch.zeros(source.values.shape[:2], dtype=torch.float64, device=source.values.device)
        return (memory, source.mask()), (state, read_BS)

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        """The model's, with the attention of this step added."""
        (inner_memory, _), (inner_state, read_NS) = memory, state
        with capture(self.model) as record:
            log_probabilities_NV, inner_state = self.model.step(token, inner_memory, inner_state)
        return log_probabilities_NV, (inner_state, read_NS + self._attention(record, read_NS.shape[1]))

    def penalty(self, memory: Tree, state: Tree) -> Tensor:
        """(N,) float64 on the CPU: cp of each hypothesis, at most 0."""
        (_, real_NS), (_, read_NS) = memory, state
        each_NS = read_NS.clamp(LEAST, 1.0).log().masked_fill(~real_NS, 0.0)
        return self.beta * each_NS.sum(1).cpu()

    def _attention(self, record: Record, positions: int) -> Tensor:
        """(N, S): alpha of this step."""
        reading = [name for name in sorted(record.of("cross")) if record[name][-1].shape[-1] == positions]
        if not reading:
            raise InputError(
                "search: coverage needs attention over the source, and this model records none over its "
                f"{positions} positions (recorded: {', '.join(record) or 'nothing'}); leave coverage at 0, or say "
                'role = "cross" in a module of your own that attends to the source.'
            )
        last_NHS = torch.cat([record[name][-1][:, :, -1].double() for name in reading], dim=1)
        return last_NHS.mean(1)
