"""Speech to text over HTTP, as OpenAI's clients ask for it: POST /v1/audio/transcriptions."""

import asyncio
from collections.abc import Sequence
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
from transduce.inference.prediction import Prediction, SpokenSegment
from transduce.serve.guards import TRANSCRIPTIONS, key_needed
from transduce.serve.schemas import OpenAIProblem
from transduce.serve.service import Service
from transduce.serve.work import SearchOptions, WorkItem

FORMATS = ("json", "text", "srt", "vtt", "verbose_json")
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


class TranscriptionSegment(BaseModel):
    """What was said in a part that the model heard at once. start, end: in seconds."""

    id: int
    start: float
    end: float
    text: str


class VerboseTranscription(BaseModel):
    """What was said, and when. language: code, or "" where the model does not say it; duration: in seconds."""

    task: str = "transcribe"
    language: str
    duration: float
    text: str
    segments: list[TranscriptionSegment]


class _Asked(NamedTuple):
    """audio: as a data: URL. model: None = the default."""

    audio: str
    model: str | None
    format: str


def routes(service: Service) -> APIRouter:
    """/v1/audio/transcriptions."""
    router = APIRouter(
        tags=["Speech"],
        dependencies=[Depends(key_needed(service.settings))],
        responses={"4XX": {"model": OpenAIProblem}},
    )

    @router.post(TRANSCRIPTIONS, response_model=Transcription | VerboseTranscription, openapi_extra=OPENAPI)
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
        return _answered(answer.prediction, asked.format, model.served.languages[1])

    return router


def _answered(prediction: Prediction, form: str, language: str) -> Response:
    """The answer in one of `FORMATS`."""
    text, segments = prediction.text, prediction.segments
    if form == "text":
        return PlainTextResponse(f"{text}\n")
    if form in ("srt", "vtt"):
        return PlainTextResponse(subtitles(segments, form))
    if form == "json":
        return JSONResponse({"text": text})
    listed = [TranscriptionSegment(id=place, **each._asdict()) for place, each in enumerate(segments)]
    seconds = segments[-1].end if segments else 0.0
    told = VerboseTranscription(language=language, duration=seconds, text=text, segments=listed)
    return JSONResponse(told.model_dump())


def subtitles(segments: Sequence[SpokenSegment], form: str) -> str:
    """Segments as SubRip ("srt") or WebVTT ("vtt") has them."""
    comma = "," if form == "srt" else "."
    blocks = ["WEBVTT"] if form == "vtt" else []
    for number, (start, end, text) in enumerate((each for each in segments if each.text), 1):
        count = [f"{number}"] if form == "srt" else []
        blocks.append("\n".join([*count, f"{_clock(start, comma)} --> {_clock(end, comma)}", text]))
    return "\n\n".join(blocks) + "\n"


def _clock(seconds: float, comma: str) -> str:
    """Such as 00:01:02,500."""
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{milliseconds // 1000:02}{comma}{milliseconds % 1000:03}"


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
        problems.append(f"response_format: expected one of {', '.join(FORMATS)}; got {kind[:40]}.")
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
