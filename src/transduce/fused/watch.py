"""Packed weights that are changed behind torch's back: how predictions notice it.

torch counts changes of a tensor in place (`Snapshot`), but not those through `weight.data` or through a NumPy array
that shares the memory. To compare whole weights before each prediction would take too long, so a sample is compared.
"""

import numpy as np
from numpy.typing import NDArray
from torch import nn

from transduce.fused.pack import pack_again
from transduce.fused.spec import CHANGES
from transduce.kernels.matmul import PacksOwnWeight
from transduce.kernels.weight_sample import WeightSample


class FollowsWeights:
    """Base class of what predicts with a packed model: whoever asks it for `model` gets one that is up to date."""

    _watched: "_Watched"

    @property
    def model(self) -> nn.Module:
        """The torch module, packed again if its weights are not what was packed."""
        return self._watched.current()

    @model.setter
    def model(self, model: nn.Module) -> None:
        self._watched = _Watched(model)


class _Watched:
    """A model, and what its packed weights were when they were packed."""

    def __init__(self, model: nn.Module) -> None:
        self._model = model
        self._changes = -1
        self._packing: list[PacksOwnWeight] = []
        self._samples: list[WeightSample] = []
        self._then: NDArray[np.int64] = np.empty(0, np.int64)

    def current(self) -> nn.Module:
        """The model, packed again if its weights are not what was packed."""
        if self._stale():
            pack_again(self._model)
        return self._model

    def _stale(self) -> bool:
        if self._changes != CHANGES.count:
            self._packing = [each for each in self._model.modules() if isinstance(each, PacksOwnWeight)]
            self._changes = CHANGES.count
        samples = [each.sample for each in self._packing if each.sample]
        if samples != self._samples:
            self._samples, self._then = samples, _joined([each.then for each in samples])
        return not np.array_equal(_joined([view for each in samples for view in each.now]), self._then)


def _joined(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
