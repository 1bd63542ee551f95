"""Where a text is cut into the units that have labels: words between spaces, characters, words without punctuation.

Only space, tab and line breaks stand between words, so that a word may hold other white space, such as U+00A0.
"""

import re
import unicodedata
from typing import Literal

Unit = Literal["word", "character", "split"]
WORD = re.compile(r"[^ \t\r\n]+")
SPACES = re.compile(r"[ \t\r\n]")
INNER_SPACE = "\u00a0"  # stands for a space within a word
Bounds = tuple[int, int]


def unit_bounds(text: str, unit: str) -> list[Bounds]:
    """The characters [start, end) of each unit of a text.

    Args:
        unit: word, what stands between spaces; character, each but white space; split, words and each character of
            punctuation by itself.
    """
    if unit == "word":
        return [found.span() for found in WORD.finditer(text)]
    if unit == "character":
        return [(place, place + 1) for place, each in enumerate(text) if not each.isspace()]
    return _apart(text)


def units_of(text: str, unit: str) -> list[str]:
    """The units themselves."""
    return [text[start:end] for start, end in unit_bounds(text, unit)]


def without_spaces(word: str) -> str:
    """A word that a row of words can hold: U+00A0 for each space in it, and for nothing at all."""
    return SPACES.sub(INNER_SPACE, word) or INNER_SPACE


def _apart(text: str) -> list[Bounds]:
    """Runs of letters, marks and digits, and each other character by itself, but white space."""
    found, start = list[Bounds](), None
    for place, character in enumerate(text):
        if unicodedata.category(character)[0] in "LMN":
            start = place if start is None else start
            continue
        if start is not None:
            found.append((start, place))
            start = None
        if not character.isspace():
            found.append((place, place + 1))
    return found if start is None else [*found, (start, len(text))]
