"""LibreTranslate's /detect: which language a text is in."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request

from transduce.core.languages import matching
from transduce.inference.language_detection import detected
from transduce.serve.guards import check_key
from transduce.serve.libretranslate import body_of, openapi_of
from transduce.serve.plans import profiles_of
from transduce.serve.reading import route_class
from transduce.serve.schemas import DetectedLanguage, Problem, Texts
from transduce.serve.service import Service


class DetectRequest(BaseModel):
    """As LibreTranslate has it."""

    model_config = ConfigDict(json_schema_extra={"example": {"q": "Two dogs run."}})

    q: str | Texts = Field(description="A text. Several are taken as one.")
    api_key: str | None = Field(default=None, description="If the server wants one.")


def routes(service: Service) -> APIRouter:
    """/detect."""
    read = route_class(service.run_in_thread, service.settings.characters)
    router = APIRouter(tags=["LibreTranslate"], responses={"4XX": {"model": Problem}}, route_class=read)

    @router.post("/detect", openapi_extra=openapi_of(DetectRequest))
    async def detect(request: Request) -> list[DetectedLanguage]:
        """The languages that a text may be in, the likeliest first. "und" with a confidence of 0: it is not known."""
        asked = await body_of(request, service.run_in_thread, DetectRequest)
        check_key(service.settings, request, asked.api_key)
        listed = [asked.q] if isinstance(asked.q, str) else asked.q
        service.check_lengths(listed)
        known = profiles_of(service.models)
        found = await service.run_in_thread(lambda: detected("\n".join(listed), known))
        return [DetectedLanguage(language=matching(code, known), confidence=confidence) for code, confidence in found]

    return router
