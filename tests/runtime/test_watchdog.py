"""Who stands still, of processes that say where they are in a store; and who is not there any more."""

import json
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.runtime import watchdog
from transduce.runtime.watchdog import KNOWN, Pulse, Watchdog, _in_collective

LIMIT = 10.0


class Store(dict[str, str]):
    """What torch's store does here."""

    def set(self, key: str, value: str) -> None:
        self[key] = value

    def check(self, keys: list[str]) -> bool:
        return all(key in self for key in keys)

    def add(self, key: str, number: int) -> int:
        self[key] = str(int(self.get(key, "0")) + number)
        return int(self[key])


class Watched:
    """Three processes that say what they are told to, seen by the first, and a clock that goes as it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.store = 0.0, Store()
        monkeypatch.setattr(watchdog.time, "monotonic", lambda: self.now)
        self.dog = Watchdog(self.store, 0, 3, Pulse(), LIMIT)

    def after(self, seconds: float, **states: dict[str, Any]) -> list[int]:
        """Who stands still once each has said this, every second, for so long."""
        still: list[int] = []
        for _ in range(round(seconds)):
            self.now += 1
            for name, state in states.items():
                rank = int(name.removeprefix("p"))
                beat = {} if state.get("silent") else {"beat": self.now}
                before = json.loads(self.store.get(f"pulse/{rank}", "{}"))
                given = {"step": 1, "in_step": True, "waits": False, "longest": 0.1, "computed": 0, "host": "here"}
                told = {**given, "beat": 0, **before, **beat, "stack": f"of {rank}\n"}
                told |= {key: each(self.now) if callable(each) else each for key, each in state.items()}
                self.store.set(f"pulse/{rank}", json.dumps(told))
            still = self.dog._standing_still()
        return still


def moving(now: float) -> int:
    return round(now)


WORKS = {"step": moving, "computed": moving}
WAITS = {"waits": True}


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    return Watched(monkeypatch)


def test_one_that_computes_nothing_stands_still_and_those_that_wait_for_it_do_not(watched: Watched) -> None:
    assert watched.after(LIMIT, p0=WAITS, p1={}, p2=WAITS) == []
    assert watched.after(3, p0=WAITS, p1={}, p2=WAITS) == [1]


def test_one_that_is_stopped_while_it_waits_stands_still(watched: Watched) -> None:
    watched.after(2, p0=WAITS, p1=WAITS, p2=WAITS)
    assert watched.after(LIMIT + 2, p0=WAITS, p1={"silent": True}, p2=WAITS) == [1]


def test_all_that_wait_for_each_other_stand_still(watched: Watched) -> None:
    assert watched.after(LIMIT, p0=WAITS, p1=WAITS, p2=WAITS) == []
    assert watched.after(3, p0=WAITS, p1=WAITS, p2=WAITS) == [0, 1, 2]


def test_those_that_wait_while_one_works_or_data_moves_do_not(watched: Watched) -> None:
    assert watched.after(5 * LIMIT, p0=WAITS, p1=WORKS, p2=WAITS) == []
    assert watched.after(5 * LIMIT, p0=WAITS, p1={**WAITS, "computed": moving}, p2=WAITS) == []


def test_a_step_that_computes_for_ever_is_given_ten_times_the_longest(watched: Watched) -> None:
    spins = {"step": KNOWN, "computed": moving, "longest": 2.0}
    assert watched.after(2 * LIMIT, p0=WAITS, p1=spins, p2=WAITS) == []
    assert watched.after(3, p0=WAITS, p1=spins, p2=WAITS) == [1]


def test_a_first_step_may_take_far_longer(watched: Watched) -> None:
    assert watched.after(9 * LIMIT, p0=WAITS, p1={"computed": moving}, p2=WAITS) == []


def test_one_that_is_done_is_waited_for_by_nobody(watched: Watched) -> None:
    watched.after(2, p0=WORKS, p1=WORKS, p2=WORKS)
    done = Watchdog(watched.store, 1, 3, Pulse(), LIMIT)
    done.start()
    done.stop()
    assert watched.store["pulse/1"] == "null"  # there, so that reading it never waits
    assert watched.after(5 * LIMIT, p0=WORKS, p2=WORKS) == []


def test_one_that_says_nothing_any_more_is_named_by_the_first_who_knows(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not known yet when the others lose it, so they wait."""
    states = {"p0": WORKS, "p2": WORKS}
    watched.after(3, **states, p1=WORKS)
    gone = {**WORKS, "silent": True, "step": 3, "computed": 3}
    monkeypatch.setattr(watched.dog._done, "wait", lambda seconds: watched.after(seconds, **states, p1=gone))
    watched.dog.name_missing()
    named = "transduce: process 1 of 3, on here, is not there any more. Where it stood last:\nof 1\n"
    assert capsys.readouterr().err == named
    assert watchdog.SILENT < watched.now - 3 <= watchdog.SILENT + watchdog.OFTEN
    watched.dog.name_missing()
    assert capsys.readouterr().err == "", "one tells it for all"


def test_nobody_is_named_where_one_left_and_said_why(
    watched: Watched, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    watched.after(3, p0=WORKS, p1=WORKS, p2=WORKS)
    watched.store.set("pulse/1", watchdog.DONE)
    monkeypatch.setattr(watched.dog._done, "wait", lambda seconds: watched.after(seconds, p0=WORKS, p2=WORKS))
    watched.dog.name_missing()
    assert capsys.readouterr().err == ""
    assert watched.now - 3 <= watchdog.OFTEN


def test_nobody_seems_silent_where_the_store_has_gone(watched: Watched) -> None:
    watched.after(3, p0=WORKS, p1=WORKS, p2=WORKS)

    def gone(key: str, value: str) -> None:
        raise RuntimeError("the store is gone")

    watched.store.set = gone  # type: ignore[method-assign]
    watched.dog._done.wait = lambda seconds: False  # type: ignore[method-assign, assignment, misc]
    watched.dog.run()
    watched.now += 10 * watchdog.SILENT
    assert watched.dog._silent() == []


class SilentStore(Store):
    """Answers until it is told to be silent: then no call returns, as where a link is cut."""

    def __init__(self) -> None:
        super().__init__()
        self.silent, self.done = threading.Event(), threading.Event()

    def set(self, key: str, value: str) -> None:
        if self.silent.is_set():
            self.done.wait(60)
        super().set(key, value)


def test_one_whose_store_does_not_answer_leaves_and_names_the_machine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left, codes, store = threading.Event(), list[int](), SilentStore()

    def leave(code: int) -> None:
        codes.append(code)
        left.set()

    monkeypatch.setattr(watchdog, "OFTEN", 0.02)
    monkeypatch.setattr(watchdog.os, "_exit", leave)
    monkeypatch.setenv("MASTER_ADDR", "10.77.0.1")
    dog = Watchdog(store, 1, 3, Pulse(waits=True), 0.5)
    dog.start()
    assert not left.wait(1.5), "the store answers"
    store.silent.set()
    assert left.wait(20)
    store.done.set()
    dog.stop()
    told = capsys.readouterr().err
    assert "process 1 of 3, on " in told
    assert "no answer for 1 s from 10.77.0.1" in told
    assert "The last checkpoint is intact" in told
    assert codes == [1]


def test_the_threads_own_time_is_no_movement() -> None:
    store = Store()
    dog = Watchdog(store, 0, 1, Pulse(), LIMIT)
    said = []

    def look_for_two_seconds() -> None:
        until = time.thread_time() + 2.0
        for _ in range(2):
            dog._say()
            said.append(json.loads(store["pulse/0"])["computed"])
            while time.thread_time() < until:
                pass

    own = threading.Thread(target=look_for_two_seconds)
    own.start()
    own.join()
    for earlier, later in zip(*said, strict=True):
        assert later - earlier <= 1  # rounded


def test_a_second_of_the_main_thread_is_movement() -> None:
    store = Store()
    dog = Watchdog(store, 0, 1, Pulse(), LIMIT)
    dog._say()
    before, until = json.loads(store["pulse/0"])["computed"], time.thread_time() + 1.0
    while time.thread_time() < until:
        pass
    dog._say()
    assert json.loads(store["pulse/0"])["computed"] != before


def test_a_stack_in_torch_distributed_waits_and_one_that_passes_through_does_not() -> None:
    inside = str(Path(torch.__file__).parent / "distributed" / "distributed_c10d.py")
    model, operator = "layers/block.py", str(Path(torch.__file__).parent / "_ops.py")

    def stack(*files: str) -> list[traceback.FrameSummary]:
        return [traceback.FrameSummary(file, 1, "f", lookup_line=False, line="") for file in files]

    assert _in_collective(stack(model, inside))
    assert _in_collective(stack(model, inside, operator))
    assert not _in_collective(stack(inside, model))
    assert not _in_collective(stack(inside, model, operator))
    assert not _in_collective([])
