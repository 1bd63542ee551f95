"""Files over HTTP, as LibreTranslate has them: POST /translate_file, and GET /download_file/.. for what came of it."""

import asyncio
import secrets
import time
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from transduce.core.errors import InputError
from transduce.serve.file_formats import FORMATS, decoded, format_of, translated_name
from transduce.serve.guards import right_key
from transduce.serve.libretranslate import form_of, translated
from transduce.serve.schemas import Problem, TranslateRequest
from transduce.serve.service import Service

KEPT_SECONDS, KEPT_FILES, KEPT_BYTES = 600, 100, 20_000_000  # of translated files, until they are fetched
FORM = {
    "type": "object",
    "required": ["file", "source", "target"],
    "properties": {
        "file": {
            "type": "string",
            "contentMediaType": "application/octet-stream",
            "description": f"A file whose name ends in {', '.join(FORMATS)}.",
        },
        "source": {"type": "string", "description": 'Language code, or "auto".'},
        "target": {"type": "string", "description": "Language code."},
        "api_key": {"type": "string", "description": "If the server wants one."},
    },
}
OPENAPI = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": FORM}}}}
GONE = f"there is no such file any more: a translated file is kept for {KEPT_SECONDS // 60} minutes."


class TranslateFileAnswer(BaseModel):
    """Where the translated file can be fetched, for ten minutes."""

    translatedFileUrl: str


class Upload(NamedTuple):
    """A file with the text fields that came beside it. Its name is without folders."""

    name: str
    content: bytes
    fields: dict[str, str]


class Download(NamedTuple):
    """until: a time of `time.monotonic`."""

    name: str
    media_type: str
    content: bytes
    until: float


class Downloads:
    """Translated files in memory, the oldest of which are given up when there are too many."""

    def __init__(self) -> None:
        self._files: dict[str, Download] = {}

    def keep(self, name: str, media_type: str, content: bytes) -> str:
        """Under which name, that nobody can guess, it can be had."""
        key = f"{secrets.token_urlsafe(16)}{PurePosixPath(name).suffix.lower()}"
        self._files[key] = Download(name, media_type, content, time.monotonic() + KEPT_SECONDS)
        while len(self._files) > KEPT_FILES or sum(len(each.content) for each in self._files.values()) > KEPT_BYTES:
            del self._files[next(iter(self._files))]
        return key

    def get(self, key: str) -> Download | None:
        """The file; None if there is none, or no more."""
        now = time.monotonic()
        self._files = {key: each for key, each in self._files.items() if each.until > now}
        return self._files.get(key)


def routes(service: Service) -> APIRouter:
    """/translate_file and /download_file."""
    router = APIRouter(tags=["LibreTranslate"], responses={"4XX": {"model": Problem}})
    downloads = Downloads()

    @router.post("/translate_file", openapi_extra=OPENAPI)
    async def translate_file(request: Request) -> TranslateFileAnswer:
        """Translate a file: plain text, HTML or subtitles."""
        body = await request.body()
        upload = await service.run_in_thread(lambda: asyncio.run(_upload(request.scope, body)))
        if not right_key(service.settings, request, upload.fields.get("api_key")):
            raise HTTPException(403, "Invalid API key")
        form = format_of(upload.name)
        text, encoding = decoded(upload.content, upload.name)
        asked = TranslateRequest(q=text, source=upload.fields["source"], target=upload.fields["target"])
        answer = await translated(service, request, asked, form.parse)
        name = translated_name(upload.name, asked.target)
        key = downloads.keep(name, form.media_type, str(answer.translatedText).encode(encoding))
        return TranslateFileAnswer(translatedFileUrl=f"{request.base_url}download_file/{key}")

    @router.get("/download_file/{name}", response_class=Response, responses={404: {"model": Problem}})
    async def download_file(name: str) -> Response:
        """A file that was translated, under the name that /translate_file gave."""
        found = downloads.get(name)
        if found is None:
            raise HTTPException(404, GONE)
        told = f"attachment; filename*=UTF-8''{quote(found.name, safe='')}"
        return Response(found.content, media_type=found.media_type, headers={"content-disposition": told})

    return router


async def _upload(scope: Scope, body: bytes) -> Upload:
    """The form; all that is wrong with it at once.

    Raises:
        InputError: a field is missing.
        HTTPException: it is no form.
    """
    form = await form_of(scope, body, files=1)
    file, fields = form.get("file"), {key: value for key, value in form.items() if isinstance(value, str)}
    problems = [f"Invalid request: missing {name} parameter" for name in ("source", "target") if not fields.get(name)]
    if not isinstance(file, UploadFile) or not file.filename:
        raise InputError(["file: expected a file with its name in multipart/form-data; got none.", *problems])
    if problems:
        raise InputError(problems)
    name = PurePosixPath(file.filename.replace("\\", "/")).name
    content: Any = await file.read()
    return Upload(name, content, fields)
