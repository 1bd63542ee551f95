"""Speech to text over HTTP, as OpenAI's clients ask for it: POST /v1/audio/transcriptions."""

import asyncio
from typing import Any, NamedTuple

from fastapi import APIRouter, Depends
from pydantic import BaseModel
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Message, Scope

from transduce.core.errors import InputError
from transduce.data.speech.uploads import uploaded
from transduce.serve.guards import TRANSCRIPTIONS, key_needed
from transduce.serve.schemas import Problem
from transduce.serve.service import Service
from transduce.serve.work import SearchOptions, WorkItem

FORMATS = ("json", "text")
IGNORED = ("language", "prompt", "temperature", "chunking_strategy")  # said for other models; they change nothing here
FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {"type": "string", "contentMediaType": "application/octet-stream"},
        "model": {"type": "string"},
        "response_format": {"type": "string", "enum": list(FORMATS), "default": "json"},
    },
}
OPENAPI = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": FORM}}}}


class Transcription(BaseModel):
    """What was said."""

    text: str


class _Asked(NamedTuple):
    """audio: as a data: URL. model: None = the default."""

    audio: str
    model: str | None
    format: str


def routes(service: Service) -> APIRouter:
    """/v1/audio/transcriptions."""
    router = APIRouter(
        tags=["Speech"], dependencies=[Depends(key_needed(service.settings))], responses={"4XX": {"model": Problem}}
    )

    @router.post(TRANSCRIPTIONS, response_model=Transcription, openapi_extra=OPENAPI)
    async def transcribe(request: Request) -> Response:
        """What is said in a sound file (WAV, FLAC, Ogg)."""
        body = await request.body()
        asked = await service.run_in_thread(lambda: asyncio.run(_asked(request.scope, body)))
        model = service.models.asked(asked.model)
        if not model.served.accepts_audio:
            raise InputError(f"model: {model.name} reads text; expected a model that was trained on speech.")
        # What cannot be heard fails alone, and not with the others of a batch.
        await service.prepared(request, lambda: model.pipeline.pieces([asked.audio]))
        [answer] = await service.answers(request, [WorkItem(model, (asked.audio,), SearchOptions())])
        text = answer.prediction.text
        return PlainTextResponse(f"{text}\n") if asked.format == "text" else JSONResponse({"text": text})

    return router


async def _asked(scope: Scope, body: bytes) -> _Asked:
    """The form; all that is wrong with it at once.

    Raises:
        InputError: it is none, a field is missing, or something is asked for that there is not.
    """

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    try:
        form = await Request(scope, receive).form(max_files=1, max_fields=20)
    except (MultiPartException, KeyError, ValueError) as error:
        raise InputError(f"Invalid request: expected multipart/form-data with a file: {error}") from None
    file, kind = form.get("file"), str(form.get("response_format") or "json")
    problems = []
    if not isinstance(file, UploadFile):
        problems.append("file: expected a sound file in multipart/form-data; got none.")
    if kind not in FORMATS:
        problems.append(f"response_format: expected {' or '.join(FORMATS)}; got {kind[:40]}.")
    problems += [f"{name}: this server has none; leave it out." for name in _unknown(form)]
    if problems or not isinstance(file, UploadFile):
        raise InputError(problems)
    audio = uploaded(await file.read(), file.filename or "")
    return _Asked(audio, str(form["model"]) if form.get("model") else None, kind)


def _unknown(form: FormData) -> list[Any]:
    """Fields that would change the answer, and do not here."""
    known = {"file", "model", "response_format", *IGNORED}
    asked = [name for name in dict.fromkeys(form) if name not in known]
    return [name[:40] for name in asked if not (name == "stream" and str(form[name]).lower() == "false")]
