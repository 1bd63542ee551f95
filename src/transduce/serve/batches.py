"""Batch the work of many requests: a bounded queue, one thread with the model, and answers back to asyncio.

Work waits in `_waiting`, under one lock. It leaves once: into a batch, or because its client disconnected.
"""

import asyncio
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from transduce.core.errors import InputError, TransduceError
from transduce.runtime.settings import threads
from transduce.serve.measures import ServerMetrics
from transduce.serve.settings import ServeSettings
from transduce.serve.work import ClientDisconnected, WorkItem, answer

log = logging.getLogger("transduce.serve")


class Busy(TransduceError):
    """The queue is full.

    Args:
        seconds: how long to wait before asking again.
    """

    def __init__(self, seconds: int) -> None:
        super().__init__(f"the server is busy; try again in {seconds} s.")
        self.seconds = seconds


class Stopped(TransduceError):
    """The server is stopping, or the thread with the model has failed."""

    def __init__(self) -> None:
        super().__init__("this server answers no more texts; its log says why.")


class BrokeDown(TransduceError):
    """A text caused a failure that is not an Exception, such as a panic in the tokenizer."""


@dataclass(eq=False)
class _Waiting:
    """A work, and who waits for its answers."""

    work: WorkItem
    done: "asyncio.Future[list[Any]]"
    loop: asyncio.AbstractEventLoop
    since: float

    def settle(self, result: list[Any] | BaseException) -> None:
        """Hand over to the event loop; a request that left, or a loop that closed, wants it no more."""
        try:
            self.loop.call_soon_threadsafe(self._settle, result)
        except RuntimeError:
            log.warning("an answer came after the server had stopped.")

    def _settle(self, result: list[Any] | BaseException) -> None:
        if self.done.done():
            return
        if isinstance(result, BaseException):
            self.done.set_exception(result)
        else:
            self.done.set_result(result)


def broke_down(error: BaseException) -> BrokeDown:
    """What of `error` a request may be told; asyncio takes some of its kind for a wish to end the process."""
    told = BrokeDown(f"this text could not be answered: {type(error).__name__}.")
    told.__cause__ = error
    return told


class BatchQueue:
    """Answers works in batches.

    run: works that belong together -> their answers; called in the worker's thread.
    """

    def __init__(
        self,
        settings: ServeSettings,
        measures: ServerMetrics,
        run: Callable[[Sequence[WorkItem]], list[list[Any]]] = answer,
    ) -> None:
        self._settings, self._measures, self.run = settings, measures, run
        self._waiting: deque[_Waiting] = deque()
        self._texts = 0  # in `_waiting`
        self._changed = threading.Condition()
        self._stopping = False
        self._rate = 10.0  # texts a second, of late
        self._thread = threading.Thread(target=self._work, name="transduce-worker", daemon=True)
        measures.watch_queue(lambda: self._texts)

    def start(self) -> None:
        self._thread.start()

    def stop(self, patience: float | None = None) -> None:
        """Answer what waits, then end. A batch that takes longer than `patience` seconds ends by itself, or never."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(patience)
        if self._thread.is_alive():
            log.warning("stopped while the models were still busy with texts that nobody waits for.")

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    async def answers(self, works: Sequence[WorkItem]) -> list[Any]:
        """The answers to all works of one request, in order. Cancelled, it takes out those that still wait.

        Raises:
            Busy: there is no room for all of them; then none is taken.
        """
        if not works:
            return []
        loop = asyncio.get_running_loop()
        now = time.monotonic()
        waiting = [_Waiting(work, loop.create_future(), loop, now) for work in works]
        self._put(waiting)
        try:
            found = await asyncio.gather(*(each.done for each in waiting))
        finally:
            self._take_out(waiting)
        return [each for answers in found for each in answers]

    def check_room(self, texts: int) -> None:
        """Raises Busy when so many more texts would not fit in the queue; Stopped when nobody takes from it."""
        if self._stopping:
            raise Stopped
        if self._texts + texts > self._settings.queue:
            self._measures.refused.inc()
            raise Busy(min(60, max(1, math.ceil(self._texts / self._rate))))

    def _put(self, waiting: Sequence[_Waiting]) -> None:
        texts = sum(len(each.work.texts) for each in waiting)
        with self._changed:
            self.check_room(texts)
            self._waiting.extend(waiting)
            self._texts += texts
            self._changed.notify()

    def _take_out(self, gone: Sequence[_Waiting]) -> None:
        """After an end of any kind: nobody waits for these, answered or not."""
        if all(each.done.done() and not each.done.cancelled() for each in gone):
            return
        for each in gone:
            each.work.disconnected.set()
        leaving = set(gone)
        with self._changed:
            kept = [each for each in self._waiting if each not in leaving]
            texts = sum(len(each.work.texts) for each in kept)
            self._measures.dropped.inc(self._texts - texts)
            self._waiting, self._texts = deque(kept), texts

    def _work(self) -> None:
        """Until it is told to stop, or something fails outside of a work: then nobody is left to wait."""
        try:
            with threads(self._settings.threads):  # in part for the whole process, so it is restored
                while batch := self._next():
                    begun = time.monotonic()
                    self._answer(batch)
                    texts, seconds = sum(len(each.work.texts) for each in batch), time.monotonic() - begun
                    self._measures.batch(texts, seconds)
                    self._rate += 0.2 * (texts / max(seconds, 1e-3) - self._rate)
        except BaseException:
            log.critical("the thread with the models has failed: no text is answered any more.", exc_info=True)
        finally:
            with self._changed:
                self._stopping = True
                left, self._waiting, self._texts = self._waiting, deque(), 0
            for each in left:
                each.settle(Stopped())

    def _answer(self, batch: list[_Waiting]) -> None:
        try:
            found = self.run([each.work for each in batch])
        except ClientDisconnected as error:
            batch[0].settle(error)  # what can leave is a batch by itself
        except BaseException as error:  # a tokenizer's panic is no Exception; this thread outlives everything
            if len(batch) == 1:
                if not isinstance(error, InputError):  # that is the request's own fault
                    log.exception("a text could not be answered.")
                batch[0].settle(error if isinstance(error, Exception) else broke_down(error))
            for each in batch if len(batch) > 1 else []:  # one text's fault is not its neighbours'
                self._answer([each])
        else:
            for each, answers in zip(batch, found, strict=True):
                each.settle(answers)

    def _next(self) -> list[_Waiting]:
        """The oldest work and those that may share its batch, once they are enough or it has waited long enough.

        Empty when there will be no more.
        """
        with self._changed:
            while True:
                while not self._waiting and not self._stopping:
                    self._changed.wait()
                if not self._waiting:
                    return []
                batch, full = self._gathered()
                left = self._waiting[0].since + self._settings.wait_ms / 1000 - time.monotonic()
                if full or left <= 0 or self._stopping:
                    taken = set(batch)
                    self._waiting = deque(each for each in self._waiting if each not in taken)
                    self._texts -= sum(len(each.work.texts) for each in batch)
                    return batch
                self._changed.wait(left)

    def _gathered(self) -> tuple[list[_Waiting], bool]:
        """What could be a batch now, and whether more would not fit."""
        first, *others = self._waiting
        batch, together = [first], first.work.batch_key
        texts, characters = len(first.work.texts), first.work.characters
        for each in others:
            if each.work.batch_key != together:
                continue
            texts, characters = texts + len(each.work.texts), characters + each.work.characters
            if texts > self._settings.batch_size or characters > self._settings.batch_characters:
                return batch, True
            batch.append(each)
        return batch, first.work.alone or texts >= self._settings.batch_size
