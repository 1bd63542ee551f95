"""A text whose words are shaded by their weights, as parts for the terminal and for HTML.

The text stays as it is: what stands between two words is kept, so that a script without spaces gets none.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.interpret.attention import Attention
from transduce.interpret.colours import css, ink, readable_on
from transduce.interpret.token_spans import Side, Word
from transduce.interpret.words import by_words

Array = NDArray[np.floating[Any]]


class Part(NamedTuple):
    """A part of a text. word: the number of the word that it is, -1 between two words."""

    text: str
    word: int


class ShadedPart(NamedTuple):
    """A part of a text in HTML. style: of a word, its colours. title: what is told on hovering."""

    text: str
    style: str = ""
    title: str = ""


class LinePart(NamedTuple):
    """A part of a line. share: of the largest weight, for a word before; None for any other part.

    state: "before", "now", "later" of a word, "" between two words.
    """

    text: str
    state: str
    share: float | None = None
    weight: float = 0.0


def parts(text: str, words: Sequence[Word]) -> Iterator[Part]:
    """The text from its beginning to its end. A word without characters, as an end token, is shown by its name."""
    at = 0
    for number in sorted(range(len(words)), key=lambda each: (words[each].start, words[each].end)):
        word = words[number]
        if word.start > at:
            yield Part(text[at : word.start], -1)
        yield Part(text[max(at, word.start) : word.end] or word.text, number)
        at = max(at, word.end)
    if text[at:]:
        yield Part(text[at:], -1)


def marks(text: str, words: Sequence[Word], weights: Array, max_weight: float) -> list[ShadedPart]:
    """The text in HTML's colours, the darker the heavier; `max_weight` is the darkest."""
    found = []
    for part in parts(text, words):
        weight = float(weights[part.word]) if part.word >= 0 else 0.0
        told = f"{words[part.word].text}: {weight:.3f}" if part.word >= 0 else ""
        found.append(
            ShadedPart(part.text, colours(weight / max_weight), told) if part.word >= 0 else ShadedPart(part.text)
        )
    return found


def colours(share: float) -> str:
    """CSS of a share in 0..1; of next to nothing, none."""
    if share < 0.02:
        return ""
    paper = ink(min(share, 1.0))
    return f"background:{css(paper)};color:{css(readable_on(paper))}"


def heaviest(weights: Array) -> float:
    """The largest weight; 1 where there is none above 0."""
    return float(weights.max(initial=0.0)) or 1.0


def read_by(attention: Attention) -> Side:
    """The source. Raises InputError for a model without one."""
    if attention.source is None:
        raise InputError("this model reads no source.")
    return attention.source


def words_of(side: Side) -> list[Word]:
    """The words that have characters: not the end token."""
    return [word for word in side.words if word.end > word.start]


def of_words(words: Sequence[Word], weights: Array) -> Array:
    """(.., S) weights of tokens -> those of words (.., W), each the sum of its tokens'."""
    return np.asarray(by_words([word.tokens for word in words], weights))


def placed(words: Sequence[Word]) -> list[dict[str, Any]]:
    """Words and their characters, for JSON."""
    return [{"text": word.text, "start": word.start, "end": word.end} for word in words]
