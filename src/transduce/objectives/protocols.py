"""The contract of what training minimises."""

from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from torch import Tensor

from transduce.data.collate import Batch


class Loss(NamedTuple):
    """Both in nats, summed over the batch's units.

    minimised: what has the gradient. It differs from `reported` where something besides the loss is learnt from, as
        where attention chose.
    reported: the loss, without gradient.
    """

    minimised: Tensor
    reported: Tensor


class Objective(Protocol):
    """A loss that is a sum over units, so that a batch may be cut into parts whose gradients add up."""

    unit: ClassVar[str]
    """What the loss is a mean over, in a word: token, label."""

    def draw(self, model: Any, batch: Batch) -> Any:
        """Whatever is random of a loss, drawn by torch's generator for the whole batch; None where nothing is."""
        ...

    def rows(self, drawn: Any, place: slice, part: Batch) -> Any:
        """What of `drawn` is for the rows `place` of its batch, which are `part`."""
        ...

    def loss(self, model: Any, batch: Batch, drawn: Any) -> Loss:
        """Of a batch or a part of one, with what was drawn for it.

        Raises:
            InputError: this model cannot be trained so.
        """
        ...

    def log_probabilities(self, model: Any, batch: Batch) -> Tensor:
        """(B, N) fp64 log-probability of each unit of each example, in evaluation; 0 behind a row's last."""
        ...


@runtime_checkable
class CarriesState(Protocol):
    """An objective whose batches go on from the state that the one before left."""

    def loss_and_state(self, model: Any, batch: Batch, drawn: Any) -> tuple[Loss, Any]:
        """`Objective.loss` of a batch with its state, and the state after it, a tree without gradient."""
        ...

    def evaluated(self, model: Any, batch: Batch) -> tuple[Tensor, Any]:
        """`Objective.log_probabilities` of a batch with its state, and the state after it."""
        ...


class Deterministic:
    """An objective that draws nothing for a batch as a whole."""

    def draw(self, model: Any, batch: Batch) -> None:
        """Nothing."""
        return

    def rows(self, drawn: None, place: slice, part: Batch) -> None:
        """Nothing either."""
        return
