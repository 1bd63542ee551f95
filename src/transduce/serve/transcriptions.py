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
from transduce.inference.prediction import Prediction
from transduce.serve.guards import TRANSCRIPTIONS, key_needed
from transduce.serve.schemas import OpenAIProblem
from transduce.serve.service import Service
from transduce.serve.subtitles import subtitles
from transduce.serve.work import SearchOptions, WorkItem

GRANULARITIES = ("word", "segment")
TIMESTAMPS = "timestamp_granularities[]"
TIMES_NAMES = (TIMESTAMPS, "timestamp_granularities")  # both are written by clients
FORMATS = ("json", "text", "srt", "vtt", "verbose_json")
IGNORED = ("language", "prompt", "temperature", "chunking_strategy")  # said for other models; they change nothing here
FORM = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": {"type": "string", "contentMediaType": "application/octet-stream"},
        "model": {"type": "string"},
        "response_format": {"type": "string", "enum": list(FORMATS), "default": "json"},
        TIMESTAMPS: {"type": "array", "items": {"type": "string", "enum": list(GRANULARITIES)}, "default": ["segment"]},
    },
}
OPENAPI = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": FORM}}}}


class Transcription(BaseModel):
    """What was said."""

    text: str


class TranscriptionWord(BaseModel):
    """A word, with the marks beside it. start, end: in seconds."""

    word: str
    start: float
    end: float


class TranscriptionSegment(BaseModel):
    """What was said in a part that the model heard at once. start, end: in seconds."""

    id: int
    start: float
    end: float
    text: str


class VerboseTranscription(BaseModel):
    """What was said, and when. language: code, or "" where the model does not say it; duration: in seconds.

    segments, words: as `timestamp_granularities[]` asks for. warnings: which parts have no end, as the output was cut
    off at its limit, and which repeat themselves; without any, there is no such key.
    """

    task: str = "transcribe"
    language: str
    duration: float
    text: str
    segments: list[TranscriptionSegment] | None = None
    words: list[TranscriptionWord] | None = None
    warnings: list[str] | None = None


class _Asked(NamedTuple):
    """audio: as a data: URL. model: None = the default. times: of what there are to be times."""

    audio: str
    model: str | None
    format: str
    times: tuple[str, ...] = ("segment",)

    @property
    def wants_words(self) -> bool:
        """Whether words have to have their times."""
        return self.format == "verbose_json" and "word" in self.times


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
        timed = asked.format in ("verbose_json", "srt", "vtt") and model.pipeline.times_words
        if asked.wants_words and not timed:
            raise InputError(f"{TIMESTAMPS}: {model.name} does not align words with sound; expected segment alone.")
        # What cannot be heard fails alone, and not with the others of a batch.
        await service.done(request, model, [asked.audio], lambda work: work.model.pipeline.pieces([asked.audio]))
        options = SearchOptions(word_times=timed and (asked.wants_words or asked.format != "verbose_json"))
        [answer] = await service.answers(request, [WorkItem(model, (asked.audio,), options)])
        return _answered(answer.prediction, asked, model.served.languages[1])

    return router


def _answered(prediction: Prediction, asked: _Asked, language: str) -> Response:
    """The answer in one of `FORMATS`."""
    text, segments, form = prediction.text, prediction.segments, asked.format
    if form == "text":
        return PlainTextResponse(f"{text}\n")
    if form in ("srt", "vtt"):
        return PlainTextResponse(subtitles(segments, form, prediction.spoken_words))
    if form == "json":
        return JSONResponse({"text": text})
    seconds = segments[-1].end if segments else 0.0
    told = VerboseTranscription(language=language, duration=seconds, text=text)
    if "segment" in asked.times:
        told.segments = [
            TranscriptionSegment(id=place, start=each.start, end=each.end, text=each.text)
            for place, each in enumerate(segments)
        ]
    if asked.wants_words:
        told.words = [TranscriptionWord(**each._asdict()) for each in prediction.spoken_words]
    told.warnings = prediction.warnings or None
    return JSONResponse(told.model_dump(exclude_none=True))


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
    times = tuple(dict.fromkeys(str(each) for name in TIMES_NAMES for each in form.getlist(name))) or ("segment",)
    if wrong := [each for each in times if each not in GRANULARITIES]:
        problems.append(f"{TIMESTAMPS}: expected word or segment; got {wrong[0][:40]}.")
    elif times != ("segment",) and kind != "verbose_json":
        problems.append(f"{TIMESTAMPS}: is for response_format = verbose_json; got {kind[:40]}.")
    problems += [f"{name}: this server has none; leave it out." for name in _unknown(form)]
    if problems or not isinstance(file, UploadFile):
        raise InputError(problems)
    audio = uploaded(await file.read(), file.filename or "")
    return _Asked(audio, str(form["model"]) if form.get("model") else None, kind, times)


def _unknown(form: FormData) -> list[Any]:
    """Fields that would change the answer, and do not here."""
    known = {"file", "model", "response_format", *TIMES_NAMES, *IGNORED}
    asked = [name for name in dict.fromkeys(form) if name not in known]
    return [name[:40] for name in asked if not (name == "stream" and str(form[name]).lower() == "false")]
