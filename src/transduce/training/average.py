"""A moving average of the weights (Polyak & Juditsky 1992): what is validated and shipped."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from transduce.core.model_file import lasting_tensors


class MovingAverage:
    """Exponential moving average of a model's parameters and lasting buffers; decay 0 is the model itself.

    in_place: whether parameters must stay the tensors they are, which takes a copy of each to swap it.

    Early on the decay is at most (1 + n) / (10 + n) after n updates, so that the random start is soon forgotten.
    """

    def __init__(self, model: nn.Module, decay: float, in_place: bool = False) -> None:
        self.decay, self.in_place = decay, in_place
        self._parameters = lasting_tensors(model)
        self._average = {n: p.detach().clone() for n, p in self._parameters.items()} if decay else {}

    @torch.no_grad()
    def update(self, updates: int) -> None:
        """Move towards the model's weights after its update number `updates`."""
        if self.decay:
            decay = min(self.decay, (1 + updates) / (10 + updates))
            torch._foreach_lerp_(list(self._average.values()), list(self._parameters.values()), 1 - decay)

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """The model has the averaged weights inside, its own again after."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        for name, average in self._average.items():
            parameter = self._parameters[name]
            if self.in_place:
                held = parameter.detach().clone()
                parameter.copy_(average)
                average.copy_(held)
            else:
                parameter.data, self._average[name] = average, parameter.data

    def tensors(self) -> dict[str, Tensor]:
        """The averaged weights by parameter name; empty when there is no average."""
        return self._average

    def restore(self, tensors: dict[str, Tensor]) -> None:
        for name, value in tensors.items():
            self._average[name].copy_(value)
