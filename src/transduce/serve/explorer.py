"""The explorer's data over HTTP: one sentence a request, computed in turn by the thread with the model."""

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from transduce.core.errors import InputError
from transduce.runtime.event_log import trained
from transduce.serve import explorer_schemas as schemas
from transduce.serve.models import Loaded
from transduce.serve.reading import keyed_router
from transduce.serve.schemas import search_of
from transduce.serve.service import Service
from transduce.serve.work import WorkItem

Answers = Callable[[WorkItem], dict[str, Any]]
FILE = "application/octet-stream"  # a page that is saved, and not shown under the server's own name


def routes(service: Service) -> APIRouter:
    """/v1/explore/.."""
    router = keyed_router(service, "/v1/explore", "Explorer")
    settings = service.settings
    known: dict[tuple[str, int], dict[str, Any]] = {}  # descriptions, by name and version

    async def done(request: Request, name: str | None, texts: list[str], do: Answers) -> Response:
        """What `do` gives, as JSON, which is written where it was computed."""
        model = service.models.asked(name)
        body = await service.done(request, model, texts, lambda work: _json(do(work)))
        return Response(body, media_type="application/json")

    @router.get("/models", response_model=schemas.DescribedModelsAnswer)
    async def models(request: Request) -> Response:
        """What each model is, which of its parts attend, and which views it has."""
        current = [model.current for model in service.models]

        def describe(work: WorkItem) -> dict[str, Any]:
            for each in current:
                if (each.name, each.version) not in known:
                    told = _views(each).description(each, service.models.run(each.name), settings)
                    known[each.name, each.version] = told
            return {"models": [known[each.name, each.version] for each in current]}

        return await done(request, None, [""], describe)

    @router.post("/predict", response_model=schemas.ExplorationAnswer)
    async def predict(request: Request, asked: schemas.ExploreRequest) -> Response:
        """The prediction, its n-best list, each token's alternatives, the beam, and all attention."""
        service.check_search(service.models.asked(asked.model), search_of(asked))
        return await done(
            request, asked.model, [asked.text], lambda work: _views(work.model).prediction(work, asked, settings)
        )

    @router.post("/heads", response_model=schemas.HeadsAnswer)
    async def heads(request: Request, asked: schemas.PairRequest) -> Response:
        """Which heads matter: log p of the output with each switched off, less log p with all."""
        return await done(
            request, asked.model, _texts(asked), lambda work: _views(work.model).heads(work, asked, settings)
        )

    @router.post("/why", response_model=schemas.WhyAnswer)
    async def why(request: Request, asked: schemas.WhyRequest) -> Response:
        """Why not another output: log p of both, token by token, and what each source word changes."""
        texts = [*_texts(asked), asked.other]
        return await done(request, asked.model, texts, lambda work: _views(work.model).why_not(work, asked, settings))

    @router.post("/rollout", response_model=schemas.RolloutAnswer, response_model_exclude_none=True)
    async def rollout(request: Request, asked: schemas.PairRequest) -> Response:
        """Attention through all layers."""
        return await done(
            request, asked.model, _texts(asked), lambda work: _views(work.model).rollout(work, asked, settings)
        )

    @router.post("/steps", response_model=schemas.StepsAnswer)
    async def step(request: Request, asked: schemas.StepsRequest) -> Response:
        """One query's computation, from q and k to what comes out."""
        return await done(
            request, asked.model, _texts(asked), lambda work: _views(work.model).step(work, asked, settings)
        )

    @router.get("/example", response_model=schemas.StepsAnswer)
    async def worked_example(request: Request) -> Response:
        """ "Thinking Machines": 112, 96 -> 14, 12 -> 0.88, 0.12."""
        return await done(request, None, [""], lambda work: _views(work.model).worked_example())

    @router.post("/page", response_class=Response, responses={200: {"content": {FILE: {}}}})
    async def saved_page(request: Request, asked: schemas.PageRequest) -> Response:
        """The explorer of one text as a file that works offline; a Transformer that is not too large runs in it."""
        model = service.models.asked(asked.model)
        run = service.models.run(model.name)

        def write(work: WorkItem) -> bytes:
            # what is too much for an answer is refused before the page is made
            _views(work.model).prediction(work, schemas.ExploreRequest(text=asked.text), settings)
            return _views(work.model).saved_page(work, asked, run).encode()

        body = await service.done(request, model, [asked.text], write)
        saved = {"content-disposition": "attachment; filename=explorer.html"}
        return Response(body, media_type=FILE, headers=saved)

    @router.post("/positions", response_model=schemas.PositionsAnswer, response_model_exclude_none=True)
    async def positions(request: Request, asked: schemas.PositionsRequest) -> Response:
        """How the model knows where a token stands."""
        return await done(request, asked.model, [""], lambda work: _views(work.model).positions(work, asked))

    @router.post("/training", response_model=schemas.TrainingAnswer)
    async def training(request: Request, asked: schemas.TrainingRequest) -> Response:
        """How the model was trained, or is being trained."""
        model = service.models.asked(asked.model)
        run = service.models.run(model.name)
        if run is None:
            raise InputError(
                f"{model.name}: its training is not known; serve the run directory rather than the model file."
            )
        body = await service.while_connected(request, service.run_in_thread(lambda: _json(trained(run, asked.start))))
        return Response(body, media_type="application/json")

    return router


def _views(model: Loaded) -> ModuleType:
    """What computes the answers about a model. Raises InputError where it needs torch, which is not there."""
    _ = model.pipeline  # with torch from here on
    from transduce.serve import explorer_views

    return explorer_views


def _texts(asked: schemas.PairRequest) -> list[str]:
    """What of the request counts as text."""
    given = asked.target or ""
    return [asked.text, given if isinstance(given, str) else "".join(given)]


def _json(found: dict[str, Any]) -> bytes:
    return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
