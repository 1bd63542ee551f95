"""Files over HTTP, as LibreTranslate has them: POST /translate_file, and GET /download_file/.. for what came of it."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from transduce.core.errors import InputError
from transduce.documents.bilingual import FileLanguages
from transduce.documents.formats import FORMATS, format_of, opened, translated_name
from transduce.documents.opened import CutFile
from transduce.documents.runs import Fits, Output
from transduce.serve.guards import right_key
from transduce.serve.libretranslate import checked, form_of, translated
from transduce.serve.schemas import GLOSSARY, PROTECT, Problem, TranslateRequest
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
        "glossary": {"type": "string", "description": f"Our addition: {GLOSSARY}"},
        "protect": {"type": "boolean", "description": f"Our addition: {PROTECT}"},
    },
}
OPENAPI = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": FORM}}}}
GONE = f"there is no such file any more: a translated file is kept for {KEPT_SECONDS // 60} minutes."


class TranslateFileAnswer(BaseModel):
    """Where the translated file can be fetched, for ten minutes."""

    translatedFileUrl: str
    warnings: list[str] | None = Field(
        default=None, description="Our addition: what outputs lack of their sources, or repeat, a sentence each."
    )


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


class FileInWork:
    """A file while models translate it: one, or one behind the other.

    content: the file as it is now. shown: what of it is for people to read.

    Raises:
        InputError: it is of no format that is read, or damaged.
    """

    def __init__(self, name: str, content: bytes, languages: FileLanguages) -> None:
        self._name, self._languages = name, languages
        self._opened, self._times = opened(name, content, languages), 0
        self.content, self.shown = content, self._opened.shown

    def cut(self, text: str, fits: Fits, language: str) -> "_CutInWork":
        """The file as pieces to translate, as `transduce.documents.runs.Parse`; the text is what is shown of it."""
        self._times += 1
        if self._times > 1 and format_of(self._name).bilingual:
            raise InputError(f'file: "{self._name[:80]}": such a file is not translated through a third language.')
        if self._times > 1:
            self._opened = opened(self._name, self.content, self._languages)
        return _CutInWork(self, self._opened.cut(fits, language))


class _CutInWork:
    """What `translated` takes apart and puts together; it sees texts, and the file has the bytes."""

    def __init__(self, file: FileInWork, cut: CutFile) -> None:
        self._file, self._cut, self.pieces = file, cut, cut.pieces

    def rejoined(self, outputs: Sequence[Output]) -> str:
        """The file gets its new content."""
        self._file.content = self._cut.rejoined(outputs)
        return self._file.shown


class Downloads:
    """Translated files in memory, the oldest of which are given up when there are too many; never the last one."""

    def __init__(self) -> None:
        self._files: dict[str, Download] = {}

    def keep(self, name: str, media_type: str, content: bytes) -> str:
        """Under which name, that nobody can guess, it can be had."""
        key = f"{secrets.token_urlsafe(16)}{PurePosixPath(name).suffix.lower()}"
        self._files[key] = Download(name, media_type, content, time.monotonic() + KEPT_SECONDS)
        while len(self._files) > 1 and self._are_too_many():
            del self._files[next(iter(self._files))]
        return key

    def _are_too_many(self) -> bool:
        return len(self._files) > KEPT_FILES or sum(len(each.content) for each in self._files.values()) > KEPT_BYTES

    def get(self, key: str) -> Download | None:
        """The file; None if there is none, or no more."""
        now = time.monotonic()
        self._files = {key: each for key, each in self._files.items() if each.until > now}
        return self._files.get(key)


def routes(service: Service) -> APIRouter:
    """/translate_file and /download_file."""
    router = APIRouter(tags=["LibreTranslate"], responses={"4XX": {"model": Problem}})
    downloads = Downloads()

    @router.post("/translate_file", openapi_extra=OPENAPI, response_model_exclude_none=True)
    async def translate_file(request: Request) -> TranslateFileAnswer:
        """Translate a file: text, a document, slides, a table, a book, subtitles, or a file of translators."""
        body = await request.body()
        upload = await service.run_in_thread(lambda: asyncio.run(_upload(request.scope, body)))
        if not right_key(service.settings, request, upload.fields.get("api_key")):
            raise HTTPException(403, "Invalid API key")
        source, target = upload.fields["source"], upload.fields["target"]
        languages = FileLanguages("" if source == "auto" else source, target)
        file = await service.run_in_thread(lambda: FileInWork(upload.name, upload.content, languages))
        given = {key: value for key, value in upload.fields.items() if key in ("glossary", "protect")}
        asked = checked(TranslateRequest, {**given, "q": file.shown, "source": source, "target": target})
        answer = await translated(service, request, asked, file.cut)
        name = translated_name(upload.name, target)
        key = downloads.keep(name, format_of(upload.name).media_type, file.content)
        warnings: Any = answer.warnings
        return TranslateFileAnswer(translatedFileUrl=f"{request.base_url}download_file/{key}", warnings=warnings)

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
