"""Batch the work of many requests: a bounded queue, a thread for each model, and answers back to asyncio.

Work waits in the lane of its model, under one lock. It leaves once: into a batch, or because its client disconnected.
Clients take turns in a lane, batches are no longer than `ServeSettings.batch_seconds` where the model's speed is known,
and in work that takes longer others have their turn between its pieces.
"""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from transduce.core.errors import InputError, TransduceError
from transduce.runtime.settings import threads
from transduce.serve.measures import ServerMetrics
from transduce.serve.settings import ServeSettings
from transduce.serve.turns import BatchCost, RoundRobin, current_client
from transduce.serve.work import ClientDisconnected, WorkItem, answer

RESERVED = 8  # a client with nothing in the queue has an eighth of it, though others have filled it
DEEPEST = 4  # works that are interrupted for others at once

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
    client: str

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


@dataclass(eq=False)
class _Lane:
    """The works of one model, and its thread. cost: what its batches take. inside: batches that it is busy with."""

    name: str
    waiting: RoundRobin[_Waiting] = field(default_factory=RoundRobin)
    cost: BatchCost = field(default_factory=BatchCost)
    thread: threading.Thread | None = None
    inside: list[list[_Waiting]] = field(default_factory=list)
    interrupted: float = 0.0  # seconds that others had meanwhile

    @property
    def texts(self) -> int:
        return sum(len(each.work.texts) for each in self.waiting)


class BatchQueue:
    """Answers works in batches, those of each model in a thread of their own.

    run: works that belong together -> their answers; called in the model's thread.
    """

    def __init__(
        self,
        settings: ServeSettings,
        measures: ServerMetrics,
        run: Callable[[Sequence[WorkItem]], list[list[Any]]] = answer,
    ) -> None:
        self._settings, self._measures, self.run = settings, measures, run
        self._lanes: dict[str, _Lane] = {}
        self._texts = 0  # that wait, in all lanes
        self._changed = threading.Condition()
        self._started = self._stopping = False
        self._rate = 10.0  # texts a second, of late
        measures.watch_queue(lambda: self._texts)

    def start(self) -> None:
        """Take works from now on; the thread of a model begins with its first."""
        self._started = True

    def stop(self, patience: float | None = None) -> None:
        """Answer what waits, then end. A batch that takes longer than `patience` seconds ends by itself, or never."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        end = None if patience is None else time.monotonic() + patience
        for thread in self._threads():
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
        if self._threads():
            log.warning("stopped while the models were still busy with texts that nobody waits for.")

    @property
    def alive(self) -> bool:
        """Whether works are taken, or one is being answered."""
        return bool(self._threads()) if self._stopping else self._started

    def _threads(self) -> list[threading.Thread]:
        return [lane.thread for lane in list(self._lanes.values()) if lane.thread and lane.thread.is_alive()]

    async def answers(self, works: Sequence[WorkItem]) -> list[Any]:
        """The answers to all works of one request, in order. Cancelled, it takes out those that still wait.

        Raises:
            Busy: there is no room for all of them; then none is taken.
        """
        if not works:
            return []
        loop, client = asyncio.get_running_loop(), current_client.get()
        now = time.monotonic()
        waiting = [_Waiting(work, loop.create_future(), loop, now, client) for work in works]
        self._put(client, waiting)
        try:
            found = await asyncio.gather(*(each.done for each in waiting))
        finally:
            self._take_out(waiting)
        return [each for answers in found for each in answers]

    def check_room(self, texts: int) -> None:
        """Raises Busy when so many more texts of this client would not fit; Stopped when nobody takes them."""
        if self._stopping:
            raise Stopped
        if self._texts + texts <= self._settings.queue:
            return
        client = current_client.get()
        with self._changed:
            own = sum(len(each.work.texts) for lane in self._lanes.values() for each in lane.waiting.of(client))
        few = own + texts <= self._settings.queue // RESERVED and self._texts + texts <= 2 * self._settings.queue
        if not few:
            self._measures.refused.inc()
            raise Busy(min(60, max(1, math.ceil(self._texts / self._rate))))

    def _put(self, client: str, waiting: Sequence[_Waiting]) -> None:
        texts = sum(len(each.work.texts) for each in waiting)
        self.check_room(texts)
        with self._changed:
            if self._stopping:
                raise Stopped
            for each in waiting:
                self._lane(each.work.model.name).waiting.put(client, [each])
            self._texts += texts
            self._changed.notify_all()

    def _lane(self, name: str) -> _Lane:
        """Of a model, with its thread running; the lock is held."""
        lane = self._lanes.setdefault(name, _Lane(name))
        if lane.thread is None:
            lane.thread = threading.Thread(target=self._work, args=[lane], name=f"transduce-{name}", daemon=True)
            lane.thread.start()
        return lane

    def _take_out(self, gone: Sequence[_Waiting]) -> None:
        """After an end of any kind: nobody waits for these, answered or not."""
        if all(each.done.done() and not each.done.cancelled() for each in gone):
            return
        for each in gone:
            each.work.disconnected.set()
        leaving = {id(each) for each in gone}
        with self._changed:
            for lane in self._lanes.values():
                lane.waiting.drop(leaving)
            texts = sum(lane.texts for lane in self._lanes.values())
            self._measures.dropped.inc(self._texts - texts)
            self._texts = texts

    def _work(self, lane: _Lane) -> None:
        """Until it is told to stop, or something fails outside of a work: then nobody is left to wait."""
        try:
            with threads(self._settings.threads):  # in part for the whole process, so it is restored
                while batch := self._next(lane):
                    self._measured(lane, batch)
        except BaseException:
            log.critical("the thread with a model has failed: no text is answered any more.", exc_info=True)
        finally:
            with self._changed:
                self._stopping = True
                left = list(lane.waiting)
                lane.waiting = RoundRobin()
                self._texts -= sum(len(each.work.texts) for each in left)
                self._changed.notify_all()
            for each in left:
                each.settle(Stopped())

    def _measured(self, lane: _Lane, batch: list[_Waiting]) -> None:
        """Answer a batch, in which others may have their turn, and note what it took."""
        begun, before, outer = time.monotonic(), lane.interrupted, bool(lane.inside)
        lane.inside.append(batch)
        batch[0].work.between = lambda: self._between(lane, batch)
        try:
            self._answer(batch)
        finally:
            lane.inside.pop()
        passed = time.monotonic() - begun
        seconds = passed - (lane.interrupted - before)
        lane.interrupted = before + passed if outer else 0.0
        texts = sum(len(each.work.texts) for each in batch)
        self._measures.batch(texts, seconds)
        if not batch[0].work.alone:
            lane.cost.saw(sum(each.work.characters for each in batch), seconds)
        self._rate += 0.2 * (texts / max(seconds, 1e-3) - self._rate)

    def _between(self, lane: _Lane, batch: list[_Waiting]) -> None:
        """Between the pieces of a batch others have their turn. Raises ClientDisconnected where nobody waits for it."""
        if all(each.work.disconnected.is_set() for each in batch):
            raise ClientDisconnected
        if len(lane.inside) >= DEEPEST:
            return
        served = {each.client for inside in lane.inside for each in inside}
        with self._changed:
            others = [each for each in lane.waiting if each.client not in served]
            following = self._taken(lane, self._gathered(lane, others)[0]) if others else []
        if following:
            self._measured(lane, following)

    def _answer(self, batch: list[_Waiting]) -> None:
        try:
            found = self.run([each.work for each in batch])
        except ClientDisconnected as error:
            for each in batch:
                each.settle(error)
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

    def _next(self, lane: _Lane) -> list[_Waiting]:
        """The next client's oldest work and those that may share its batch, once they are enough or it has waited.

        Empty when there will be no more.
        """
        with self._changed:
            while True:
                while not len(lane.waiting) and not self._stopping:
                    self._changed.wait()
                if not len(lane.waiting):
                    return []
                batch, full = self._gathered(lane, list(lane.waiting))
                left = batch[0].since + self._settings.wait_ms / 1000 - time.monotonic()
                if full or left <= 0 or self._stopping:
                    return self._taken(lane, batch)
                self._changed.wait(left)

    def _taken(self, lane: _Lane, batch: list[_Waiting]) -> list[_Waiting]:
        """The batch, no longer waiting; the lock is held."""
        lane.waiting.take(batch)
        self._texts -= sum(len(each.work.texts) for each in batch)
        return batch

    def _gathered(self, lane: _Lane, waiting: Sequence[_Waiting]) -> tuple[list[_Waiting], bool]:
        """What could be a batch now, and whether more would not fit."""
        first, *others = waiting
        batch, together = [first], first.work.batch_key
        texts, characters = len(first.work.texts), first.work.characters
        most = min(self._settings.batch_characters, lane.cost.most(self._settings.batch_seconds))
        for each in others:
            if each.work.batch_key != together:
                continue
            texts, characters = texts + len(each.work.texts), characters + each.work.characters
            if texts > self._settings.batch_size or characters > most:
                return batch, True
            batch.append(each)
        return batch, first.work.alone or texts >= self._settings.batch_size
