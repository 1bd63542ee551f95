"""How a request for a translation is answered: from which language, by which models, or not at all."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from transduce.core.errors import InputError
from transduce.core.languages import matching
from transduce.inference.language_detection import Profile, confidence_of, detected
from transduce.serve.models import UNSAID, Loaded, Models
from transduce.serve.schemas import DetectedLanguage, TranslateRequest

TAG = re.compile(r"<[^<>]*>")
SAME = 80.0  # percent from which a text is taken to be in the language that it is to be translated into


@dataclass(frozen=True)
class TranslationPlan:
    """asked: the request with the codes of the models, "auto" replaced by a language.

    legs: the models, one behind the other; none where the text stays as it is. pivot: the language between two.
    detected: what "auto" stands for.
    """

    asked: TranslateRequest
    legs: tuple[Loaded, ...]
    pivot: str | None = None
    detected: DetectedLanguage | None = None


def plan_of(models: Models, asked: TranslateRequest, markup: bool = False) -> TranslationPlan:
    """How to answer a request.

    Args:
        markup: whether tags are no part of its texts.

    Raises:
        InputError: no model translates so; its language was not detected, and could be several.
    """
    asked = with_known_codes(models, asked)
    found = None
    if asked.source == "auto":
        found = _source(models, asked, markup)
        asked = asked.model_copy(update={"source": found.language})
    if asked.model is not None:
        return TranslationPlan(asked, (_named(models, asked),), detected=found)
    if asked.source == asked.target and not models.translating(asked.source, asked.target):
        if asked.source not in models.pairs:
            raise InputError(f"{asked.source[:20]} is not supported; this server knows {', '.join(models.pairs)}.")
        return TranslationPlan(asked, (), detected=found)
    if joined := models.through(asked.source, asked.target):
        first, second, pivot = joined
        return TranslationPlan(asked, (first, second), pivot, found)
    return TranslationPlan(asked, (models.translator(asked.source, asked.target),), detected=found)


def with_known_codes(models: Models, asked: TranslateRequest) -> TranslateRequest:
    """The same with the codes that the models' recipes have, as clients ask for en-US and zh-CN, too."""
    chosen = [models.named(asked.model)] if asked.model else [model.current for model in models]
    pairs = [each for each in chosen if each.translates]
    written = [code for each in pairs for code in each.targets]
    read = [each.source for each in pairs]
    source = asked.source if asked.source == "auto" else _known(asked.source, read, written)
    return asked.model_copy(update={"source": source, "target": _known(asked.target, written, read)})


def _known(code: str, first: Sequence[str], second: Sequence[str]) -> str:
    """The one that a code means, of the second where none of the first is meant: of a text that stays as it is."""
    found = matching(code, first)
    return found if found in first else matching(code, second)


def _named(models: Models, asked: TranslateRequest) -> Loaded:
    assert asked.model is not None
    model = models.named(asked.model)
    if not model.translates:
        raise InputError(f"{model.name} continues text and does not translate; ask /v1/predict.")
    if model.tagged and asked.target not in model.targets:
        known = ", ".join(model.targets)
        raise InputError(f"translation to {asked.target[:20]} is not supported; {model.name} writes {known}.")
    return model


def profiles_of(models: Models) -> Mapping[str, Sequence[Profile]]:
    """What the models' training texts were like, by language. A model of several targets does not tell them apart."""
    found: dict[str, list[Profile]] = {}
    for model in [each.current for each in models if each.current.translates]:
        sides = {"source": model.source} | ({} if model.tagged else {"target": model.target})
        for side, code in sides.items():
            profile = model.served.familiarity.profile(side)
            if profile is not None and code != UNSAID:
                found.setdefault(code, []).append(profile)
    return found


def _source(models: Models, asked: TranslateRequest, markup: bool) -> DetectedLanguage:
    """What "auto" stands for: the language that was detected, or the only one there is, with its measured confidence.

    Raises:
        InputError: it was not detected, and there are several.
    """
    listed = [asked.q] if isinstance(asked.q, str) else asked.q
    text = "\n".join(TAG.sub(" ", each) if markup else each for each in listed)
    known = profiles_of(models)
    if asked.model is not None:
        source = models.named(asked.model).source
        return DetectedLanguage(language=source, confidence=confidence_of(text, source, known))
    pairs = models.pairs
    reading = [code for code, targets in pairs.items() if asked.target in targets and code != asked.target]
    language, confidence = detected(text, known)[0]
    language = matching(language, pairs)
    if language in reading or (language == asked.target and confidence >= SAME):
        return DetectedLanguage(language=language, confidence=confidence)
    direct = list(dict.fromkeys(each.source for each in models.translating("auto", asked.target)))
    if len(direct) == 1 or (direct and not text.strip()):
        return DetectedLanguage(language=direct[0], confidence=confidence_of(text, direct[0], known))
    if not direct:
        models.translator("auto", asked.target)  # says what there is
    said = "the language of this text was not detected" if language == UNSAID else f"this text looks like {language}"
    raise InputError(f"source: {said}; name one of {', '.join(reading)}.")
