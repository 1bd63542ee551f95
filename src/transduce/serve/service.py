"""What the routes share: the models, the batches, and how a request waits for its answers."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from starlette.requests import Request

from transduce.data.tokenizer import Tokenizer
from transduce.errors import InputError, TransduceError
from transduce.pipeline import Pipeline, search_settings
from transduce.serve.batches import Batches
from transduce.serve.guards import Door
from transduce.serve.measures import Measures
from transduce.serve.models import Loaded, Models, Watcher
from transduce.serve.settings import ServeSettings
from transduce.serve.work import Answer, Ask, Work

Result = TypeVar("Result")


class ClientLeft(Exception):
    """There is nobody to answer."""


class TooLong(TransduceError):
    """The texts are over a limit."""


class TooSlow(TransduceError):
    """No answer in time."""


class Service:
    """One server's parts, started and stopped together."""

    def __init__(self, models: Models, settings: ServeSettings) -> None:
        self.models, self.settings = models, settings
        self.door, self.measures = Door(), Measures()
        self.batches = Batches(settings, self.measures)
        self._watcher = Watcher(models, settings.watch_seconds, self.measures.reload)

    def start(self) -> None:
        """Threads for the model and for its file."""
        self.batches.start()
        self._watcher.start()

    async def stop(self) -> None:
        """Once what was taken is answered."""
        await asyncio.to_thread(self._watcher.stop)
        await asyncio.to_thread(self.batches.stop)

    async def answers(self, request: Request, works: Sequence[Work]) -> list[Answer]:
        """The answers to works, in order.

        Raises:
            Busy: the queue is full.
            TooSlow: not in time.
            ClientLeft: nobody waits any more.
        """
        texts = sum(len(work.texts) for work in works)
        if texts > self.settings.queue:
            raise TooLong(f"{texts} segments in one request; this server takes {self.settings.queue}.")
        return await self.while_connected(request, self.batches.answers(works))

    async def done(self, request: Request, model: Loaded, texts: Sequence[str], do: Callable[[Work], Result]) -> Result:
        """What `do` gives, done where the model is, in its turn, which counts as one text.

        Args:
            texts: of the request, whose lengths are limited.

        Raises:
            As `answers`; TooLong for too many texts or characters.
        """
        self.check_lengths(texts)
        work = Work(model, tuple(texts[:1]), Ask(), do=do)
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
                raise ClientLeft
            raise TooSlow(f"no answer within {self.settings.timeout:g} s; send less, or try again later.")
        finally:
            for each in (task, gone):
                each.cancel()
            await asyncio.gather(task, gone, return_exceptions=True)

    def check_lengths(self, texts: Sequence[str]) -> None:
        """Raises TooLong for too many texts or characters."""
        characters = sum(map(len, texts))
        problems = []
        if len(texts) > self.settings.texts:
            problems.append(f"{len(texts)} texts; {self.settings.texts} at most.")
        if characters > self.settings.characters:
            problems.append(f"{characters:,} characters; {self.settings.characters:,} at most.")
        if problems:
            raise TooLong(" ".join(problems))

    def check_search(self, model: Loaded, search: Sequence[tuple[str, Any]]) -> None:
        """Raises InputError for settings that the search, or this server, does not accept."""
        found = search_settings(model.pipeline.recipe.search, dict(search))
        width = max(found.beam if found.method == "beam" else 1, found.nbest)
        problems = []
        if width > self.settings.beam:
            problems.append(f"beam and nbest may be {self.settings.beam} at most on this server.")
        if ("max_length_offset", found.max_length_offset) in search and found.max_length_offset > self.settings.max_new:
            problems.append(f"max_new may be {self.settings.max_new} at most on this server.")
        if problems:
            raise InputError(problems)


def reader(pipeline: Pipeline) -> Tokenizer:
    """The tokenizer of what the model is given."""
    return pipeline.task.tokenizers.get("source") or pipeline.task.tokenizers["target"]


async def left(request: Request) -> None:
    """Returns once the client is gone; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
