"""What LibreTranslate's own page and its clients ask beside translations: /frontend/settings, /spec and /suggest."""

import json
import threading
import time
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from transduce.core.errors import InputError
from transduce.core.languages import name_of
from transduce.documents.formats import FORMATS
from transduce.serve.guards import check_key
from transduce.serve.libretranslate import body_of, openapi_of
from transduce.serve.reading import route_class
from transduce.serve.schemas import Problem
from transduce.serve.service import Service
from transduce.serve.turns import current_client

PATIENCE = 500  # milliseconds that a page waits for the next key, before it asks
MOST_BYTES = 100_000_000  # of the file of suggestions
DISABLED = "Suggestions are disabled on this server."


class NamedLanguage(BaseModel):
    """A language by its code and its English name."""

    code: str
    name: str


class ChosenLanguages(BaseModel):
    """The languages that a page begins with."""

    source: NamedLanguage
    target: NamedLanguage


class FrontendSettings(BaseModel):
    """As LibreTranslate's page reads them. charLimit: characters of a request; frontendTimeout: in milliseconds."""

    apiKeys: bool
    charLimit: int
    filesTranslation: bool = True
    frontendTimeout: int = PATIENCE
    keyRequired: bool
    language: ChosenLanguages
    suggestions: bool
    supportedFilesFormat: list[str]


class SuggestRequest(BaseModel):
    """A better translation, as LibreTranslate has it."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"q": "Two dogs run.", "s": "Zwei Hunde rennen.", "source": "en", "target": "de"}}
    )

    q: str = Field(description="The text.")
    s: str = Field(description="The translation that is suggested.")
    source: str = Field(description="Language code.")
    target: str = Field(description="Language code.")
    api_key: str | None = Field(default=None, description="If the server wants one.")


class SuggestAnswer(BaseModel):
    """The suggestion was kept."""

    success: bool


class SuggestionFile:
    """Suggestions as lines of JSON, with the time and the API key or address that they came from."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()

    def keep(self, asked: SuggestRequest, client: str) -> None:
        """One more line.

        Raises:
            InputError: the file has grown too large, or cannot be written.
        """
        values = asked.model_dump(exclude={"api_key"})
        values |= {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "client": client}
        line = json.dumps(values, ensure_ascii=False) + "\n"
        try:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                if file.tell() > MOST_BYTES:
                    raise InputError("this server has as many suggestions as it keeps.")
                file.write(line)
        except OSError as error:
            raise InputError(f"the suggestion was not kept: {error.strerror}.") from None


def routes(service: Service) -> APIRouter:
    """/frontend/settings, /spec and /suggest."""
    read, settings = route_class(service.run_in_thread, service.settings.characters), service.settings
    router = APIRouter(tags=["LibreTranslate"], responses={"4XX": {"model": Problem}}, route_class=read)
    kept = None if settings.suggestions is None else SuggestionFile(settings.suggestions)

    @router.get("/frontend/settings")
    async def frontend_settings() -> FrontendSettings:
        """What a page has to know: limits, whether a key is needed, which files are translated."""
        target = service.models.default.targets[0]
        return FrontendSettings(
            apiKeys=settings.api_key is not None or settings.api_keys is not None,
            charLimit=settings.characters,
            keyRequired=settings.wants_key,
            language=ChosenLanguages(
                source=NamedLanguage(code="auto", name="Auto Detect"),
                target=NamedLanguage(code=target, name=name_of(target)),
            ),
            suggestions=kept is not None,
            supportedFilesFormat=list(FORMATS),
        )

    @router.get("/spec", response_class=JSONResponse)
    async def spec(request: Request) -> Response:
        """The OpenAPI description of this server, as /openapi.json."""
        return JSONResponse(request.app.openapi())

    @router.post("/suggest", openapi_extra=openapi_of(SuggestRequest), include_in_schema=kept is not None)
    async def suggest(request: Request) -> Any:
        """Keep a better translation, for whoever runs the server."""
        if kept is None:
            raise HTTPException(403, DISABLED)
        asked = await body_of(request, service.run_in_thread, SuggestRequest)
        check_key(settings, request, asked.api_key)
        service.check_lengths([asked.q, asked.s, asked.source, asked.target])
        client = current_client.get()
        await service.run_in_thread(lambda: kept.keep(asked, client))
        return SuggestAnswer(success=True)

    return router
