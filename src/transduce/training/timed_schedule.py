"""A learning-rate schedule that is at 0 when `training.minutes` are used up.

How many updates there will be is not known before they are made, so it is planned again and again by the speed of late.
Each plan says how much of the schedule is done, at which update all of it will be, and until which update it holds. It
stands in log.jsonl before the first update that follows it: one that is repeated after a kill has the rate that it had.

The learning rate as a function of the update: pure, so that a resumed run needs nothing remembered.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from transduce.recipe.training import TrainingConfig
from transduce.runtime.event_log import Log
from transduce.training.progress import Progress

ENDING = ("cosine", "linear")  # schedules that are at 0 at `config.updates`, and under minutes at their end

EVENT = "plan"  # in log.jsonl
FIRST = 4  # updates before the first plan; then each holds for as many as were made so far, at most,
OFTEN = 0.01  # and for this share of the minutes
RECENT = 0.1  # share of the minutes in which the speed is measured, long enough for a validation


@dataclass(frozen=True)
class Plan:
    """What holds for the updates `update` + 1 .. `until`.

    done: share of the schedule that is done after `update`; None: the schedule goes by updates alone, which are not
        expected to take all the time.
    ends: the update at which all of it will be done.
    minutes, updates: the limits that it was made for.
    """

    update: int
    done: float | None
    ends: int
    until: int
    minutes: float
    updates: int

    def share(self, update: int, warmup: int) -> float:
        """Of the schedule that is done at `update`: grows from the end of the warm-up to `ends`.

        A warm-up that takes more than half of all updates is cut short by the end.
        """
        assert self.done is not None
        begin = max(self.update, min(warmup, self.ends // 2))
        left = min(1.0, max(0, update - begin) / max(1, self.ends - begin))
        return self.done + (1 - self.done) * left

    def values(self) -> dict[str, Any]:
        """For the log, which has a place of its own for the update."""
        return {name: value for name, value in asdict(self).items() if name != "update"}


NAMES = tuple(field.name for field in fields(Plan))


class TimedSchedule:
    """The rates of a training, planned where `minutes` limit a schedule that ends.

    Args:
        events: of the run's log, also of updates that will be repeated.
    """

    def __init__(self, config: TrainingConfig, events: Iterable[Mapping[str, Any]], progress: Progress) -> None:
        self._config = config
        self._timed = config.minutes is not None and config.schedule in ENDING
        found = list(_plans(events, progress.raised[-1][1] if progress.raised else config.updates))
        self._noted = {plan.update: plan for plan in found if self._is_for_these_limits(plan)}
        earlier = [plan for plan in found if plan.update <= progress.update]
        self._plan = max(earlier, key=lambda plan: plan.update) if earlier else None
        self._calls, self._marks = 0, deque([(progress.update, progress.seconds)])  # by which the speed is measured

    @property
    def minutes_before(self) -> float | None:
        """Those that the newest plan was made for; None where there is none."""
        return None if self._plan is None else self._plan.minutes

    def rate(self, update: int) -> float:
        """The learning rate of an update, counted from 1."""
        if not self._timed or self._plan is None or self._plan.done is None:
            return learning_rate(self._config, update)
        share = self._plan.share(update, self._config.warmup)
        return self._config.learning_rate * warmed(self._config, update) * decayed(self._config, share)

    def next(self, progress: Progress, log: Log) -> float:
        """The rate of the update after `progress`, by a new plan if it is time for one, which is noted first."""
        if plan := self.planned(progress):
            log.write(EVENT, progress.update, **plan.values())
        return self.rate(progress.update + 1)

    def planned(self, progress: Progress) -> Plan | None:
        """The plan that holds from now on, if it is time for another; to be asked before every update."""
        config, before, update = self._config, self._plan, progress.update
        if not self._timed or config.minutes is None:
            return None
        self._calls += 1
        if self._calls == 2:
            self._marks = deque([(update, progress.seconds)])  # the first update of a process is slow
        same = before is None or self._is_for_these_limits(before)
        if same and update < (before.until if before else FIRST):
            return None
        self._plan = self._noted.get(update) or self._made(progress, config.minutes)
        return self._plan

    def _is_for_these_limits(self, plan: Plan) -> bool:
        return (plan.minutes, plan.updates) == (self._config.minutes, self._config.updates)

    def _made(self, progress: Progress, minutes: float) -> Plan:
        config, before, update = self._config, self._plan, progress.update
        pace = self._pace(progress, RECENT * 60 * minutes)
        in_time = update + max(1, round((60 * minutes - progress.seconds) * pace))
        ends = min(in_time, config.updates)
        until = update + max(1, min(update, round(OFTEN * 60 * minutes * pace)))
        done = None
        if before is not None and before.done is not None:
            done = before.share(update, config.warmup)
            if not self._is_for_these_limits(before):
                done *= min(1.0, before.ends / ends)  # of the longer training, less is done
        elif in_time < config.updates:
            done = max(0, update - config.warmup) / max(1, config.updates - config.warmup)
        return Plan(update, done, ends, until, minutes, config.updates)

    def _pace(self, progress: Progress, window: float) -> float:
        """Updates a second over the last `window` seconds, as the machine may have become faster or slower."""
        marks = self._marks
        while len(marks) > 1 and marks[1][1] <= progress.seconds - window:
            marks.popleft()
        made, seconds = progress.update - marks[0][0], progress.seconds - marks[0][1]
        if not made:  # in this process
            made, seconds = progress.update, progress.seconds
        marks.append((progress.update, progress.seconds))
        return max(made, 1) / max(seconds, 1e-6)


def _plans(events: Iterable[Mapping[str, Any]], updates: int) -> Iterator[Plan]:
    """Those in a log; updates: what those of earlier versions, which do not say it, were made for."""
    for event in events:
        known = {"updates": updates, **event}
        if event.get("event") == EVENT and known.keys() >= {*NAMES}:
            yield Plan(*(known[name] for name in NAMES))


def learning_rate(config: TrainingConfig, update: int) -> float:
    """The rate of update number `update`, counted from 1: linear warm-up, then the schedule's decay.

    cosine        half a cosine from the peak down to 0 at `config.updates` (Loshchilov & Hutter 2017)
    linear        straight from the peak down to 0 there (Bergsma et al. 2025, "Straight to Zero")
    inverse_sqrt  peak * sqrt(warmup / update) (Vaswani et al. 2017, equation 3, with its peak given directly)
    constant      the peak
    """
    return config.learning_rate * warmed(config, update) * _decay(config, update)


def warmed(config: TrainingConfig, update: int) -> float:
    """The share of the peak that the warm-up has reached."""
    return min(1.0, update / config.warmup) if config.warmup else 1.0


def decayed(config: TrainingConfig, done: float) -> float:
    """What is left of the peak in a schedule that ends, of which the share `done` is done."""
    return 1 - done if config.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * done))


def _decay(config: TrainingConfig, update: int) -> float:
    if update <= config.warmup or config.schedule == "constant":
        return 1.0
    if config.schedule == "inverse_sqrt":
        return math.sqrt(max(config.warmup, 1) / update)
    return decayed(config, min(1.0, (update - config.warmup) / max(1, config.updates - config.warmup)))
