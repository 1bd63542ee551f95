"""LibreTranslate's API, so that its clients work with our models."""

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel, ValidationError
from starlette.datastructures import FormData, Headers
from starlette.requests import Request
from starlette.types import Message, Scope

from transduce.core.errors import InputError
from transduce.core.languages import name_of
from transduce.data.tags import addressed
from transduce.documents.html import HtmlDocument
from transduce.documents.runs import Link, Parse, Translatable
from transduce.inference.sentences import Segment, has_letters_or_digits, rejoined, segments
from transduce.serve.datastores import check_memory, matches_in
from transduce.serve.guards import check_key
from transduce.serve.models import Loaded
from transduce.serve.plans import plan_of
from transduce.serve.reading import RunInThread, refuse_half_characters, route_class
from transduce.serve.schemas import Language, Problem, TranslateAnswer, TranslateRequest, terms_of
from transduce.serve.service import Service
from transduce.serve.work import Answer, SearchOptions, WorkItem

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
FIELDS = 200  # of a form
Body = TypeVar("Body", bound=BaseModel)


def openapi_of(body: type[BaseModel]) -> dict[str, Any]:
    """The description of a body that is read as JSON and as a form."""
    described = {"schema": body.model_json_schema()}
    return {"requestBody": {"required": True, "content": dict.fromkeys(["application/json", *FORMS], described)}}


def routes(service: Service) -> APIRouter:
    """/translate and /languages."""
    read = route_class(service.run_in_thread, service.settings.characters)
    router = APIRouter(tags=["LibreTranslate"], responses={"4XX": {"model": Problem}}, route_class=read)

    @router.post("/translate", openapi_extra=openapi_of(TranslateRequest), response_model_exclude_none=True)
    async def translate(request: Request) -> TranslateAnswer:
        """Translate text or HTML. JSON and forms are read."""
        asked = await body_of(request, service.run_in_thread, TranslateRequest)
        check_key(service.settings, request, asked.api_key)
        return await translated(service, request, asked, HtmlDocument if asked.format == "html" else None)

    @router.get("/languages")
    async def languages() -> list[Language]:
        """Which languages are translated into which, by one model or through a third language; each into itself."""
        pairs = await service.run_in_thread(lambda: service.models.pairs)
        return [Language(code=code, name=name_of(code), targets=into) for code, into in pairs.items()]

    return router


async def body_of(request: Request, run_in_thread: RunInThread, expected: type[Body]) -> Body:
    """The body, JSON or a form; what a form lacks may stand in the query, as with LibreTranslate.

    Raises:
        InputError: it is neither, or keys are missing or wrong.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind.startswith("application/") and kind.endswith("json"):
        try:
            values = await request.json()
        except (ValueError, RecursionError):
            raise InputError("Invalid request: the body is not JSON") from None
    else:
        body = await request.body()
        form = await run_in_thread(lambda: asyncio.run(form_of(request.scope, body)))
        values = dict(request.query_params) | {key: form.getlist(key) for key in form}
        values = {key: each[0] if isinstance(each, list) and len(each) == 1 else each for key, each in values.items()}
        refuse_half_characters(values)
    if not isinstance(values, dict):
        raise InputError(f"Invalid request: the body must be an object such as {json.dumps(_example(expected))}")
    return checked(expected, values)


def checked(expected: type[Body], values: dict[str, Any]) -> Body:
    """A request of these fields. Raises InputError for fields that are missing or wrong."""
    try:
        return expected.model_validate(values)
    except ValidationError as error:
        raise InputError(f"Invalid request: {_problem(each)}" for each in error.errors()) from None


async def form_of(scope: Scope, body: bytes, files: int = 0) -> FormData:
    """The fields of a body; in an event loop of its own, since a megabyte of them takes a second.

    Args:
        files: so many fields may be files.

    Raises:
        InputError: it is in another charset than UTF-8, or has too many fields.
        HTTPException: it is no form.
    """

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    kind, _, rest = Headers(scope=scope).get("content-type", "").partition(";")
    if "charset" in rest.lower() and not re.search(
        r"charset\s*=\s*\"?(utf-?8|us-ascii)\"?\s*(;|$)", rest, re.IGNORECASE
    ):
        raise InputError(f"Invalid request: expected {kind} in UTF-8, not in another charset.")
    if body.count(b"&") > FIELDS and kind.strip().lower() == FORMS[0]:  # the library counts only those with names
        raise InputError(f"Invalid request: more than {FIELDS} fields.")
    return await Request(scope, receive).form(max_files=files, max_fields=FIELDS)


def _example(kind: type[BaseModel]) -> Any:
    extra = kind.model_config.get("json_schema_extra")
    return extra.get("example", {}) if isinstance(extra, dict) else {}


def _problem(detail: Any) -> str:
    if detail["type"] == "missing":
        return f"missing {detail['loc'][0]} parameter"
    return f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}"


@dataclass
class CutText:
    """One q: its segments as works, and how their answers become its translation."""

    source: str
    works: list[WorkItem]
    cut: list[Segment]
    document: Translatable | None = None

    @property
    def segments(self) -> list[str]:
        """What is translated, piece by piece, without tags before it."""
        return [self.source[start:end] for start, end in self.cut]

    def translation(self, answers: Sequence[Answer], rank: int = 0) -> str:
        """The text with every segment replaced by its output of this rank, or its last where it has fewer."""
        if self.document:
            tags = [
                len(work.texts[0]) - len(each.text) for work, each in zip(self.works, self.document.pieces, strict=True)
            ]
            links = [() if rank else _behind(each.links, tag) for each, tag in zip(answers, tags, strict=True)]
            return self.document.rejoined([(_output(each, rank), links[place]) for place, each in enumerate(answers)])
        return rejoined(self.source, self.cut, [_output(each, rank) for each in answers])


def _behind(links: Sequence[Link], tag: int) -> Sequence[Link]:
    """The links of a text, behind its tag of so many characters."""
    moved = (Link((source[0] - tag, source[1] - tag), output) for source, output in links)
    return [each for each in moved if each.source[0] >= 0] if tag else links


def _output(answer: Answer, rank: int) -> str:
    listed = answer.prediction.alternatives or (answer.prediction,)
    return listed[min(rank, len(listed) - 1)].text


async def translated(
    service: Service, request: Request, asked: TranslateRequest, parse: Parse | None
) -> TranslateAnswer:
    """The answer to a request: its texts as they are, or translated by a model, or by one behind the other.

    Args:
        parse: what takes its texts apart; None = they are text from the first to the last character.

    Raises:
        InputError: no model translates so.
        TooLong, Busy, Stopped, TooSlow, ClientDisconnected: as `Service.answers`.
    """
    service.check_lengths(listed_of(asked))
    plan = await service.prepared(request, lambda: plan_of(service.models, asked, parse is not None))
    asked = plan.asked
    if not plan.legs:
        answer = _unchanged(asked)
    elif plan.pivot:
        first, second = plan.legs
        between = await _by_model(
            service, request, asked.model_copy(update={"target": plan.pivot, "alternatives": 0}), first, parse
        )
        further = asked.model_copy(update={"q": between.translatedText, "source": plan.pivot})
        answer = await _by_model(service, request, further, second, parse)
    else:
        answer = await _by_model(service, request, asked, plan.legs[0], parse)
    detected = [plan.detected] * len(asked.q) if plan.detected and isinstance(asked.q, list) else plan.detected
    return answer.model_copy(update={"detectedLanguage": detected, "pivot": plan.pivot})


def listed_of(asked: TranslateRequest) -> list[str]:
    """Its texts."""
    return [asked.q] if isinstance(asked.q, str) else asked.q


def _unchanged(asked: TranslateRequest) -> TranslateAnswer:
    """The texts as they are, for a language into itself."""
    others: list[Any] | None = None
    if asked.alternatives:
        others = [] if isinstance(asked.q, str) else [[] for _ in asked.q]
    return TranslateAnswer(translatedText=asked.q, alternatives=others)


async def _by_model(
    service: Service, request: Request, asked: TranslateRequest, model: Loaded, parse: Parse | None
) -> TranslateAnswer:
    """What one model makes of the texts."""
    ranks = _ranks(service, model, asked.alternatives)
    if asked.matches is not None:
        check_memory(model.name, model.served)
    ask = SearchOptions(
        (("nbest", ranks + 1),) if ranks else (),
        matches=asked.matches,
        protect=asked.protect,
        glossary=terms_of(asked.glossary),
    )
    texts = await service.prepared(
        request, lambda: [cut_text(service, model, text, asked, parse, ask) for text in listed_of(asked)]
    )
    answers = iter(await service.answers(request, [work for text in texts for work in text.works]))
    found = [(text, [next(answers) for _ in text.works]) for text in texts]
    best, others = await service.run_in_thread(lambda: _translations(found, ranks))
    matches = [matches_in([each.prediction for each in own]) for _, own in found]
    several = not isinstance(asked.q, str)
    return TranslateAnswer(
        translatedText=best if several else best[0],
        alternatives=(others if several else others[0]) if asked.alternatives else None,
        matches=None if asked.matches is None else matches if several else matches[0],
        confidence=_of_each([_confidence(own) for _, own in found], several),
        warnings=_of_each([_warnings(own) for _, own in found], several),
    )


def _of_each(values: Sequence[Any], several: bool) -> Any:
    """What is told of each text, or of the only one; None where there is nothing to tell of any."""
    told = [*values] if any(values) else None
    return told if several or told is None else told[0]


def _confidence(answers: Sequence[Answer]) -> float | None:
    """How sure the words of a text's segments are, on average."""
    words = [word.confidence for each in answers for word in each.prediction.word_confidences]
    return round(sum(words) / len(words), 4) if words else None


def _warnings(answers: Sequence[Answer]) -> list[str]:
    return [warning for each in answers for warning in each.prediction.warnings]


def _translations(
    found: Sequence[tuple[CutText, Sequence[Answer]]], alternatives: int
) -> tuple[list[str], list[list[str]]]:
    """The best translation of each text, and its further ones."""
    ranks = range(1, alternatives + 1)
    others = [[text.translation(own, rank) for rank in ranks if own] for text, own in found]
    return [text.translation(own) for text, own in found], others


def model_of(service: Service, asked: TranslateRequest) -> tuple[TranslateRequest, Loaded]:
    """The request with the codes of languages that the models' recipes have, and the model that answers it.

    Raises:
        InputError: no model translates so by itself.
    """
    plan = plan_of(service.models, asked)
    if len(plan.legs) != 1:
        raise InputError(f"{asked.source[:20]} to {asked.target[:20]}: no single model of this server translates so.")
    return plan.asked, plan.legs[0]


def _ranks(service: Service, model: Loaded, alternatives: int) -> int:
    """How many further outputs the recipe's own search has to give, so that answers are `transduce predict`'s."""
    own = model.served.search
    return min(alternatives, own.beam - 1 if own.method == "beam" else 0, service.settings.beam - 1)


def cut_text(
    service: Service,
    model: Loaded,
    text: str,
    asked: TranslateRequest,
    parse: Parse | None = None,
    ask: SearchOptions = SearchOptions(),  # noqa: B008
) -> CutText:
    """A text as works of the model, one for each segment that it reads by itself.

    Args:
        parse: what takes the text apart; None = it is text from the first to the last character.
        ask: how each is searched; by default as the recipe says.
    """
    served, limit = model.served, service.settings.sentences_above
    apart = served.splits(asked.split)

    def whole(line: str) -> bool:
        most = served.max_source_length if asked.split == "none" else min(limit, served.max_source_length)
        return not apart and served.length(line) <= most

    def work(piece: str, links: bool = False) -> WorkItem:
        tagged = asked.target in model.tagged
        [source] = addressed(served.tokenizers.get("source"), [piece], asked.target) if tagged else [piece]
        return WorkItem(model, (source,), ask, links=links)

    if parse is not None:
        document = parse(text, whole, model.source)
        works = [work(piece.text, bool(piece.tags)) for piece in document.pieces]
        return CutText(text, works, [], document)
    found = segments(text, whole, language=model.source)
    cut = [each for each in found if has_letters_or_digits(text[each.start : each.end])]
    return CutText(text, [work(text[first:last]) for first, last in cut], cut)
