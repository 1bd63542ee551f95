"""Texts out of a language model over HTTP, told while they are written: POST /v1/generate."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import StreamingResponse

from transduce.core.errors import InputError
from transduce.inference.prediction import Prediction
from transduce.serve.events import EVENT, event, heard
from transduce.serve.models import Loaded
from transduce.serve.reading import keyed_router
from transduce.serve.schemas import GenerateRequest, search_of
from transduce.serve.service import Service, left
from transduce.serve.work import OnToken, SearchOptions, WorkItem

EVENTS = """Server-sent events: `token` with `delta`, the text that a token adds, or the line of an acrostic; then one
`done` with the whole `text`, its `log_probability` and `tokens`, or one `error`."""


def routes(service: Service) -> APIRouter:
    """/v1/generate."""
    router = keyed_router(service, "/v1", "Transduce")

    @router.post(
        "/generate",
        response_class=StreamingResponse,
        responses={200: {"description": EVENTS, "content": {"text/event-stream": {"itemSchema": EVENT}}}},
    )
    async def write(request: Request, asked: GenerateRequest) -> StreamingResponse:
        """A sample from a language model, or an acrostic, token by token."""
        model = service.models.asked(asked.model)
        service.check_lengths([asked.text, asked.acrostic])
        service.check_search(model, search_of(asked))
        await service.prepared(request, lambda: _check(model, asked))
        return StreamingResponse(_events(service, request, model, asked), media_type="text/event-stream")

    return router


def _check(model: Loaded, asked: GenerateRequest) -> None:
    """Raises InputError for what this model cannot write, or cannot read whole."""
    pipeline = model.pipeline
    from transduce.pipeline.generation import check  # late, behind the model with torch, which may be missing

    check(pipeline, asked.text, **_settings(asked))
    if long := pipeline.pieces([asked.text], "none").long:
        raise InputError(f"text: {long[0].partition(': ')[2]}.")


def _settings(asked: GenerateRequest) -> dict[str, Any]:
    return {"acrostic": asked.acrostic, "separator": asked.separator, **dict(search_of(asked))}


async def _events(service: Service, request: Request, model: Loaded, asked: GenerateRequest) -> AsyncIterator[str]:
    def make(on_token: OnToken) -> WorkItem:
        def write(work: WorkItem) -> Prediction:
            from transduce.pipeline.generation import generate

            def grow(number: int, added: str) -> None:
                work.check_connected()
                on_token(added)

            [found] = generate(work.model.pipeline, asked.text, on_text=grow, **_settings(asked))
            return found

        return WorkItem(model, (asked.text or asked.acrostic,), SearchOptions(), do=write)

    gone: asyncio.Future[Any] = asyncio.ensure_future(left(request))
    try:
        async for name, said in heard(service, make, gone):
            if name == "token":
                yield event(name, {"delta": said})
            elif name == "error":
                yield event(name, {"error": said})
            else:
                yield event(name, _answer(model, said))
    finally:
        gone.cancel()


def _answer(model: Loaded, found: Prediction) -> dict[str, Any]:
    told = {"text": found.text, "log_probability": found.log_probability, "tokens": list(found.tokens)}
    return {**told, "ended": found.ended, "model": model.name, "version": model.version}
