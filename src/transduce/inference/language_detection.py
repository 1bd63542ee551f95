"""Which language a text is in, told from what the loaded models were trained on, with a measured confidence.

A text is compared with the n-grams, or at least the characters, that the model files hold of both sides of their
training data. Where `py3langid` is installed (extra `detect`), it is asked as well: it knows 97 languages by itself.
What fits none is "und", undetermined, with a confidence of 0.
"""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from transduce.core.languages import base_of
from transduce.data.character_profile import CharacterProfile, counted
from transduce.data.language_profile import ALPHABET, LanguageProfile, letters_of

UNKNOWN = "und"  # ISO 639-2
LONGEST = 1_000  # characters of a text that are looked at
ENOUGH = 0.3  # fit from which a text is rather in a language than not
NOISE = 1.5  # standard deviation of the fit of a text of one letter
DEPENDENT = 3.0  # letters that say as much as one that is independent of its neighbours
SURE = 50.0  # percent from which a language is told
Profile = LanguageProfile | CharacterProfile


class Detection(NamedTuple):
    """A language, and how sure that is, in percent."""

    language: str
    confidence: float


def detected(text: str, known: Mapping[str, Sequence[Profile]], identify: bool = True) -> list[Detection]:
    """The languages that a text may be in, the surest first; of none that is sure, "und" with a confidence of 0.

    Args:
        known: the profiles of each language, by its code.
        identify: whether to ask py3langid where it is installed.
    """
    text = text[:LONGEST]
    if not letters_of(text).strip():
        return [Detection(UNKNOWN, 0.0)]
    own = _by_profiles(text, known)
    found = _with_identifier(own, identified(text), known) if identify else own
    listed = sorted((Detection(code, round(100 * each, 1)) for code, each in found.items()), key=lambda one: -one[1])
    return [each for each in listed if each.confidence >= SURE] or [Detection(UNKNOWN, 0.0)]


def confidence_of(text: str, language: str, known: Mapping[str, Sequence[Profile]], identify: bool = True) -> float:
    """How sure it is that a text is in one language, in percent, however unsure."""
    text = text[:LONGEST]
    if not letters_of(text).strip():
        return 0.0
    own = _by_profiles(text, known)
    found = _with_identifier(own, identified(text), known) if identify else own
    return round(100 * found.get(language, 0.0), 1)


def _by_profiles(text: str, known: Mapping[str, Sequence[Profile]]) -> dict[str, float]:
    """The probability of each language: that the text fits it at all, times its share among those that it fits."""
    letters = len(letters_of(text))
    best = {code: max(_judged(text, each) for each in profiles) for code, profiles in known.items() if profiles}
    if not best:
        return {}
    width = math.sqrt(0.1**2 + NOISE**2 / letters)
    fits = {code: 1 / (1 + math.exp(-1.7 * (fit - ENOUGH) / width)) for code, (fit, _) in best.items()}
    top = max(nats for _, nats in best.values())
    shares = {
        code: fits[code] * math.exp(min(0.0, (nats - top) * letters / DEPENDENT)) for code, (_, nats) in best.items()
    }
    total = sum(shares.values()) or 1.0
    return {code: fits[code] * share / total for code, share in shares.items()}


def _judged(text: str, profile: Profile) -> tuple[float, float]:
    """How well a text fits (1: as the profile's own texts), and nats a letter.

    Characters without their order tell languages of one alphabet badly apart: these are never sure.
    """
    if isinstance(profile, LanguageProfile):
        return profile.judged(letters_of(text))
    characters = counted([text])
    if not characters:
        return 0.0, -math.inf
    surprise = profile.surprise(characters)
    fit = 0.8 - 2 * max(0.0, surprise)
    return (fit if profile.different > ALPHABET else min(fit, ENOUGH - 0.1)), -surprise


def identified(text: str) -> dict[str, float]:
    """What py3langid says: the probability of each of its languages; nothing where it is not installed."""
    if find_spec("py3langid") is None:
        return {}
    return {code: float(share) for code, share in _identifier().rank(text)}


@lru_cache(maxsize=1)
def _identifier() -> Any:
    langid = import_module("py3langid.langid")  # late: its model takes a second to unpack
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)


def _with_identifier(
    own: Mapping[str, float], said: Mapping[str, float], known: Mapping[str, Sequence[Profile]]
) -> dict[str, float]:
    """Both together: the identifier's word counts, unless it is not sure, or does not know what a profile fits."""
    if not said:
        return dict(own)
    bases = {base_of(code): code for code in known}
    found = {bases.get(code, code): share for code, share in said.items()}
    sure = max(said.values()) >= SURE / 100
    alone = {code: share for code, share in own.items() if base_of(code) not in said or not sure}
    foreign = max(alone.values(), default=0.0)
    return {code: share * (1 - foreign) for code, share in found.items()} | alone
