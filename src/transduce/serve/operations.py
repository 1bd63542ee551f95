"""Routes for operators: whether the server is alive, whether it takes requests, and its metrics."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from transduce.serve.guards import check_key, is_local, may_see
from transduce.serve.schemas import Health, Problem, Ready
from transduce.serve.service import Service
from transduce.serve.v1 import states
from transduce.version import __version__


def routes(service: Service) -> APIRouter:
    """/health, /ready and /metrics."""
    router = APIRouter(tags=["Operation"])

    @router.get("/health", response_model=Health, responses={503: {"model": Health}})
    async def health() -> Response:
        """The process answers; 503 when the thread that has the models is gone, so that no text is answered."""
        alive = service.batches.alive
        found = Health(status="ok" if alive else "no text is answered any more", version=__version__)
        return JSONResponse(found.model_dump(), 200 if alive else 503)

    @router.get("/ready", response_model=Ready, responses={503: {"model": Ready}})
    async def ready(request: Request) -> Response:
        """Whether requests are taken; 503 when stopping. Where there is a key, only who sends it is told the models."""
        is_ready = service.batches.alive and service.drain.closed_at is None
        found = Ready(ready=is_ready, models=states(service) if may_see(service.settings, request) else [])
        return JSONResponse(found.model_dump(exclude_none=True), 200 if is_ready else 503)

    @router.get("/metrics", response_class=PlainTextResponse, responses={"4XX": {"model": Problem}})
    async def metrics(request: Request) -> Response:
        """Counters for Prometheus. Programs on the server's own machine need no key."""
        if not is_local(request):
            check_key(service.settings, request)
        return Response(service.measures.text(), media_type=service.measures.content_type)

    return router
