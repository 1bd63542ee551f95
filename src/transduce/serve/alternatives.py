"""Other words in a place of a translation: POST /v1/alternatives, for the page at "/"."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fastapi import APIRouter
from starlette.requests import Request

from transduce.core.errors import InputError
from transduce.inference.sentences import rejoined
from transduce.serve.libretranslate import CutText, cut_text, model_of
from transduce.serve.reading import keyed_router
from transduce.serve.schemas import (
    AlternativesAnswer,
    AlternativesRequest,
    LinkAnswer,
    TranslateRequest,
    WordAlternative,
)
from transduce.serve.service import Service
from transduce.serve.work import WorkItem

if TYPE_CHECKING:
    from transduce.serve.word_alternatives import Alternatives


def routes(service: Service) -> APIRouter:
    """/v1/alternatives."""
    router = keyed_router(service, "/v1", "Transduce")

    @router.post("/alternatives")
    async def alternatives(request: Request, asked: AlternativesRequest) -> AlternativesAnswer:
        """Other words in the place of a word of a translation, each with the translation that goes on from it."""
        service.check_lengths([asked.q])
        service.check_lengths(["".join(asked.outputs or [])])
        named = TranslateRequest(q=asked.q, source=asked.source, target=asked.target, model=asked.model)
        named, model = model_of(service, named.model_copy(update={"split": asked.split}))
        text = await service.prepared(request, lambda: cut_text(service, model, asked.q, named))
        outputs = asked.outputs
        if outputs is None:
            outputs = [each.prediction.text for each in await service.answers(request, text.works)]
        elif len(outputs) != len(text.cut):
            raise InputError(f"outputs: expected {len(text.cut)}, one for each sentence; got {len(outputs)}.")
        number, at = await service.run_in_thread(lambda: _sentence(text, outputs, asked.start))
        source, output, width = text.works[number].texts[0], outputs[number], asked.end - asked.start
        span = asked.start - at, min(asked.start - at + width, len(output))

        def look(work: WorkItem) -> "Alternatives":
            pipeline = work.model.pipeline  # with torch from here on
            from transduce.serve.word_alternatives import word_alternatives

            return word_alternatives(pipeline, source, output, span, asked.most, service.settings.attention_numbers)

        found = await service.done(request, model, [source], look)
        return await service.run_in_thread(lambda: _answer(text, outputs, number, at, found))

    return router


def _sentence(text: CutText, outputs: Sequence[str], start: int) -> tuple[int, int]:
    """The number of the sentence with a character of the translation, and where its output begins there.

    Raises:
        InputError: none of the outputs has it.
    """
    for number, output in enumerate(outputs):
        begun = rejoined(text.source[: text.cut[number].end], text.cut[: number + 1], outputs[: number + 1])
        at = len(begun) - len(output)
        if at <= start < len(begun):
            return number, at
    raise InputError(f"start: {start}: no word of the translation is there.")


def _answer(text: CutText, outputs: Sequence[str], number: int, at: int, found: "Alternatives") -> AlternativesAnswer:
    tags = len(text.works[number].texts[0]) - len(text.segments[number])
    first = text.cut[number].start - tags  # where the source's first character is in the text

    def changed(output: str) -> list[str]:
        return [*outputs[:number], output, *outputs[number + 1 :]]

    return AlternativesAnswer(
        translatedText=rejoined(text.source, text.cut, outputs),
        outputs=list(outputs),
        sentence=number,
        start=at + found.start,
        end=at + found.end,
        links=[
            LinkAnswer(start=first + start, end=first + end, weight=round(weight, 6))
            for (start, end), weight in found.links
            if start >= tags
        ],
        alternatives=[
            WordAlternative(
                word=each.word,
                translatedText=rejoined(text.source, text.cut, changed(each.output)),
                outputs=changed(each.output),
                score=each.score,
            )
            for each in found.alternatives
        ],
    )
