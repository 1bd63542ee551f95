"""The server as an ASGI application: `create_app(models)`.

FastAPI is used rather than Starlette alone because the types that check a request are then also the OpenAPI
description. Its documentation pages load from another host, so they are off, and `api_page` replaces them.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, lru_cache

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from transduce.core.errors import InputError, TransduceError
from transduce.serve import (
    alternatives,
    detection,
    explorer,
    frontend,
    generation,
    libretranslate,
    operations,
    transcriptions,
    translate_file,
    v1,
)
from transduce.serve.api_page import api_page
from transduce.serve.batches import Busy, Stopped
from transduce.serve.guards import MICROPHONE, Guards, page_policy, problem
from transduce.serve.keys import TooMany
from transduce.serve.models import Models
from transduce.serve.page_file import icon, translation_page
from transduce.serve.service import Service, TooLong, TooSlow
from transduce.serve.settings import ServeSettings
from transduce.serve.work import ClientDisconnected
from transduce.version import __version__

DESCRIPTION = 'Trained models over HTTP: LibreTranslate\'s API and our own. Every error is {"error": "..."}.'

FAILED = "this request failed; the server's log says why."

log = logging.getLogger("transduce.serve")


def create_app(models: Models, page: str | None = None, settings: ServeSettings | None = None) -> FastAPI:
    """The application. Its service is `app.state.service`.

    Args:
        page: an HTML page for "/explore" that brings all it needs: inline scripts and styles, no style attributes; it
            may call this server and nobody else. "/" translates where a model does; else it leads to this page, and
            without one it shows the API.
    """
    service = Service(models, settings or ServeSettings())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await service.stop()

    app = FastAPI(
        title="Transduce",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.service = service
    explored = (explorer,) if service.settings.explore else ()
    compatible = (libretranslate, detection, translate_file, frontend)
    rooms = (*compatible, v1, alternatives, generation, transcriptions, *explored, operations)
    routers = [room.routes(service) for room in rooms]
    for router in routers:
        app.include_router(router)
    _errors(app)
    _pages(app, page if service.settings.explore else None, service)
    paths = {each.path for routes in (app, *routers) for each in routes.routes if isinstance(each, Route)}
    if service.settings.origins:  # pages of these may also read what they are answered
        app.add_middleware(
            CORSMiddleware,
            allow_origins=service.settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type", "x-api-key"],
            expose_headers=["retry-after"],
        )
    app.add_middleware(
        Guards,
        settings=service.settings,
        measures=service.measures,
        drain=service.drain,
        paths=paths,
        accepts_audio=lambda: service.models.accepts_audio,
    )
    return app


def _errors(app: FastAPI) -> None:
    @app.exception_handler(RequestValidationError)
    async def unreadable(request: Request, error: RequestValidationError) -> Response:
        told = [f"{'.'.join(str(part) for part in each['loc'])}: {each['msg']}" for each in error.errors()[:20]]
        return problem(400, "Invalid request: " + "; ".join(told))

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return problem(error.status_code, str(error.detail), dict(error.headers or {}))

    @app.exception_handler(InputError)
    async def wrong(request: Request, error: InputError) -> Response:
        return problem(400, "; ".join(error.problems))

    @app.exception_handler(TooLong)
    async def too_long(request: Request, error: TooLong) -> Response:
        return problem(413, str(error))

    @app.exception_handler(Busy)
    async def busy(request: Request, error: Busy) -> Response:
        return problem(429, str(error), {"retry-after": str(error.seconds)})

    @app.exception_handler(TooMany)
    async def too_many(request: Request, error: TooMany) -> Response:
        return problem(429, str(error), {"retry-after": str(error.seconds)})

    @app.exception_handler(Stopped)
    async def stopped(request: Request, error: Stopped) -> Response:
        return problem(503, str(error), {"retry-after": "10"})

    @app.exception_handler(TooSlow)
    async def slow(request: Request, error: TooSlow) -> Response:
        return problem(503, str(error), {"retry-after": "10"})

    @app.exception_handler(ClientDisconnected)
    async def gone(request: Request, error: ClientDisconnected) -> Response:
        return Response(status_code=499)

    @app.exception_handler(TransduceError)
    async def broke_down(request: Request, error: TransduceError) -> Response:
        log.error("a request failed.", exc_info=error)
        return problem(500, FAILED)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return problem(500, FAILED, {"connection": "close"})  # as the server does, once it has logged the error


def _pages(app: FastAPI, page: str | None, service: Service) -> None:
    policy_of = lru_cache(maxsize=4)(page_policy)

    @cache
    def policy_of_docs() -> str:
        """Made at the first request: FastAPI takes half a second to describe an API, too long for every start."""
        return page_policy(api_page(app.openapi()))

    @app.get("/", include_in_schema=False)
    async def home(request: Request) -> Response:
        found = translation_page(service.models, service.settings, explorer=page is not None)
        if found is not None:
            return shown(found, policy_of(found))
        return await docs(request) if page is None else RedirectResponse("explore")

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        key = service.settings.wants_key
        return shown(api_page(app.openapi(), str(request.base_url), service.models, key), policy_of_docs())

    @app.get("/favicon.ico", include_in_schema=False)
    async def favicon() -> Response:
        return Response(icon(), media_type="image/svg+xml", headers={"cache-control": "public, max-age=86400"})

    if page is not None:
        explored = page

        @app.get("/explore", include_in_schema=False)
        async def explore() -> Response:
            answer = shown(explored, policy_of(explored))
            if service.models.accepts_audio:
                answer.headers["permissions-policy"] = MICROPHONE
            return answer

    def shown(content: str, policy: str) -> Response:
        return HTMLResponse(content, headers={"content-security-policy": policy})
