"""What all routes share: the models, the batches, and waiting for answers."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from starlette.requests import Request

from transduce.core.errors import InputError, TransduceError
from transduce.data.speech.uploads import DATA
from transduce.search.settings import Search, search_settings
from transduce.serve.batches import BatchQueue, broke_down
from transduce.serve.guards import Drain
from transduce.serve.keys import RequestRates, keys_in
from transduce.serve.measures import ServerMetrics
from transduce.serve.models import Loaded, Models, Watcher
from transduce.serve.settings import ServeSettings
from transduce.serve.turns import FairThreads, current_client
from transduce.serve.work import Answer, ClientDisconnected, SearchOptions, WorkItem

Result = TypeVar("Result")
PATIENCE = 5.0  # seconds for a batch, or a model that is being loaded, when the server stops
TEXT_THREADS = 2  # threads for texts; each that is busy makes the event loop wait for its turn


class TooLong(TransduceError):
    """The texts are over a limit."""


class TooSlow(TransduceError):
    """There was no answer in time."""


class Service:
    """One server's parts, started and stopped together."""

    def __init__(self, models: Models, settings: ServeSettings) -> None:
        self.models, self.settings = models, settings
        self.drain, self.measures = Drain(), ServerMetrics()
        self.batches = BatchQueue(settings, self.measures)
        self.rates = RequestRates()
        if settings.api_keys is not None:
            keys_in(settings.api_keys).listed()  # a file that is missing, or none of ours, is told of now
        self._watcher = Watcher(models, settings.watch_seconds, self.measures.reload)
        self._threads = FairThreads(TEXT_THREADS, "transduce-texts")

    def start(self) -> None:
        """Threads for the model and for its file."""
        self.batches.start()
        self._watcher.start()

    async def stop(self) -> None:
        """Once no client is left: what was taken is answered or given up, so neither thread is waited for long."""
        await asyncio.to_thread(self._watcher.stop, PATIENCE)
        await asyncio.to_thread(self.batches.stop, PATIENCE)
        self._threads.stop()

    async def run_in_thread(self, do: Callable[[], Result]) -> Result:
        """Run `do` in a worker thread, in which clients take turns, so that the event loop stays free.

        Raises:
            As `do`; BrokeDown for what is no Exception, as a tokenizer's panic.
        """
        return await self._threads.run(lambda: _settled(do))

    async def prepared(self, request: Request, do: Callable[[], Result]) -> Result:
        """As `run_in_thread`, for a request that may leave, or have waited too long, and only if the queue has room.

        Raises:
            Busy, Stopped: it has none, and nothing is done.
            TooSlow, ClientLeft: as `answers`.
        """
        self.batches.check_room(1)
        return await self.while_connected(request, self.run_in_thread(do))

    async def answers(self, request: Request, works: Sequence[WorkItem]) -> list[Answer]:
        """The answers to works, in order.

        Raises:
            Busy: the queue is full.
            TooSlow: not in time.
            ClientLeft: nobody waits any more.
        """
        texts = sum(len(work.texts) for work in works)
        if texts > self.settings.queue:
            raise TooLong(f"{texts} segments in one request; this server takes at most {self.settings.queue}.")
        return await self.while_connected(request, self.batches.answers(works))

    async def done(
        self, request: Request, model: Loaded, texts: Sequence[str], do: Callable[[WorkItem], Result]
    ) -> Result:
        """What `do` gives, done where the model is, in its turn, which counts as one text.

        Args:
            texts: of the request, whose lengths are limited; also sound, for a model of speech.

        Raises:
            As `answers`; TooLong for too many texts or characters, or too large a recording.
        """
        work = WorkItem(model, tuple(self._read(model, texts)[:1]), SearchOptions(), do=do)
        (found,) = await self.while_connected(request, self.batches.answers([work]))
        return found

    async def while_connected(self, request: Request, doing: Coroutine[Any, Any, Result]) -> Result:
        """What `doing` gives, unless the client leaves or the time is over: then it is cancelled."""
        task, gone = asyncio.ensure_future(doing), asyncio.ensure_future(left(request))
        try:
            await asyncio.wait({task, gone}, timeout=self.settings.timeout, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if gone.done():
                raise ClientDisconnected
            raise TooSlow(f"no answer within {self.settings.timeout:g} s; send less, or try again later.")
        finally:
            for each in (task, gone):
                each.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    def _read(self, model: Loaded, texts: Sequence[str]) -> list[str]:
        """The texts, "" for sound, which counts by its bytes. Raises TooLong."""
        sounds = [text for text in texts if text.startswith(DATA)] if model.served.accepts_audio else []
        written = ["" if text in sounds else text for text in texts]
        size = max(map(_bytes, sounds), default=0)
        if size > self.settings.audio_bytes:
            raise TooLong(f"a recording of {size:,} bytes; {self.settings.audio_bytes:,} at most: send a shorter one.")
        self._check_lengths(written)
        return written

    def check_lengths(self, texts: Sequence[str]) -> None:
        """The texts of a request, whose characters count for the day of its key.

        Raises:
            TooLong: too many texts or characters.
            TooMany: more than are left of the day.
        """
        self._check_lengths(texts)
        key = current_client.get().removeprefix("key ")
        if self.settings.api_keys is not None and key != current_client.get():
            keys_in(self.settings.api_keys).spend(key, sum(map(len, texts)))

    def _check_lengths(self, texts: Sequence[str]) -> None:
        characters = sum(map(len, texts))
        problems = []
        if len(texts) > self.settings.texts:
            problems.append(f"{len(texts)} texts; {self.settings.texts} at most.")
        if characters > self.settings.characters:
            problems.append(f"{characters:,} characters; {self.settings.characters:,} at most.")
        if problems:
            raise TooLong(" ".join(problems))

    def check_search(self, model: Loaded, search: Sequence[tuple[str, Any]], texts: int = 1) -> None:
        """Raises InputError for settings that the search, or this server, does not accept.

        Args:
            texts: as many are searched for at once, where that is not the server's own choice.
        """
        own = model.served.search
        found = search_settings(own, dict(search))
        width = _width(found)
        problems = []
        if width > max(self.settings.beam, _width(own)):  # what a model is served with is allowed
            problems.append(f"beam and nbest may be {self.settings.beam} at most on this server.")
        most = max(self.settings.batch_size * self.settings.beam, self.settings.texts)
        if texts * width > most:
            outputs = f"{texts} texts with {width} outputs each are {texts * width:,} at once"
            problems.append(f"{outputs}; {most:,} at most: send fewer texts, or ask for a smaller nbest.")
        if ("max_length_offset", found.max_length_offset) in search and found.max_length_offset > self.settings.max_new:
            problems.append(f"max_new may be {self.settings.max_new} at most on this server.")
        if problems:
            raise InputError(problems)


def _width(search: Search) -> int:
    """Outputs that a search keeps for each text."""
    return max(search.beam if search.method in ("beam", "ctc") else 1, search.nbest)


def _bytes(url: str) -> int:
    """Of what a data: URL holds in base64."""
    return (len(url) - url.find(",") - 1) * 3 // 4 - url[-2:].count("=")


def _settled(do: Callable[[], Result]) -> Result:
    """What it gives, or an `Exception`, where a library panics with something else."""
    try:
        return do()
    except BaseException as error:
        if isinstance(error, Exception):
            raise
        raise broke_down(error) from error


async def left(request: Request) -> None:
    """Returns once the client is gone; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
