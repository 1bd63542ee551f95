"""Routes for operators: whether the server is alive, whether it takes requests, and its metrics."""

from fastapi import APIRouter, Depends
from starlette.responses import JSONResponse, PlainTextResponse, Response

from transduce.serve.guards import key_needed
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
    async def ready() -> Response:
        """Whether requests are taken, and which version of which model answers them; 503 when stopping."""
        is_ready = service.batches.alive and service.drain.closed_at is None
        found = Ready(ready=is_ready, models=states(service))
        return JSONResponse(found.model_dump(exclude_none=True), 200 if is_ready else 503)

    @router.get(
        "/metrics",
        dependencies=[Depends(key_needed(service.settings))],
        response_class=PlainTextResponse,
        responses={"4XX": {"model": Problem}},
    )
    async def metrics() -> Response:
        """Counters for Prometheus."""
        return Response(service.measures.text(), media_type=service.measures.content_type)

    return router
