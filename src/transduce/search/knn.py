"""Search with a datastore: nearest neighbor machine translation (Khandelwal et al. 2021, equations 2 and 3).

    p_knn(w)  ~  sum_i [w = v_i] exp(-d_i^2 / T)                     over the k nearest entries of the datastore
    p(w)      =  lambda p_knn(w) + (1 - lambda) p_model(w)
    lambda    =  weight max(0, 1 - d_1^2 / R)

d_i is the distance between the decoder's state and the key of entry i, and v_i the token that followed there. The paper
has one lambda for all tokens (R = infinity, `distance` unset). The line above lets lambda fall with the distance of the
nearest entry, as the "distance-aware adapter" of Dai et al. 2023 ("Simple and scalable nearest neighbor machine
translation") does: what is far from everything in the memory is left to the model.

Shapes: N hypotheses, V vocabulary, D width, K nearest entries.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.models.protocols import StepsWithHidden, Tree, stands_in
from transduce.search.datastore import Datastore, KnnSettings
from transduce.search.nearest import Nearest, neighbors_of

FAR = 1e30  # squared distance from which on an entry is none at all


class Recalled(NamedTuple):
    """What the memory says of the next token.

    entry: (N, K) int64, the nearest entries. distance: (N, K) float64, squared. value: (N, K) int64, their tokens.
    weight: (N, K) float64, the softmax of -d^2 / T, which sums to 1. share: (N,) float64, lambda.
    """

    entry: Tensor
    distance: Tensor
    value: Tensor
    weight: Tensor
    share: Tensor

    @property
    def chance(self) -> Tensor:
        """(N, K) float64: p_knn of each entry's token, from all entries that have it."""
        same_NKK = self.value[:, :, None] == self.value[:, None, :]
        return (same_NKK * self.weight[:, None, :]).sum(2)


class Memory:
    """A datastore that can be searched, on the device of its model.

    Args:
        settings: in place of the datastore's own.
    """

    def __init__(self, store: Datastore, device: torch.device, settings: KnnSettings | None = None) -> None:
        self.store, self.settings = store, settings or store.settings
        self.values_N = store.values.to(device).long()
        self._neighbors = neighbors_of(store.keys.to(device))

    def with_settings(self, settings: KnnSettings) -> "Memory":
        """The same entries, used otherwise."""
        other = object.__new__(Memory)
        other.__dict__.update(self.__dict__ | {"settings": settings})
        return other

    def nearest(self, hidden_ND: Tensor, count: int) -> Nearest:
        """The nearest entries of decoder states."""
        return self._neighbors.nearest(hidden_ND, count)

    def recall(self, hidden_ND: Tensor) -> Recalled:
        """What the entries nearest to decoder states say."""
        found = self.nearest(hidden_ND, self.settings.k)
        return recalled(found, self.values_N[found.entry], self.settings)


def recalled(found: Nearest, value_NK: Tensor, settings: KnnSettings) -> Recalled:
    """What so many nearest entries say, with these settings."""
    distance_NK, entry_NK = (each[:, : settings.k] for each in found)
    weight_NK = (-distance_NK.clamp(max=FAR) / settings.temperature).softmax(1)
    share_N = share_of(distance_NK[:, 0], settings)
    return Recalled(entry_NK, distance_NK, value_NK[:, : settings.k], weight_NK, share_N)


def share_of(distance_N: Tensor, settings: KnnSettings) -> Tensor:
    """Lambda (N,), by the distance of the nearest entry."""
    share_N = settings.weight * (distance_N < FAR).double()
    return share_N if settings.distance is None else share_N * (1 - distance_N / settings.distance).clamp(min=0)


def mixed(log_probabilities_NV: Tensor, read: Recalled) -> Tensor:
    """log p (N, V) of both: only the tokens of the entries gain, all others are multiplied by 1 - lambda."""
    share_N1 = read.share[:, None]
    rest_N1 = torch.log1p(-share_N1)
    own_NK = log_probabilities_NV.gather(1, read.value).double() + rest_N1
    value_NK = torch.logaddexp(own_NK, (share_N1 * read.chance).log())
    mixed_NV = log_probabilities_NV + rest_N1.to(log_probabilities_NV.dtype)
    return mixed_NV.scatter(1, read.value, value_NK.to(mixed_NV.dtype))


class WithDatastore:
    """A wrapper that implements `Steps`: a model, and a memory for the same model.

    Raises:
        InputError: the model gives no hidden states, or others than the memory's.
    """

    def __init__(self, model: Any, memory: Memory) -> None:
        if not isinstance(model, StepsWithHidden) or not stands_in(model, "step_hidden", "step"):
            raise InputError(
                f"datastore: {type(model).__name__} does not give the states that a datastore holds "
                "(transduce.models.protocols.StepsWithHidden). Leave the datastore out."
            )
        self.model: Any = model
        self.memory = memory

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        """The model's."""
        memory, state = self.model.start(source, rows)
        return memory, state

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        """Log-probabilities (N, V) of both, and the model's state after `token`."""
        hidden_ND, log_probabilities_NV, state = self.model.step_hidden(token, memory, state)
        if self.memory.store.largest_value >= log_probabilities_NV.shape[1]:
            raise InputError("datastore: it holds tokens that are not in the model's vocabulary. Build it again.")
        return mixed(log_probabilities_NV, self.memory.recall(hidden_ND)), state
