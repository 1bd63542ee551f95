"""Under minutes a schedule that falls to 0 is there when they are used up, whatever the speed; and what is repeated
after a kill has the rates that it had."""

import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest

from forked import start
from transduce.recipe.training import TrainingConfig
from transduce.runtime.event_log import read_log
from transduce.training.progress import Progress
from transduce.training.timed_schedule import EVENT, TimedSchedule, learning_rate

Speed = Callable[[int], float]
"""Seconds that an update takes, by its number."""


BEGINNING = Progress()


def config(**table: Any) -> TrainingConfig:
    least = {"minutes": 1, "updates": 1_000_000, "warmup": 20, "learning_rate": 2e-3, "schedule": "linear"}
    return TrainingConfig.model_validate({**least, **table})


def lived(
    settings: TrainingConfig,
    speed: Speed,
    events: list[dict[str, Any]],
    since: Progress = BEGINNING,
    most: int = 10**9,
) -> list[float]:
    """The rates of a training from `since` on, to its end or to `most` updates; its plans go into `events`."""
    progress = replace(since)
    schedule, rates = TimedSchedule(settings, list(events), progress), []
    events[:] = [event for event in events if event["update"] <= progress.update]  # as a log does
    assert settings.minutes is not None
    while progress.seconds < 60 * settings.minutes and progress.update < min(settings.updates, most):
        if plan := schedule.planned(progress):
            events.append({"event": EVENT, "update": progress.update, **plan.values()})
        rates.append(schedule.rate(progress.update + 1))
        progress.update += 1
        progress.seconds += speed(progress.update)
    return rates


SPEEDS: dict[str, Speed] = {
    "steady": lambda update: 0.05,
    "a slow beginning": lambda update: 5.0 if update == 1 else 0.05,
    "half as fast from the middle": lambda update: 0.05 if update < 600 else 0.1,
    "twice as fast from the middle": lambda update: 0.1 if update < 300 else 0.05,
    "validations": lambda update: 2.0 if update % 100 == 0 else 0.05,
    "up and down": lambda update: 0.05 * (1.5 + math.sin(update / 40)),
    "few": lambda update: 2.0,
}


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
@pytest.mark.parametrize("speed", SPEEDS.values(), ids=SPEEDS.keys())
def test_the_rate_is_0_when_the_minutes_are_used_up(speed: Speed, schedule: str) -> None:
    settings = config(schedule=schedule, warmup=5)
    rates = lived(settings, speed, [])
    assert rates[4] == 2e-3  # the peak, at the end of the warm-up
    assert rates[-1] <= 0.05 * 2e-3
    assert all(later <= earlier + 1e-15 for earlier, later in pairwise(rates[4:]))
    assert sum(rates) / len(rates) > 0.3 * 2e-3  # and not there long before


SUDDEN: dict[str, Speed] = {
    "twelve times as fast from the middle": lambda update: 1.0 if update <= 30 else 0.08,
    "twelve times as slow from the middle": lambda update: 0.08 if update <= 375 else 1.0,
}


@pytest.mark.parametrize("name", [*SPEEDS, *SUDDEN])
def test_the_rate_falls_as_the_time_passes(name: str) -> None:
    """By a linear schedule, after half of the time it is half of the peak: measured anew, the speed is that of now."""
    speed = {**SPEEDS, **SUDDEN}[name]
    rates = lived(config(warmup=5), speed, [])
    passed = [*accumulate((speed(update) for update in range(1, len(rates))), initial=0.0)]
    for rate, seconds in list(zip(rates, passed, strict=True))[5:]:
        assert 1 - rate / 2e-3 == pytest.approx(seconds / 60, abs=0.15)


def test_at_a_steady_speed_it_is_the_schedule_of_as_many_updates() -> None:
    rates = lived(config(), lambda update: 0.05, [])
    known = config(minutes=None, updates=len(rates))
    assert rates == pytest.approx([learning_rate(known, update + 1) for update in range(len(rates))], abs=2e-5)


def test_minutes_that_are_not_used_up_change_no_bit() -> None:
    settings = config(updates=700, schedule="cosine")
    rates = lived(settings, lambda update: 0.05, [])
    assert rates == [learning_rate(settings, update) for update in range(1, 701)]


@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt"])
def test_a_schedule_that_never_ends_knows_no_time(schedule: str) -> None:
    settings, events = config(schedule=schedule), list[dict[str, Any]]()
    assert lived(settings, lambda update: 1, events)[:50] == [learning_rate(settings, n) for n in range(1, 51)]
    assert events == []


def test_a_warm_up_longer_than_the_time_still_ends_at_0() -> None:
    rates = lived(config(warmup=10_000), lambda update: 0.1, [])
    assert rates[-1] < 0.1 * max(rates)


@pytest.mark.parametrize("checkpoint", [2, 40, 333])
@pytest.mark.parametrize("killed", [5, 45, 400, 401, 402, 403, 404, 405])
def test_what_is_repeated_after_a_kill_has_the_rates_it_had(checkpoint: int, killed: int) -> None:
    events: list[dict[str, Any]] = []
    first = lived(config(), lambda update: 0.05, events, most=killed)
    since = Progress(update=checkpoint, seconds=0.05 * checkpoint)
    again = lived(config(), lambda update: 0.08, events, since)  # on a machine with other work by now
    repeated = min(len(first) - checkpoint, len(again))
    assert again[: max(repeated, 0)] == first[checkpoint:]
    assert again[-1] <= 0.05 * 2e-3
    updates = [event["update"] for event in events]
    assert updates == sorted(set(updates))


def test_more_minutes_later_go_on_from_where_they_would_be() -> None:
    events: list[dict[str, Any]] = []
    first = lived(config(), lambda update: 0.05, events)
    assert first[-1] < 1e-5
    since = Progress(update=len(first), seconds=60)
    longer = lived(config(minutes=2), lambda update: 0.05, events, since)
    assert longer[0] == pytest.approx(1e-3, rel=0.05)  # half of the time is used up
    assert longer[-1] <= 0.05 * 2e-3


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
@pytest.mark.parametrize("most", [100, 700])
def test_more_updates_later_go_on_from_where_they_would_be(most: int, schedule: str) -> None:
    """The updates ended it just before its time did, by a schedule of time."""
    events: list[dict[str, Any]] = []
    pace = lambda update: (62.0 if update < 10 else 58.0) / most  # noqa: E731  # slow at first: planned by time
    first = lived(config(updates=most, schedule=schedule, warmup=5), pace, events)
    assert len(first) == most
    assert any(event["done"] is not None for event in events)
    assert first[-1] < 0.02 * 2e-3
    since = Progress(update=most, seconds=59, planned=2 * most, raised=[[most, most]])
    longer = lived(config(updates=2 * most, minutes=3, schedule=schedule, warmup=5), pace, events, since)
    assert len(longer) == most
    assert longer[0] == pytest.approx(1e-3, rel=0.06)  # half of the updates are made
    assert longer[-1] <= 0.05 * 2e-3
    assert all(later <= earlier + 1e-15 for earlier, later in pairwise(longer))


@pytest.mark.parametrize("noted", [True, False], ids=["now", "by an earlier version"])
def test_more_updates_in_the_time_that_is_left(noted: bool) -> None:
    """The updates ended it at half of its time; twice as many in the same time go on at half of the rate."""
    events: list[dict[str, Any]] = []
    first = lived(config(updates=600), lambda update: 0.12 if update < 30 else 0.05, events)
    assert len(first) == 600
    assert any(event["done"] is not None for event in events)
    if not noted:
        events = [{key: value for key, value in event.items() if key != "updates"} for event in events]
    since = Progress(update=600, seconds=32, raised=[[600, 600]])
    longer = lived(config(updates=1200), lambda update: 0.05, events, since)
    assert longer[0] == pytest.approx(1e-3, rel=0.1)
    assert longer[-1] <= 0.05 * 2e-3


def test_plans_end_with_the_updates_if_these_are_made_before_the_time_is_over() -> None:
    events: list[dict[str, Any]] = []
    rates = lived(config(updates=600), lambda update: 0.12 if update < 30 else 0.05, events)
    timed = [event for event in events if event["done"] is not None]
    assert timed
    assert all(event["ends"] <= 600 for event in events)
    assert rates[-1] <= 0.05 * 2e-3  # by the end that there is, not by one that the time would allow


def test_less_time_than_before_goes_on_from_the_same_rate_and_ends_in_it() -> None:
    events: list[dict[str, Any]] = []
    first = lived(config(minutes=2), lambda update: 0.05, events, most=600)
    rest = lived(config(minutes=0.75), lambda update: 0.05, events, Progress(update=600, seconds=30))
    assert rest[0] == pytest.approx(first[-1], rel=0.01)
    assert 0 <= rest[-1] <= 0.05 * 2e-3
    assert all(0 <= later <= earlier for earlier, later in pairwise(rest))


def test_a_plan_holds_for_no_more_updates_than_its_speed_was_measured_in() -> None:
    """As the first few may be much faster than the others."""
    events: list[dict[str, Any]] = []
    lived(config(warmup=2), lambda update: 0.001 if update < 10 else 0.05, events)
    assert all(event["until"] <= 2 * event["update"] for event in events)


def test_plans_are_few() -> None:
    events: list[dict[str, Any]] = []
    assert len(lived(config(), lambda update: 0.001, events)) >= 60_000
    assert len(events) < 150


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")
def test_a_killed_training_repeats_its_rates_and_losses(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    timed = ("training.updates=1000000", "training.minutes=2", "training.schedule=linear", "training.log_every=1")
    timed += ("training.checkpoint_every=50", "training.validate_every=1000000")

    def killed_after(events: int) -> None:
        process = start(tmp_path, "train", tiny_recipe, *timed, "--run", run)
        while process.is_alive() and len(read_log(run / "log.jsonl")) < events:
            time.sleep(0.002)
        assert process.is_alive(), "the training ended by itself"
        os.kill(process.pid, signal.SIGKILL)
        process.join()

    killed_after(130)
    shutil.copy(run / "log.jsonl", tmp_path / "before.jsonl")
    killed_after(len(read_log(run / "log.jsonl")) + 20)

    def told(log: Path) -> dict[int, tuple[float, float]]:
        events = [event for event in read_log(log) if event["event"] == "train"]
        return {event["update"]: (event["learning_rate"], event["loss"]) for event in events}

    before, after = told(tmp_path / "before.jsonl"), told(run / "log.jsonl")
    both = sorted(before.keys() & after.keys())
    assert len(both) == len(before)
    assert len(after) > len(before)
    assert [after[update] for update in both] == [before[update] for update in both]
