"""The explorer's data over HTTP: one sentence a request, computed in turn by the thread with the model."""

import json
from collections.abc import Callable
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from transduce.core.errors import InputError
from transduce.explore.example import example
from transduce.explore.exploration import asked as given_for
from transduce.explore.exploration import explore
from transduce.interpret.attention import Attention, looked
from transduce.interpret.capabilities import described
from transduce.interpret.importance import importance
from transduce.interpret.model_inputs import Given
from transduce.interpret.positions import placed
from transduce.interpret.rollout import rollout_dict
from transduce.interpret.steps import steps
from transduce.pipeline.pipeline import Pipeline
from transduce.runtime.event_log import trained
from transduce.serve import explorer_schemas as schemas
from transduce.serve.reading import keyed_router
from transduce.serve.schemas import search_of
from transduce.serve.service import Service
from transduce.serve.work import Work

Answers = Callable[[Work], dict[str, Any]]


def routes(service: Service) -> APIRouter:
    """/v1/explore/.."""
    router = keyed_router(service, "/v1/explore", "Explorer")
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

        def describe(work: Work) -> dict[str, Any]:
            for each in current:
                if (each.name, each.version) not in known:
                    inner, run = each.pipeline, service.models.run(each.name)
                    told = described(
                        each.name, inner.model, inner.task, inner.recipe, run is not None, inner.provenance
                    )
                    if told["hears"]:
                        told["hears"]["bytes"] = service.settings.audio_bytes
                    known[each.name, each.version] = told
            return {"models": [known[each.name, each.version] for each in current]}

        return await done(request, None, [""], describe)

    @router.post("/predict", response_model=schemas.ExplorationAnswer)
    async def predict(request: Request, asked: schemas.ExploreRequest) -> Response:
        """The prediction, its n-best list, each token's alternatives, the beam, and all attention."""
        model = service.models.asked(asked.model)
        search, most = search_of(asked), service.settings.attention_numbers
        service.check_search(model, search)
        return await done(
            request,
            asked.model,
            [asked.text],
            lambda work: explore(
                work.model.pipeline,
                asked.text,
                work.model.name,
                most,
                asked.sentence,
                asked.as_it_stands,
                **dict(search),
            ),
        )

    @router.post("/heads", response_model=schemas.HeadsAnswer)
    async def heads(request: Request, asked: schemas.PairRequest) -> Response:
        """Which heads matter: log p of the output with each switched off, less log p with all."""

        def matter(work: Work) -> dict[str, Any]:
            inner, given = work.model.pipeline, _given(service, work, asked)
            return importance(inner.model, inner.task, given, work.check_wanted)

        return await done(request, asked.model, _texts(asked), matter)

    @router.post("/rollout", response_model=schemas.RolloutAnswer, response_model_exclude_none=True)
    async def rollout(request: Request, asked: schemas.PairRequest) -> Response:
        """Attention through all layers."""

        def roll(work: Work) -> dict[str, Any]:
            return rollout_dict(_attention(work.model.pipeline, _given(service, work, asked), asked.text))

        return await done(request, asked.model, _texts(asked), roll)

    @router.post("/steps", response_model=schemas.StepsAnswer)
    async def step(request: Request, asked: schemas.StepsRequest) -> Response:
        """One query's computation, from q and k to what comes out."""

        def walk(work: Work) -> dict[str, Any]:
            inner, given = work.model.pipeline, _given(service, work, asked)
            texts = (asked.text, _written(inner, given))
            return steps(inner.model, inner.task, given, texts, asked.name, asked.head, asked.query)

        return await done(request, asked.model, _texts(asked), walk)

    @router.get("/example", response_model=schemas.StepsAnswer)
    async def worked_example() -> Response:
        """ "Thinking Machines": 112, 96 -> 14, 12 -> 0.88, 0.12."""
        return Response(_json(example()), media_type="application/json")

    @router.post("/positions", response_model=schemas.PositionsAnswer, response_model_exclude_none=True)
    async def positions(request: Request, asked: schemas.PositionsRequest) -> Response:
        """How the model knows where a token stands."""

        def place(work: Work) -> dict[str, Any]:
            return placed(work.model.pipeline.model if asked.model else None, asked.length, asked.width)

        return await done(request, asked.model, [""], place)

    @router.post("/training", response_model=schemas.TrainingAnswer)
    async def training(request: Request, asked: schemas.TrainingRequest) -> Response:
        """How the model was trained, or is being trained."""
        model = service.models.asked(asked.model)
        run = service.models.run(model.name)
        if run is None:
            raise InputError(
                f"{model.name}: its training is not known; serve the run directory rather than the model file."
            )
        return await done(request, asked.model, [""], lambda work: trained(run, asked.start))

    return router


def _texts(asked: schemas.PairRequest) -> list[str]:
    """What of the request counts as text."""
    given = asked.target or ""
    return [asked.text, given if isinstance(given, str) else "".join(given)]


def _given(service: Service, work: Work, asked: schemas.PairRequest) -> Given:
    pipeline = work.model.pipeline
    given = given_for(pipeline, asked.text, asked.target, service.settings.attention_numbers)
    most = pipeline.task.readable + service.settings.max_new
    if asked.target is not None and len(given.target) > most:
        raise InputError(f"target: {len(given.target):,} tokens; {most:,} at most on this server: shorten it.")
    return given


def _written(pipeline: Pipeline, given: Given) -> str:
    return pipeline.task.tokenizers["target"].decode(given.target)


def _attention(pipeline: Pipeline, given: Given, text: str) -> Attention:
    return looked(pipeline.model, pipeline.task, given, text, _written(pipeline, given))[0]


def _json(found: dict[str, Any]) -> bytes:
    return json.dumps(found, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
