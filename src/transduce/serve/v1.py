"""Our own API: `transduce predict` with scores, tokens and attention, and output streamed token by token."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from transduce.core.errors import InputError, TransduceError
from transduce.data.tags import addressed
from transduce.inference.prediction import Prediction
from transduce.inference.sentences import Split, rejoined
from transduce.serve.datastores import check_memory
from transduce.serve.events import EVENT, event, heard
from transduce.serve.models import Loaded
from transduce.serve.reading import keyed_router
from transduce.serve.schemas import (
    AttentionAnswer,
    ListedModel,
    ModelList,
    ModelState,
    Output,
    PredictAnswer,
    PredictionAnswer,
    PredictRequest,
    StreamRequest,
    search_of,
    terms_of,
)
from transduce.serve.service import Service, TooLong, left
from transduce.serve.work import Answer, OnToken, SearchOptions, WorkItem, samples

if TYPE_CHECKING:
    from transduce.interpret.attention import Layer

EVENTS = """Server-sent events: one `token` after each token, with `delta`, the text that it adds to the output, which
may be empty; then one `done` with the last `delta` and the whole `text`, or one `error`. All `delta` joined are the
`text`. If a token changes text that was already sent, its event has `text`, the output so far, in place of `delta`."""
JUDGED = ("confidence", "word_confidences", "unknown_words", "warnings")  # details of the best output alone
HALF = "\ufffd"  # stands for bytes that are not a whole character


def routes(service: Service) -> APIRouter:
    """/v1/predict, /v1/stream and /v1/models."""
    router = keyed_router(service, "/v1", "Transduce")

    @router.post("/predict", response_model=PredictAnswer)
    async def predict(request: Request, asked: PredictRequest) -> Response:
        """One prediction a text, as `transduce predict` gives it."""
        model = service.models.asked(asked.model)
        service.check_lengths(asked.texts)
        if asked.to:
            asked = asked.model_copy(update={"texts": _addressed(model, asked.texts, asked.to)})
        works = await service.prepared(request, lambda: _works(service, model, asked))
        answers = await service.answers(request, works)
        if any(answer.withheld for answer in answers):
            raise TooLong("these texts have too many attention weights for one answer; send fewer, or shorter ones.")
        body = await service.run_in_thread(lambda: "".join(_written(model, asked, answers)).encode())
        return Response(body, media_type="application/json")

    @router.post(
        "/stream",
        response_class=StreamingResponse,
        responses={200: {"description": EVENTS, "content": {"text/event-stream": {"itemSchema": EVENT}}}},
    )
    async def stream(request: Request, asked: StreamRequest) -> StreamingResponse:
        """Greedy search, token by token."""
        model = service.models.asked(asked.model)
        service.check_lengths([asked.text])
        [text] = _addressed(model, [asked.text], asked.to)
        search = _greedy(asked)
        service.check_search(model, search)
        service.batches.check_room(1)
        return StreamingResponse(
            _events(service, request, model, text, SearchOptions(search), asked.split), media_type="text/event-stream"
        )

    @router.get("/models", response_model_exclude_none=True)
    async def models() -> ModelList:
        """The models by name, the default first; OpenAI's clients read the answer, too."""
        return ModelList(data=[ListedModel(**dict(each), id=each.name) for each in states(service)])

    return router


def states(service: Service) -> list[ModelState]:
    return [
        ModelState(
            name=model.name,
            version=model.current.version,
            task=model.current.served.kind,
            source=model.current.source if model.current.translates else None,
            target=model.current.target,
            targets=list(model.current.targets) if model.current.tagged else None,
            problem=model.problem,
        )
        for model in service.models
    ]


def _works(service: Service, model: Loaded, asked: PredictRequest) -> list[WorkItem]:
    search = search_of(asked)
    service.check_search(model, search, len(asked.texts) if samples(model, search) else 1)
    if asked.long == "refuse":
        pieces = model.served.pieces(asked.texts, asked.split)
        if pieces.long:
            raise InputError(f"texts.{place}: {known.partition(': ')[2]}." for place, known in pieces.long.items())
    share = service.settings.attention_numbers // max(1, len(asked.texts))
    attention_limit = share if asked.attention or asked.alignment else 0
    if asked.origins or asked.matches is not None:
        check_memory(model.name, model.served)
    long: Literal["split", "truncate"] = "truncate" if asked.long == "truncate" else "split"
    ask = SearchOptions(search, long, asked.split, matches=asked.matches, origins=asked.origins)
    ask = replace(ask, protect=asked.protect, glossary=terms_of(asked.glossary))
    whole = WorkItem(model, tuple(asked.texts), ask, attention_limit)
    if not asked.texts or whole.samples:
        return [whole] if asked.texts else []
    return [WorkItem(model, (text,), ask, attention_limit) for text in asked.texts]


def _addressed(model: Loaded, texts: Sequence[str], to: str) -> list[str]:
    """With the tag of the language to write. Raises InputError where the model does not write it."""
    return addressed(model.served.tokenizers.get("source"), texts, to) if to else list(texts)


def _greedy(asked: StreamRequest) -> tuple[tuple[str, Any], ...]:
    """Greedy search whatever the recipe says."""
    return (*search_of(asked), ("method", "greedy"), ("nbest", 1))


def _output(asked: PredictRequest, found: Prediction) -> dict[str, Any]:
    told = {name: each for name, each in found.details().items() if name not in JUDGED}
    values: dict[str, Any] = {"text": found.text, "ended": found.ended, **told}
    if asked.scores:
        values |= {"score": found.score, "log_probability": found.log_probability}
    if asked.tokens:
        values |= {"tokens": list(found.tokens), "token_log_probabilities": list(found.token_log_probabilities)}
    return values


def _written(model: Loaded, asked: PredictRequest, answers: Sequence[Answer]) -> Iterator[str]:
    yield f'{{"model":{json.dumps(model.name)},"version":{model.version},"predictions":['
    for number, answer in enumerate(answers):
        written = _prediction(asked, answer).model_dump_json(exclude_none=True)
        yield "," if number else ""
        if asked.attention and answer.attention:  # the last key, so that its weights can follow
            yield written.removesuffix("}}")
            yield from _weights(answer.attention.layers)
            yield "}}"
        else:
            yield written
    yield "]}"


def _weights(layers: "Sequence[Layer]") -> Iterator[str]:
    """Row by row: as one object they would keep all other threads waiting for a second."""
    yield ',"weights":{'
    for number, layer in enumerate(layers):
        yield f"{',' if number else ''}{json.dumps(layer.name)}:["
        for head, weights_TS in enumerate(layer.weights.double()):
            yield ",[" if head else "["
            for row, weights_S in enumerate(weights_TS.numpy().round(6)):
                yield ("," if row else "") + json.dumps(weights_S.tolist(), separators=(",", ":"))
            yield "]"
        yield "]"
    yield "}"


def _prediction(asked: PredictRequest, answer: Answer) -> PredictionAnswer:
    found = answer.prediction
    listed = [Output(**_output(asked, each)) for each in found.alternatives if not found.details().keys() - JUDGED]
    judged = {name: each for name, each in found.details().items() if name in JUDGED}
    values = {**_output(asked, found), **found.memory_details(), **judged}
    return PredictionAnswer(**values, nbest=listed or None, unseen=found.unseen, attention=_attention(asked, answer))


def _attention(asked: PredictRequest, answer: Answer) -> AttentionAnswer | None:
    if answer.attention is None:
        return None
    found = answer.attention
    alignment_TS = found.alignment() if asked.alignment else None
    sources = [] if found.source is None else [token.piece for token in found.source.tokens]
    tokens = len(answer.prediction.tokens)
    aligned = None if alignment_TS is None else alignment_TS[:tokens, : max(1, len(sources) - 1)].argmax(1).tolist()
    return AttentionAnswer(
        source_tokens=sources,
        target_tokens=[token.piece for token in found.target.tokens],
        cross=[layer.name for layer in found.of("cross")],
        alignment=aligned,
    )


class Growing:
    """A growing text of which each part is sent once."""

    def __init__(self) -> None:
        self._sent = ""

    def more(self, text: str, done: bool = False) -> dict[str, str]:
        """{"delta": the part not sent yet}, or {"text": the whole text} if it does not begin with what was sent.

        An incomplete character at the end is held back until it is complete, unless the text is `done`.
        """
        text = text if done else text.rstrip(HALF)
        if not text.startswith(self._sent):
            if not done and self._sent.startswith(text):
                return {"delta": ""}
            self._sent = text
            return {"text": text}
        sent, self._sent = self._sent, text
        return {"delta": text[len(sent) :]}


async def _events(
    service: Service, request: Request, model: Loaded, text: str, ask: SearchOptions, split: Split
) -> AsyncIterator[str]:
    """Piece by piece, so that the pieces of a text come in their order."""
    try:
        pieces = await service.run_in_thread(lambda: model.served.pieces([text], split))
        cut, tags = pieces.cuts[0], pieces.tags.get(0, "")
    except TransduceError as error:
        yield event("error", {"error": str(error)})
        return
    outputs: list[str] = []
    growing = Growing()
    gone: asyncio.Future[Any] = asyncio.ensure_future(left(request))

    def so_far(output: str) -> str:
        read = cut[: len(outputs) + 1]
        return rejoined(text[: read[-1].end], read, [*outputs, output])[read[0].start :]

    try:
        for start, end in cut:
            make = partial(_piece, model, tags + text[start:end], ask)
            async for name, said in heard(service, make, gone):
                if name == "error":
                    yield event(name, {"error": said})
                    return
                if name == "token":
                    yield event(name, growing.more(so_far(said)))
                else:
                    outputs.append(said.prediction.text)
        whole = rejoined(text[: cut[-1].end], cut, outputs)[cut[0].start :]
        last = growing.more(whole, done=True)
        yield event("done", {**last, "text": whole, "model": model.name, "version": model.version})
    finally:
        gone.cancel()


def _piece(model: Loaded, piece: str, ask: SearchOptions, on_token: OnToken) -> WorkItem:
    return WorkItem(model, (piece,), ask, on_token=on_token)
