"""Server-sent events of work that tells what it writes while it writes it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from transduce.serve.service import Service
from transduce.serve.work import OnToken, WorkItem

EVENT = {
    "type": "object",
    "required": ["event", "data"],
    "properties": {
        "event": {"type": "string", "enum": ["token", "done", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}


def event(name: str, values: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {json.dumps(values)}\n\n"


async def heard(
    service: Service, make: Callable[[OnToken], WorkItem], gone: "asyncio.Future[Any]"
) -> AsyncIterator[tuple[str, Any]]:
    """("token", what the work tells) as it comes, then ("done", its answer) or ("error", why).

    Ends early if the client left.

    Args:
        make: the work, from whom it tells.
        gone: done when the client is gone.
    """
    loop, told = asyncio.get_running_loop(), asyncio.Queue[tuple[str, Any]]()
    work = make(lambda said: _tell(loop, told, ("token", said)))
    task = asyncio.ensure_future(service.batches.answers([work]))
    task.add_done_callback(lambda task: told.put_nowait(_ending(task)))
    deadline = loop.time() + service.settings.timeout
    try:
        while True:
            following: asyncio.Future[Any] = asyncio.ensure_future(told.get())
            left_over = deadline - loop.time()
            await asyncio.wait({following, gone}, timeout=left_over, return_when=asyncio.FIRST_COMPLETED)
            if not following.done():
                following.cancel()
                if not gone.done():
                    yield "error", f"no answer within {service.settings.timeout:g} s."
                return
            yield following.result()
            if following.result()[0] != "token":
                return
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _tell(loop: asyncio.AbstractEventLoop, queue: "asyncio.Queue[tuple[str, Any]]", what: tuple[str, Any]) -> None:
    loop.call_soon_threadsafe(queue.put_nowait, what)


def _ending(task: "asyncio.Task[list[Any]]") -> tuple[str, Any]:
    if task.cancelled():
        return "error", "the request was cancelled."
    if task.exception() is not None:
        return "error", str(task.exception()) or "this text could not be answered."
    return "done", task.result()[0]
