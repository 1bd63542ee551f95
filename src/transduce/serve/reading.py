"""Read and check request bodies off the event loop: a limited number of values, all of them valid text."""

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Protocol, TypeVar

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from transduce.data.tokenizers.patterns import SURROGATE
from transduce.serve.guards import key_needed
from transduce.serve.schemas import Problem
from transduce.serve.service import Service

KEYS = 64  # of an object; no request has as many
BESIDES = 1000  # commas and brackets that a body may have beside those in its texts
Result = TypeVar("Result")


class RunInThread(Protocol):
    """Does something in a thread of its own; see `transduce.serve.service.Service.run_in_thread`."""

    async def __call__(self, do: Callable[[], Result]) -> Result: ...


def route_class(run_in_thread: RunInThread, characters: int) -> type[APIRoute]:
    """A route that reads JSON with limits; FastAPI would read it on the event loop, and report every error.

    Args:
        characters: of a request's texts, at most.
    """

    class Read(Request):
        async def json(self) -> Any:
            if not hasattr(self, "_json"):
                body = await self.body()
                self._json = await run_in_thread(lambda: read_json(body, characters + BESIDES))
            return self._json

    class Route(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
            handle = super().get_route_handler()

            async def read(request: Request) -> Response:
                return await handle(Read(request.scope, request.receive))

            return read

    return Route


def keyed_router(service: Service, prefix: str, tag: str) -> APIRouter:
    """A router of JSON behind the API key, if there is one."""
    return APIRouter(
        route_class=route_class(service.run_in_thread, service.settings.characters),
        prefix=prefix,
        tags=[tag],
        dependencies=[Depends(key_needed(service.settings))],
        responses={"4XX": {"model": Problem}},
    )


def read_json(body: bytes, parts: int) -> Any:
    """Parse `body`.

    Raises:
        HTTPException: it has more commas and brackets than `parts`, or an object more keys than `KEYS`; text in it is
            none; it is nested too deeply.
        ValueError: it is not JSON.
    """
    if sum(body.count(each) for each in (b",", b"[", b"{")) > parts:
        raise HTTPException(413, f"the body has more than {parts:,} values; send less at once.")
    try:
        values = json.loads(body)
    except RecursionError:
        raise HTTPException(400, "Invalid request: the body is nested too deeply.") from None
    if isinstance(values, dict) and len(values) > KEYS:
        raise HTTPException(400, f"Invalid request: {len(values):,} keys; no request has more than {KEYS}.")
    refuse_half_characters(values)
    return values


def refuse_half_characters(values: Any) -> None:
    """Raises HTTPException for a lone surrogate in a string anywhere; the first such place is named."""
    for place, text in _strings(values):
        if found := SURROGATE.search(text):
            raise HTTPException(
                400,
                f"Invalid request: {place}: its character {found.start() + 1} is U+{ord(found[0]):04X}, half of a "
                "character (a lone surrogate), which is no text.",
            )


def _strings(values: Any) -> Iterator[tuple[str, str]]:
    """All strings, keys too, each with its place."""
    waiting = [("body", values)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, str):
            yield place, value
        elif isinstance(value, dict):
            for key, each in value.items():
                yield f"a key of {place}", key
                waiting.append((f"{place}.{key}", each))
        elif isinstance(value, list):
            waiting += [(f"{place}.{number}", each) for number, each in reversed(list(enumerate(value)))]
