"""Training, top to bottom: the whole order of things in one place.

    read a batch -> predict -> loss -> gradient -> update -> average -> log | validate | checkpoint

Every random number of an update comes from (seed, update, rank) and the order of batches from (seed, epoch), so a
resumed run needs to remember counters, not generators, and goes on bit for bit as if it had never stopped. Where a
state is carried from batch to batch, a checkpoint holds it.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count, islice
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from transduce.core.errors import Interrupted, TransduceError
from transduce.core.model_file import lasting_tensors
from transduce.data.batches import BatchPlan, Rows
from transduce.data.collate import Batch
from transduce.models.protocols import FollowsUpdates
from transduce.recipe.training import TrainingConfig
from transduce.runtime.event_log import Log
from transduce.runtime.process_group import ProcessGroup
from transduce.training.checkpoint import Checkpoints, TrainingState
from transduce.training.microbatches import ExampleTooLarge, MicrobatchPlan, add_gradients, running_statistics, uncut
from transduce.training.prefetch import prefetch, worth_prefetching
from transduce.training.progress import Progress
from transduce.training.signals import StopRequest
from transduce.training.timed_schedule import TimedSchedule, learning_rate

Metrics = dict[str, float]
KEPT = "kept_"  # before a metric's name: of the examples that `training.kept` names


@dataclass(frozen=True)
class Callbacks:
    """What the loop hands out and gets back, so that it depends on nobody's presence.

    validate: metrics of the model as it stands ("loss" among them; with training.kept also under `KEPT`); None = no
        validation data.
    lower_is_better: of the metric that `training.best` names.
    show: told after every update: progress, loss in nats a token, learning rate, tokens a second.
    warn: told what a person should know.
    name: the example in a row of a store, for a message.
    """

    validate: Callable[[], Metrics] | None
    show: Callable[[Progress, float, float, float], None]
    warn: Callable[[str], None]
    name: Callable[[int, int], str]
    lower_is_better: bool = True


def train(
    config: TrainingConfig,
    trained: TrainingState,
    batches: BatchPlan,
    load: Callable[[Any], Batch],
    checkpoints: Checkpoints,
    log: Log,
    callbacks: Callbacks,
    stop: StopRequest,
    precision: str,
    cuts: Mapping[int, MicrobatchPlan] = MappingProxyType({}),
    plans: Iterable[Mapping[str, Any]] = (),
) -> str:
    """Train until the updates, the minutes or the patience are used up; says which.

    Every process of `trained.group` calls this, with the same batches, and does the same updates.

    Args:
        cuts: how the batches of these updates were cut when they were made before, for want of memory.
        plans: events of the log, with plans of the schedule for such updates.

    Raises:
        Interrupted: someone asked to stop; everything is saved.
        TransduceError: the loss is not a number any more, or an example alone does not fit into memory.
    """
    updates = _loaded(_stream(batches, trained.progress), config.accumulate, trained.group, load)
    with (
        prefetch(updates)
        if worth_prefetching(next(trained.model.parameters()).device)
        else nullcontext(updates) as updates
    ):
        return _train(config, trained, updates, checkpoints, log, callbacks, stop, precision, cuts, plans)


def _train(
    config: TrainingConfig,
    trained: TrainingState,
    updates: "Iterator[_Loaded]",
    checkpoints: Checkpoints,
    log: Log,
    callbacks: Callbacks,
    stop: StopRequest,
    precision: str,
    cuts: Mapping[int, MicrobatchPlan],
    plans: Iterable[Mapping[str, Any]],
) -> str:
    """As `train`, with what each update reads."""
    progress, group = trained.progress, trained.group
    clock = _Clock(progress, group)
    meter = _Meter.resumed(progress)
    if config.kept and callbacks.validate and not progress.start:
        _measure_start(config, trained, checkpoints, log, callbacks)
        clock.tick()
        meter = _Meter(progress.seconds)
    schedule = TimedSchedule(config, plans, progress)
    while (reason := why_ended(config, progress)) is None:
        group.pulse.beat()
        read, before = next(updates), cuts.get(progress.update + 1)
        rate = schedule.next(progress, log)
        try:
            loss, tokens, cut = make_update(config, trained, read.batches, precision, before, rate)
        except ExampleTooLarge as error:
            raise _named(error, read.rows[error.batch], callbacks) from None
        progress.update += 1
        _note_cuts(cut, group, progress, log, callbacks)
        progress.tokens += tokens
        progress.epoch, progress.batch = read.epoch, read.last + 1
        clock.tick()
        meter.add(loss, tokens, progress.seconds)
        callbacks.show(progress, meter.recent_loss, rate, meter.speed)
        if progress.update % config.log_every == 0:
            _log(log, progress, meter, rate)
            meter = _Meter(progress.seconds, meter)
        last = why_ended(config, progress) is not None
        group.pulse.rest()
        if callbacks.validate and (progress.update % config.validate_every == 0 or last):
            _validate(config, trained, checkpoints, log, callbacks.validate, callbacks.lower_is_better)
            clock.tick()
            meter = _Meter(progress.seconds, meter)
            last = why_ended(config, progress) is not None  # patience, or minutes that the validation took
        asked = group.total(bool(stop))[0] > 0  # looked at once: a signal may come between the next two lines
        if progress.update % config.checkpoint_every == 0 or last or asked:
            progress.unlogged = meter.sums()
            checkpoints.save(trained)
        if asked and not last:
            raise _interrupted(stop, progress)
    return reason


def make_update(
    config: TrainingConfig,
    trained: TrainingState,
    batches: list[Batch],
    precision: str,
    cuts: MicrobatchPlan | None = None,
    rate: float | None = None,
) -> tuple[float, int, MicrobatchPlan]:
    """One update from `batches`: the loss in nats a target token, how many tokens, how the batches were cut.

    Loss and tokens are those of all processes; batches and cuts are this process' own.

    rate: the learning rate; None: the schedule's.
    """
    update, group = trained.progress.update + 1, trained.group
    torch.manual_seed(derived_seed(config.seed, update, group.rank))
    trained.model.train()
    if isinstance(trained.model, FollowsUpdates):
        trained.model.begin_update(update)
    model, cuts = trained.model, cuts or uncut(batches)
    (units,) = group.total(sum(batch.units for batch in batches))
    loss, cuts = add_gradients(
        model, trained.objective, batches, cuts, precision, trained.carried, units, cut=not group.lockstep
    )
    (loss,) = group.total(loss)
    if not math.isfinite(loss):
        raise TransduceError(
            f"The loss of update {update} is {loss}. A lower training.learning_rate, a longer training.warmup or "
            "training.clip usually helps; the last checkpoint is intact."
        )
    group.sum_gradients(model.parameters())
    group.copy_from_first_in_place(running_statistics(model).values())
    if config.clip:
        nn.utils.clip_grad_norm_(trained.model.parameters(), config.clip)
    trained.optimizers.step(learning_rate(config, update) if rate is None else rate)
    trained.average.update(update)
    return loss, int(units), cuts


class _Loaded(NamedTuple):
    """What an update reads: this process' rows of each batch and the batches of them; where the last one stands."""

    rows: list[Rows]
    batches: list[Batch]
    epoch: int
    last: int


def _loaded(
    stream: Iterator[tuple[int, int, Rows]], accumulate: int, group: ProcessGroup, load: Callable[[Any], Batch]
) -> Iterator[_Loaded]:
    """Update by update, without end."""
    while True:
        rows = list(islice(stream, accumulate))
        own = [share for _, _, each in rows if (share := group.share(each)) is not None]
        yield _Loaded(own, [_counted(load(each), each) for each in own], rows[-1][0], rows[-1][1])


def _counted(batch: Batch, rows: Rows) -> Batch:
    """A batch that stands in for none of this process' own, as others wait for it, counts nowhere."""
    return batch._replace(units=0) if rows.stands_in else batch


def _interrupted(stop: StopRequest, progress: Progress) -> Interrupted:
    saved = f"after update {progress.update}; saved. The same command goes on from here."
    return Interrupted(f"Stopped by {stop.signal or 'a signal to another process'} {saved}")


def _named(error: ExampleTooLarge, rows: Rows, callbacks: Callbacks) -> TransduceError:
    """The error with the example's name."""
    return TransduceError(f"{callbacks.name(int(rows.stores[error.row]), int(rows.rows[error.row]))}: {error}")


def _log(log: Log, progress: Progress, meter: "_Meter", rate: float) -> None:
    values = {"loss": meter.loss, "learning_rate": rate, "tokens_per_second": meter.speed}
    log.write("train", progress.update, epoch=progress.epoch, seconds=progress.seconds, **values)


def _note_cuts(cuts: MicrobatchPlan, group: ProcessGroup, progress: Progress, log: Log, callbacks: Callbacks) -> None:
    """Batches that were trained on in pieces are counted, logged with their pieces, and the first one is told."""
    pieces = [rows for rows in cuts if len(rows) > 1]
    (found,) = group.total(len(pieces))
    if not found:
        return
    if not progress.in_pieces and pieces:
        callbacks.warn(
            f"Update {progress.update}: out of memory with {sum(pieces[0])} examples at once, so they were trained on "
            f"in pieces of {', '.join(map(str, pieces[0]))}. More such updates stand in log.jsonl. A smaller "
            'batch.tokens, or "auto", is faster.'
        )
    progress.in_pieces += int(found)
    every = group.gathered(cuts)
    log.write("in_pieces", progress.update, rows=every[0] if group.world == 1 else every)


def derived_seed(*parts: int) -> int:
    """One 64-bit seed out of several numbers, so that near ones give unrelated streams."""
    return int(np.random.SeedSequence(parts).generate_state(1, np.uint64)[0] >> np.uint64(1))


def _stream(batches: BatchPlan, progress: Progress) -> Iterator[tuple[int, int, Any]]:
    """(epoch, batch, rows) from where `progress` stands, without end."""
    start = progress.batch
    for epoch in count(progress.epoch):
        plan = batches.epoch(epoch, start)
        yield from ((epoch, number, rows) for number, rows in enumerate(plan, start))
        start = 0


def _measure_start(
    config: TrainingConfig, trained: TrainingState, checkpoints: Checkpoints, log: Log, callbacks: Callbacks
) -> None:
    """What the model to start from can do, by both sets; it is the best so far."""
    assert callbacks.validate is not None
    _validate(config, trained, checkpoints, log, callbacks.validate, callbacks.lower_is_better)
    trained.progress.start = {name: value for name, value in trained.progress.best.items() if name != "update"}


def _validate(
    config: TrainingConfig,
    trained: TrainingState,
    checkpoints: Checkpoints,
    log: Log,
    validate: Callable[[], Metrics],
    lower_is_better: bool,
) -> None:
    progress = trained.progress
    with trained.average.swapped_in():
        metrics = validate()
        if not math.isfinite(metrics["loss"]):
            raise TransduceError(
                f"The validation loss after update {progress.update} is {metrics['loss']}: the model has diverged, or "
                "the validation data holds no token. The last checkpoint is intact."
            )
        log.write("validation", progress.update, tokens=progress.tokens, seconds=progress.seconds, **metrics)
        if not progress.best or _is_better(judged(metrics, config), judged(progress.best, config), lower_is_better):
            progress.best, progress.stale = {"update": progress.update, **metrics}, 0
            weights = trained.group.whole(lasting_tensors(trained.model))
            if trained.group.first:
                checkpoints.save_best(weights, progress.update)
        else:
            progress.stale += 1


def judged(metrics: Metrics, config: TrainingConfig) -> float:
    """What picks the best weights: the metric `training.best`; with training.kept its mean over both sets."""
    value = metrics[config.best]
    return value if config.kept is None else (value + metrics[KEPT + config.best]) / 2


def _is_better(value: float, best: float, lower_is_better: bool) -> bool:
    return value < best if lower_is_better else value > best


def why_ended(config: TrainingConfig, progress: Progress) -> str | None:
    """Why a training that stands there is at its end; None where it goes on."""
    if progress.update >= config.updates:
        return f"all {config.updates} updates done"
    if config.minutes is not None and progress.seconds >= config.minutes * 60:
        return f"{config.minutes:.3g} minutes used"
    if config.patience is not None and progress.stale >= config.patience:
        return f"no better validation in {config.patience}"
    return None


class _Clock:
    """Adds the time that passes to `progress.seconds`; all processes go by that of the first."""

    def __init__(self, progress: Progress, group: ProcessGroup) -> None:
        self._progress, self._group = progress, group
        self._last = time.monotonic()

    def tick(self) -> None:
        now = time.monotonic()
        (passed,) = self._group.total(now - self._last if self._group.first else 0.0)
        self._progress.seconds += passed
        self._last = now


class _Meter:
    """Mean loss and speed since it was made; the recent loss reaches back to where the one before was made."""

    def __init__(self, since: float, before: "_Meter | None" = None) -> None:
        self._since = since
        self._nats = self._tokens = self._seconds = 0.0
        self._before = (before._nats, before._tokens) if before else (0.0, 0.0)

    @classmethod
    def resumed(cls, progress: Progress) -> "_Meter":
        """One that has counted what the checkpoint says that no line of the log has."""
        sums = progress.unlogged or {"nats": 0.0, "tokens": 0, "seconds": 0.0}
        meter = cls(progress.seconds - sums["seconds"])
        meter._nats, meter._tokens, meter._seconds = sums["nats"], sums["tokens"], sums["seconds"]
        return meter

    def sums(self) -> dict[str, float]:
        return {"nats": self._nats, "tokens": self._tokens, "seconds": self._seconds}

    def add(self, loss: float, tokens: int, seconds: float) -> None:
        self._nats += loss * tokens
        self._tokens += tokens
        self._seconds = seconds - self._since

    @property
    def loss(self) -> float:
        return self._nats / self._tokens

    @property
    def recent_loss(self) -> float:
        nats, tokens = self._before
        return (nats + self._nats) / (tokens + self._tokens)

    @property
    def speed(self) -> float:
        return self._tokens / self._seconds if self._seconds else 0.0
