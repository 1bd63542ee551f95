"""Phrases, and when a text contains one. They are matched on text, because a phrase can be tokenized in many ways.

A text contains a phrase if it contains its characters, in the same case, between word boundaries: "he" is in "he is"
and in "(he)" but not in "the". Two characters belong to one word if both are letters or digits; a combining mark
belongs to the character before it. Scripts without spaces between words (Chinese, Japanese, Thai, ..) have no word
boundaries, so there any occurrence counts. All white space is equal, and so are composed and decomposed accents.
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
"""Prefixes of the Unicode names of letters that are written without spaces between words."""


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases that an output must and must not contain, as `plain` texts.

    must: sets of alternatives. The output must contain one of each set. A set that is given n times requires n
        occurrences that do not overlap; occurrences of different sets may overlap.
    must_not: the output must contain none of these.
    """

    must: tuple[tuple[str, ...], ...] = ()
    must_not: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.must or self.must_not)


def spread(text: str) -> str:
    """The text in NFD, with each white-space character as a space. Parts of a text can be converted separately."""
    return re.sub(r"\s", " ", unicodedata.normalize("NFD", text))


def plain(text: str) -> str:
    """The text in the form in which phrases are compared: `spread`, with single spaces, stripped."""
    return re.sub(" +", " ", spread(text)).strip(" ")


def kind(character: str) -> Kind:
    """The kind of a character, which decides where words end."""
    if character.isspace():
        return "space"
    category = unicodedata.category(character)[0]
    if category == "M":
        return "mark"
    spaced = category in "LN" and not unicodedata.name(character, "").startswith(UNSPACED)
    return "word" if spaced else "other"


def goes_on(before: Kind, after: Kind) -> bool:
    """Whether two neighbouring characters belong to one word. For a mark, `before` is the character that it marks."""
    return after == "mark" or (before == "word" and after == "word")


def occurrences(alternatives: Sequence[str], text: str) -> int:
    """The maximum number of non-overlapping occurrences of the plain `alternatives` in a plain text.

    It reads from the left and takes the occurrence that ends first, which maximizes the number.
    """
    count = free = 0
    is_end = ends(text)
    for end in range(1, len(text) + 1):
        starts = (end - len(phrase) for phrase in alternatives if text.endswith(phrase, 0, end))
        if any(free <= start and is_end[start] and is_end[end] for start in starts):
            count, free = count + 1, end
    return count


def ends(text: str) -> list[bool]:
    """For each index from 0 to the text's length: whether a word can begin or end before the character there."""
    found: list[bool] = []
    base: Kind = "space"  # the kind of the last character that is not a mark, or of the first one
    for place, character in enumerate(text):
        its_kind = kind(character)
        found.append(place == 0 or not goes_on(base, its_kind))
        base = its_kind if its_kind != "mark" or place == 0 else base
    return [*found, True]


def lacking(phrases: Phrases, text: str) -> list[tuple[str, ...]]:
    """The sets of `phrases.must` that `text` lacks, each as often as it is missing."""
    plain_text = plain(text)
    lack = []
    for alternatives in dict.fromkeys(phrases.must):
        missing = phrases.must.count(alternatives) - occurrences(alternatives, plain_text)
        lack += [alternatives] * max(missing, 0)
    return lack


def held(phrases: Phrases, text: str) -> list[str]:
    """The phrases of `phrases.must_not` that `text` contains."""
    plain_text = plain(text)
    return [phrase for phrase in phrases.must_not if occurrences([phrase], plain_text)]
