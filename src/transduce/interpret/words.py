"""The definition of a word for display: in the terminal, in figures, and on the page (page/words.js has the same rule).

A word is a run of letters, marks and digits. An apostrophe or a hyphen between two letters and a point or a comma
between two digits are part of it: "didn't", "aujourd'hui", "well-known", "3.14". Everything else that is no white
space stands alone, as a person counts characters: "é" of two code points, a flag and a family of emoji are one each.
So does each character of a script that writes no spaces between words, such as Chinese.

    regex: Unicode's properties of characters and \\X, its grapheme clusters, of which `re` has neither.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import regex
from numpy.typing import NDArray

WORD_START = "▁"

Array = NDArray[np.floating[Any]]
Span = tuple[int, int]  # characters [first, last)

# Thai and Lao, Burmese, Khmer; Chinese and Japanese.
SPACELESS = (
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff66-\uff9f"
    r"\U00020000-\U0003ffff"
)
LETTER = rf"(?:(?![{SPACELESS}])[\p{{L}}\p{{N}}_])"
EXTENDING = r"[\p{M}\u200c\u200d\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"  # the character before
RUN = rf"{LETTER}(?:{LETTER}|{EXTENDING})*"
JOINER = r"(?:['’‐‑·-]|(?<=\p{Nd})[.,](?=\p{Nd}))"
ALONE = r"(?!\p{White_Space})\X"
WORD = regex.compile(rf"{RUN}(?:{JOINER}{RUN})*|{ALONE}")
PART = regex.compile(rf"{RUN}|{ALONE}")
GRAPHEME = regex.compile(r"\X")


def words_in(text: str) -> list[Span]:
    """The words of a text, and what else stands alone in it: punctuation marks, signs."""
    return [match.span() for match in WORD.finditer(text)]


def parts_in(text: str) -> list[Span]:
    """The same, words cut where something joins them: what markup may hold of a word, as in l'<b>animal</b>."""
    return [match.span() for match in PART.finditer(text)]


def graphemes(text: str) -> list[str]:
    """What a person counts as characters: Unicode's grapheme clusters."""
    return GRAPHEME.findall(text)


def by_words(groups: Sequence[Sequence[int]], weights: Array, axis: Literal["keys", "queries"] = "keys") -> Array:
    """Weights of tokens -> those of words, of which `groups` has the places of their tokens.

    A word receives what its tokens receive, so key columns are summed; it attends as its tokens do on
    average, so query rows are averaged. Either way a row that summed to 1 still does. For both, call twice.

    Args:
        weights: (..., T, S), or (S,) for one query. Keys are the last axis, queries the one before.
    """
    position = -1 if axis == "keys" else -2
    if not groups:
        return np.take(weights, [], position)
    merge = np.sum if axis == "keys" else np.mean
    return np.stack([merge(np.take(weights, list(group), position), axis=position) for group in groups], position)
