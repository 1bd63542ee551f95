"""Nobody waits for ever: a process that stands still is named, with its machine and its stack, and all leave.

Every process says every two seconds where it stands, in the store that torchrun keeps. It stands still when it computes
nothing, or when a step of its work takes far longer than all before. A process that waits for others does so by right,
unless all wait. One that has died says nothing any more. One that the store does not answer is cut off, and leaves.
"""

import json
import os
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

OFTEN = 2.0  # seconds between two looks
DONE = "null"  # what a process says at its end
VARIABLE = "TRANSDUCE_HANG_SECONDS"
LIMIT = 45.0  # seconds without computing anything
SLOWER = 10.0  # times the longest step so far: then one that computes hangs, too
KNOWN = 20  # steps, after which the longest says how long the next one may take
SILENT = 4 * OFTEN  # seconds without a word: it is dead, or stopped
AT_MOST = 2 * SILENT + OFTEN  # seconds until that is known: torchrun waits for half a minute
WITHIN = f"{os.sep}torch{os.sep}distributed{os.sep}"  # files whose functions wait for other processes
FRAMES = 40  # of a stack that are shown


@dataclass
class Pulse:
    """Where the main thread is: written by it, read by the watchdog.

    step: counts what was done; longest: seconds of the longest step so far; waits: for other processes.
    """

    step: int = 0
    longest: float = 0.0
    step_start: float = field(default_factory=time.monotonic)
    waits: bool = False
    in_step: bool = False

    def beat(self) -> None:
        """A step is done, and the next one begins."""
        now = time.monotonic()
        if self.in_step:
            self.longest = max(self.longest, now - self.step_start)
        self.step, self.step_start, self.in_step = self.step + 1, now, True

    def rest(self) -> None:
        """What comes now may take as long as it wants, as long as it computes."""
        self.in_step = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        self.waits = True
        try:
            yield
        finally:
            self.waits = False


class Watchdog(threading.Thread):
    """Looks after this process and the others, from a thread of its own.

    Args:
        store: a key-value store that all processes share.
        limit: seconds without computing anything; None = those of `TRANSDUCE_HANG_SECONDS`, or 45.
    """

    def __init__(self, store: Any, rank: int, world: int, pulse: Pulse, limit: float | None = None) -> None:
        super().__init__(name="watchdog", daemon=True)
        self._store, self._rank, self._world, self._pulse = store, rank, world, pulse
        self._limit = limit or float(os.environ.get(VARIABLE, LIMIT))
        self._moved: dict[int, tuple[Any, float]] = {}  # how much each had computed, and since when
        self._stepped: dict[int, tuple[Any, float]] = {}  # at which step it was, and since when
        self._all: dict[int, tuple[Any, float]] = {}  # how far all of them were, and since when
        self._spoken: dict[int, tuple[Any, float]] = {}  # what it said last, and since when
        self._last: dict[int, dict[str, Any]] = {}
        self._left: set[int] = set()  # those that said that they are done
        self._main = threading.main_thread().ident
        self._looks = 0  # that the store answered
        self._done = threading.Event()

    def start(self) -> None:
        """Begins to look, and to mind that the store answers."""
        super().start()
        threading.Thread(target=self._mind_store, name="watchdog of the store", daemon=True).start()

    def stop(self) -> None:
        """The work of this process is done: it need not move any more."""
        self._done.set()
        self.join(SILENT)  # a store that has gone may keep it
        with suppress(RuntimeError):
            self._store.set(f"pulse/{self._rank}", DONE)  # not deleted: whoever is about to read it would wait for it

    def name_missing(self) -> None:
        """Names on standard error, once for all processes, those that died, with their machine and their last stack.

        Takes as long as it takes to know. Nobody is named where one left of its own accord: it has said why.
        """
        until, silent = time.monotonic() + AT_MOST, list[int]()
        while not silent and not self._left and time.monotonic() < until:
            self._done.wait(OFTEN)
            silent = self._silent()
        if silent and self._tells():
            sys.stderr.write("".join(f"transduce: {self._died(rank)}" for rank in silent))
            with suppress(OSError):
                sys.stderr.flush()

    def _silent(self) -> list[int]:
        """Processes that have not said a word for a while, and did not say that they are done."""
        now, spoken = time.monotonic(), dict(self._spoken)
        return sorted(rank for rank, (_, since) in spoken.items() if now - since > SILENT and rank != self._rank)

    def _died(self, rank: int) -> str:
        state = self._last[rank]
        return f"{_called(rank, self._world, state)} is not there any more. {_stood(state)}"

    def _tells(self) -> bool:
        """Whether this process is the first to know. Raises nothing: without a store, all tell."""
        try:
            return bool(self._store.add("told", 1) == 1)
        except (RuntimeError, OSError):
            return True

    def run(self) -> None:
        """Until `stop`; ends the process where another one stands still."""
        while not self._done.wait(OFTEN):
            try:
                self._say()
                still = self._standing_still()
            except (RuntimeError, OSError, ValueError):
                self._spoken.clear()  # what others say now is not heard, so nobody is silent
                return  # the store is gone: torchrun ends this process, or `_mind_store` does
            self._looks += 1
            if still and not self._done.is_set():
                self._leave(still)

    def _mind_store(self) -> None:
        """Ends the process where the store does not answer: a link that is cut fails no call, it only never returns.

        Counts its own looks, not the clock: a process that was stopped has heard nothing for long, and need not leave.
        """
        answered, waited = self._looks, 0.0
        while waited <= self._limit:
            if self._done.wait(OFTEN):
                return
            waited = waited + OFTEN if self._looks == answered else 0.0
            answered = self._looks
        state = self._state()
        sys.stderr.write(
            f"transduce: {_called(self._rank, self._world, state)} has had no answer for {waited:.0f} s from "
            f"{os.environ.get('MASTER_ADDR', 'the machine')}, which keeps the store of this training, so it leaves. "
            "That machine is down, or the network between the two. The last checkpoint is intact; the same command "
            f"goes on from there. {_stood(state)}"
        )
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(1)

    def _say(self) -> None:
        self._store.set(f"pulse/{self._rank}", json.dumps(self._state()))

    def _state(self) -> dict[str, Any]:
        frame = sys._current_frames().get(self._main or 0)
        stack = traceback.extract_stack(frame) if frame else []
        return {
            "step": self._pulse.step,
            "in_step": self._pulse.in_step,
            "waits": self._pulse.waits or _in_collective(stack),
            "longest": self._pulse.longest,
            "computed": self._computed(),
            "beat": time.time(),
            "host": socket.gethostname(),
            "stack": "".join(traceback.format_list(stack)[-FRAMES:]),
        }

    def _computed(self) -> list[float]:
        """Seconds of the main thread, in tenths; and of all threads but this, which others of this process share.

        The machine may be so busy that a process gets a second in a minute.
        """
        others = float(round(time.process_time() - time.thread_time()))
        if self._main is None or not hasattr(time, "pthread_getcpuclockid"):
            return [others]
        return [round(time.clock_gettime(time.pthread_getcpuclockid(self._main)), 1), others]

    def _standing_still(self) -> list[int]:
        """The processes that have not moved for too long, and do not wait for others; or all, where all wait."""
        still, waiting = [], []
        for rank in range(self._world):
            said = self._store.get(f"pulse/{rank}") if self._store.check([f"pulse/{rank}"]) else DONE  # or not begun
            if (state := json.loads(said)) is None:
                if rank in self._last:
                    self._left.add(rank)
                for seen in (self._moved, self._stepped, self._spoken):
                    seen.pop(rank, None)
                continue
            self._last[rank] = state
            _since(self._spoken, rank, state["beat"])
            by_right = state["waits"] and state["beat"]
            idle = _since(self._moved, rank, (state["computed"], state["step"], by_right))
            slow = _since(self._stepped, rank, (state["step"], by_right, state["in_step"] or state["computed"]))
            if idle > self._limit or slow > self._patience(state):
                still.append(rank)
            if state["waits"]:
                waiting.append(rank)
        everyone = tuple((self._last[rank]["computed"], self._last[rank]["step"]) for rank in self._moved)
        stuck = _since(self._all, 0, (everyone, len(waiting) == len(self._moved)))
        all_wait = len(waiting) == len(self._moved) == self._world and stuck > self._limit
        return waiting if all_wait and not still else still

    def _patience(self, state: dict[str, Any]) -> float:
        """Seconds that a step may take which computes."""
        if state["step"] < KNOWN:
            return SLOWER * max(self._limit, float(state["longest"]))
        return max(self._limit, SLOWER * float(state["longest"]))

    def _leave(self, still: list[int]) -> None:
        others = [rank for rank in range(self._world) if rank not in still]
        if self._rank == min(others, default=min(still)):
            for rank in still:
                state = self._last[rank]
                sys.stderr.write(
                    f"transduce: {_called(rank, self._world, state)} has not moved for "
                    f"{time.monotonic() - self._moved[rank][1]:.0f} s, so all leave. The last checkpoint is intact; "
                    f"the same command goes on from there. {_stood(state)}"
                )
            with suppress(OSError):
                sys.stderr.flush()
        os._exit(1)


def _in_collective(stack: list[traceback.FrameSummary]) -> bool:
    """Whether a function of torch.distributed runs, innermost but for torch's way to call an operator."""
    inner = next((each.filename for each in reversed(stack) if not each.filename.endswith("_ops.py")), "")
    return WITHIN in inner


def _called(rank: int, world: int, state: dict[str, Any]) -> str:
    return f"process {rank} of {world}, on {state['host']},"


def _stood(state: dict[str, Any]) -> str:
    return f"Where it stood last:\n{state['stack']}"


def _since(seen: dict[int, tuple[Any, float]], rank: int, now: Any) -> float:
    """For how many seconds a process has been as it is."""
    before, since = seen.get(rank, (None, 0.0))
    if now != before:
        since = time.monotonic()
    seen[rank] = now, since
    return time.monotonic() - since
