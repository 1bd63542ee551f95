"""What it means that a phrase stands in a text. Of a text, not of tokens: a tokenizer can write a phrase in many ways.

A phrase stands where its characters do, case and all, and no word goes on beyond its ends: "he" stands in "he is" and
in "(he)", not in "the". Two characters belong to one word if both are letters or digits; a combining mark belongs to
what is before it. Scripts that put no spaces between words (Chinese, Japanese, Thai, ..) have no such ends: there a
phrase stands wherever its characters do. Any white space equals any other; accents count the same composed or not.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["space", "word", "mark", "other"]

UNSPACED = (
    "CJK", "IDEOGRAPHIC", "HIRAGANA", "KATAKANA", "HALFWIDTH KATAKANA", "BOPOMOFO", "YI SYLLABLE", "THAI", "LAO",
    "KHMER", "MYANMAR", "TIBETAN", "JAVANESE", "BALINESE", "TAI ", "NEW TAI",
)  # fmt: skip
"""How the Unicode names begin of letters that are written without spaces between words."""


@dataclass(frozen=True, slots=True)
class Phrases:
    """What an output must and must not hold, as `plain` texts.

    must: each a set of alternatives, of which one has to stand in the output; the same set n times asks for n places
        that do not overlap (places of different sets may).
    must_not: none of these may stand in the output.
    """

    must: tuple[tuple[str, ...], ...] = ()
    must_not: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.must or self.must_not)


def spread(text: str) -> str:
    """The text in NFD (accents apart), with a space for every white character; of a part what it is in the whole."""
    return re.sub(r"\s", " ", unicodedata.normalize("NFD", text))


def plain(text: str) -> str:
    """The text as phrases are compared: spread, runs of spaces as one, none at the ends."""
    return re.sub(" +", " ", spread(text)).strip(" ")


def kind(character: str) -> Kind:
    """What a character does to the end of a phrase beside it."""
    if character.isspace():
        return "space"
    category = unicodedata.category(character)[0]
    if category == "M":
        return "mark"
    spaced = category in "LN" and not unicodedata.name(character, "").startswith(UNSPACED)
    return "word" if spaced else "other"


def goes_on(before: Kind, after: Kind) -> bool:
    """Whether one word holds two neighbouring characters; `before` is what a mark stands on, not the mark."""
    return after == "mark" or (before == "word" and after == "word")


def occurrences(alternatives: Sequence[str], text: str) -> int:
    """At how many places of a plain text one of the plain `alternatives` stands; places do not overlap.

    Read from the left, taking what ends first, which finds the most.
    """
    count = free = 0
    is_end = ends(text)
    for end in range(1, len(text) + 1):
        starts = (end - len(phrase) for phrase in alternatives if text.endswith(phrase, 0, end))
        if any(free <= start and is_end[start] and is_end[end] for start in starts):
            count, free = count + 1, end
    return count


def ends(text: str) -> list[bool]:
    """For each place from 0 to the text's length: may a word end, or begin, before the character that stands there?"""
    found: list[bool] = []
    base: Kind = "space"  # the kind of the last character that is no mark, or of the first one
    for place, character in enumerate(text):
        its_kind = kind(character)
        found.append(place == 0 or not goes_on(base, its_kind))
        base = its_kind if its_kind != "mark" or place == 0 else base
    return [*found, True]


def lacking(phrases: Phrases, text: str) -> list[tuple[str, ...]]:
    """The sets of `phrases.must` that `text` does not meet, each as often as it lacks it."""
    plain_text = plain(text)
    lack = []
    for alternatives in dict.fromkeys(phrases.must):
        missing = phrases.must.count(alternatives) - occurrences(alternatives, plain_text)
        lack += [alternatives] * max(missing, 0)
    return lack


def held(phrases: Phrases, text: str) -> list[str]:
    """The phrases of `phrases.must_not` that stand in `text`."""
    plain_text = plain(text)
    return [phrase for phrase in phrases.must_not if occurrences([phrase], plain_text)]
