"""A batch that does not fit into memory is trained on in pieces, whose gradients add up to the whole one's.

The loss is a sum over target tokens, so that of the pieces adds up, and what is drawn for the batch as a whole, as the
words that a model that fills must tell, is drawn before it is cut. Without dropout the gradient is the uncut batch's
to rounding. Dropout draws other noise for pieces than for the whole (and batch norm, and the baseline of an attention
that chooses, see other companions), but the same for the same pieces: a `MicrobatchPlan` is all that one must remember
to repeat an update bit for bit.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transduce.core.errors import TransduceError
from transduce.core.model_file import lasting_tensors
from transduce.core.padded import joined
from transduce.data.collate import Batch
from transduce.objectives.protocols import CarriesState, Loss, Objective
from transduce.training.checkpoint import Carried
from transduce.training.memory import is_out_of_memory
from transduce.training.precision import autocast

MicrobatchPlan = list[list[int]]  # for each batch of an update, how many rows each of its pieces has


class ExampleTooLarge(TransduceError):
    """One example alone does not fit into memory. It is row `row` of batch number `batch` of the update."""

    def __init__(self, batch: int, row: int, positions: Sequence[int]) -> None:
        """positions: of each of its sequences."""
        self.batch, self.row = batch, row
        super().__init__(
            f"An example of {' and '.join(map(str, positions))} positions does not fit into memory by itself. Make "
            "the model smaller, leave out long examples ([data.filters] max_tokens, or a shorter context), or train "
            "on a machine with more memory."
        )


class _Full(NamedTuple):
    """Where memory ran out: batch number `batch` of the update, its piece number `piece`."""

    batch: int
    piece: int


def uncut(batches: Sequence[Batch]) -> MicrobatchPlan:
    return [[batch.examples] for batch in batches]


def add_gradients(
    model: nn.Module,
    objective: Objective,
    batches: Sequence[Batch],
    cuts: MicrobatchPlan,
    precision: str,
    carried: Carried | None = None,
    units: float | None = None,
    cut: bool = True,
) -> tuple[float, MicrobatchPlan]:
    """The gradient of the mean loss over all `batches` into the parameters, which have none; the loss reported.

    Where memory runs out, everything is begun anew with that piece in halves: same random numbers, same buffers, and
    nothing of the half-done gradient is left. The second result is how the batches were cut in the end.

    Args:
        carried: the state that the batches go on from, where the objective carries one; then that after them.
        units: what both are divided by, where other processes have a part of the batches; None = those of `batches`.
            A batch without any is computed, as others wait for it, and counts nowhere.
        cut: whether a batch may be cut where memory runs out; else the error is raised.

    Raises:
        ExampleTooLarge: a piece of one example does not fit.
    """
    before = {name: tensor.clone() for name, tensor in running_statistics(model).items()}
    device = next(model.parameters()).device
    units = sum(batch.units for batch in batches) if units is None else units
    drawn, drawn_there = torch.get_rng_state(), torch.cuda.get_rng_state() if device.type == "cuda" else None
    carried = carried or Carried()
    while isinstance(found := _attempt(model, objective, batches, cuts, precision, carried, units), _Full):
        if not cut:
            raise TransduceError(
                'Out of memory. With training.parallel = "fsdp" a batch is not trained on in pieces: make batch.tokens '
                "smaller, or start more processes. The last checkpoint is intact."
            )
        model.zero_grad(set_to_none=True)
        for name, tensor in running_statistics(model).items():
            tensor.copy_(before[name])
        if drawn_there is not None:
            torch.cuda.empty_cache()
            torch.cuda.set_rng_state(drawn_there)
        torch.set_rng_state(drawn)
        cuts = _halved(cuts, found, batches[found.batch])
    return found, cuts


def _attempt(
    model: nn.Module,
    objective: Objective,
    batches: Sequence[Batch],
    cuts: MicrobatchPlan,
    precision: str,
    carried: Carried,
    units: float,
) -> float | _Full:
    loss, state = 0.0, carried.state
    for number, (given, rows) in enumerate(zip(batches, cuts, strict=True)):
        batch, states = given.after(state), []
        for place, (part, drawn) in enumerate(_cut(objective, batch, rows, objective.draw(model, batch))):
            try:
                with autocast(precision, part.device):
                    (minimised, reported), after = _loss_and_state(objective, model, part, drawn)
                (minimised / units if batch.units else minimised * 0.0).backward()  # type: ignore[no-untyped-call]
                loss += reported.item() / units if batch.units else 0.0
                states.append(after)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                return _Full(number, place)  # the error holds all that was computed, and goes here
        state = joined(states)
    carried.state = state
    return loss


def _loss_and_state(objective: Objective, model: nn.Module, part: Batch, drawn: Any) -> tuple[Loss, Any]:
    if isinstance(objective, CarriesState):
        return objective.loss_and_state(model, part, drawn)
    return objective.loss(model, part, drawn), None


def _cut(objective: Objective, batch: Batch, rows: list[int], drawn: Any) -> Iterator[tuple[Batch, Any]]:
    """The parts of `batch`, each no wider than its longest row, with what was drawn for them."""
    if len(rows) == 1:
        yield batch, drawn
        return
    first = 0
    for count in rows:
        place = slice(first, first + count)
        part = batch.rows(place)
        yield part, objective.rows(drawn, place, part)
        first += count


def _halved(cuts: MicrobatchPlan, full: _Full, batch: Batch) -> MicrobatchPlan:
    rows = cuts[full.batch]
    count = rows[full.piece]
    if count == 1:
        row = sum(rows[: full.piece])
        raise ExampleTooLarge(full.batch, row, [int(each.lengths[row]) for each in batch.sequences()])
    halves = [*rows[: full.piece], count // 2, count - count // 2, *rows[full.piece + 1 :]]
    return [*cuts[: full.batch], halves, *cuts[full.batch + 1 :]]


def running_statistics(model: nn.Module) -> dict[str, Tensor]:
    """What a forward pass in training changes, besides gradients."""
    return {name: each for name, each in lasting_tensors(model).items() if not isinstance(each, nn.Parameter)}
