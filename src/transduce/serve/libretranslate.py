"""LibreTranslate's API, so that its clients work with our models."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import APIRouter
from pydantic import ValidationError
from starlette.datastructures import FormData, Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Scope

from transduce.core.errors import InputError
from transduce.core.languages import matching, name_of
from transduce.data.tags import addressed
from transduce.inference.sentences import Segment, has_letters_or_digits, rejoined, segments
from transduce.serve.datastores import check_memory, matches_in
from transduce.serve.file_formats import Parse, Translatable
from transduce.serve.guards import right_key
from transduce.serve.markup import Document, Link
from transduce.serve.models import Loaded
from transduce.serve.reading import RunInThread, refuse_half_characters, route_class
from transduce.serve.schemas import DetectedLanguage, Language, Problem, TranslateAnswer, TranslateRequest
from transduce.serve.service import Service
from transduce.serve.work import Answer, SearchOptions, WorkItem

BODY = {"schema": TranslateRequest.model_json_schema()}
FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")
OPENAPI = {"requestBody": {"required": True, "content": dict.fromkeys(["application/json", *FORMS], BODY)}}
FIELDS = 200  # of a form
NO_DETECTION = (
    "This server does not detect languages: a model reads the one language that it was trained on. "
    'GET /languages says which; source "auto" means it.'
)


def routes(service: Service) -> APIRouter:
    """/translate, /languages and /detect."""
    read = route_class(service.run_in_thread, service.settings.characters)
    router = APIRouter(tags=["LibreTranslate"], responses={"4XX": {"model": Problem}}, route_class=read)

    @router.post("/translate", openapi_extra=OPENAPI, response_model_exclude_none=True)
    async def translate(request: Request) -> TranslateAnswer:
        """Translate text or HTML. JSON and forms are read."""
        asked = await _asked(request, service.run_in_thread)
        if not right_key(service.settings, request, asked.api_key):
            raise HTTPException(403, "Invalid API key")
        return await translated(service, request, asked, Document if asked.format == "html" else None)

    @router.get("/languages")
    async def languages() -> list[Language]:
        """Which languages are translated into which."""
        pairs = [model.current for model in service.models if model.current.translates]
        targets: dict[str, list[str]] = {}
        for each in pairs:
            targets.setdefault(each.source, []).extend(each.targets)
            for code in each.targets:
                targets.setdefault(code, [])
        return [
            Language(code=code, name=name_of(code), targets=list(dict.fromkeys(into))) for code, into in targets.items()
        ]

    @router.post("/detect", status_code=404, response_model=Problem, responses={404: {"model": Problem}})
    async def detect() -> Any:
        """Not offered: always 404, with the reason."""
        raise HTTPException(404, NO_DETECTION)

    return router


async def _asked(request: Request, run_in_thread: RunInThread) -> TranslateRequest:
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
        raise InputError("Invalid request: the body must be an object with q, source and target")
    try:
        return TranslateRequest.model_validate(values)
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
    """The answer to a request.

    Args:
        parse: what takes its texts apart; None = they are text from the first to the last character.

    Raises:
        InputError: no model translates so.
        TooLong, Busy, Stopped, TooSlow, ClientDisconnected: as `Service.answers`.
    """
    listed = [asked.q] if isinstance(asked.q, str) else asked.q
    service.check_lengths(listed)
    asked, model = model_of(service, asked)
    if asked.matches is not None:
        check_memory(model.name, model.served)
    ask = replace(_ask(service, model, asked.alternatives), matches=asked.matches)
    texts = await service.prepared(
        request, lambda: [cut_text(service, model, text, asked, parse, ask) for text in listed]
    )
    answers = iter(await service.answers(request, [work for text in texts for work in text.works]))
    found = [(text, [next(answers) for _ in text.works]) for text in texts]
    best, others = await service.run_in_thread(lambda: _translations(found, asked.alternatives))
    detected = DetectedLanguage(language=model.source, confidence=100.0)
    matches = [matches_in([each.prediction for each in own]) for _, own in found]
    several = not isinstance(asked.q, str)
    return TranslateAnswer(
        translatedText=best if several else best[0],
        alternatives=(others if several else others[0]) if asked.alternatives else None,
        detectedLanguage=([detected] * len(best) if several else detected) if asked.source == "auto" else None,
        matches=None if asked.matches is None else matches if several else matches[0],
    )


def _translations(
    found: Sequence[tuple[CutText, Sequence[Answer]]], alternatives: int
) -> tuple[list[str], list[list[str]]]:
    """The best translation of each text, and its further ones."""
    ranks = range(1, alternatives + 1)
    others = [[text.translation(own, rank) for rank in ranks if own] for text, own in found]
    return [text.translation(own) for text, own in found], others


def _with_known_codes(service: Service, asked: TranslateRequest) -> TranslateRequest:
    """The same with the codes that the models' recipes have, as clients ask for en-US and zh-CN, too."""
    chosen = [service.models.named(asked.model)] if asked.model else [model.current for model in service.models]
    pairs = [each for each in chosen if each.translates]
    source = asked.source if asked.source == "auto" else matching(asked.source, [each.source for each in pairs])
    target = matching(asked.target, [code for each in pairs for code in each.targets])
    return asked.model_copy(update={"source": source, "target": target})


def model_of(service: Service, asked: TranslateRequest) -> tuple[TranslateRequest, Loaded]:
    """The request with the codes of languages that the models' recipes have, and the model that answers it.

    Raises:
        InputError: no model translates so.
    """
    asked = _with_known_codes(service, asked)
    return asked, _model(service, asked)


def _model(service: Service, asked: TranslateRequest) -> Loaded:
    if asked.model is None:
        return service.models.translator(asked.source, asked.target)
    model = service.models.named(asked.model)
    if not model.translates:
        raise InputError(f"{model.name} continues text and does not translate; ask /v1/predict.")
    if model.tagged and asked.target not in model.targets:
        known = ", ".join(model.targets)
        raise InputError(f"translation to {asked.target[:20]} is not supported; {model.name} writes {known}.")
    return model


def _ask(service: Service, model: Loaded, alternatives: int) -> SearchOptions:
    """The recipe's own search, so that answers are `transduce predict`'s; it may list more of what it finds."""
    if not alternatives:
        return SearchOptions()
    own = model.served.search
    most = min(own.beam if own.method == "beam" else 1, service.settings.beam) - 1
    if alternatives > most:
        raise InputError(f"Invalid request: alternatives may be {most} at most: this model keeps {most + 1} outputs.")
    return SearchOptions((("nbest", alternatives + 1),))


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
