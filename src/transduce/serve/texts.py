"""A text cut into segments for translation, and put together again with the white space it had.

Lines are always apart. A line that a model reads as one (see `ServeSettings.sentences_above`) is one segment; a longer
one is cut into its sentences. What stands between segments is white space, kept as it is.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

LINES = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
# After . ! ? … and closing quotes or brackets, or after the full stops of scripts that write no space behind them.
SENTENCES = re.compile(r"(?<=[.!?…؟۔।॥።])\s+|(?<=[.!?…][\"'”’»)\]])\s+|(?<=[。！？｡])(?![。！？｡」』”’）])\s*")
ABBREVIATED = re.compile(
    r"(?:^|[\s(])(?:\w|Mr|Mrs|Ms|Dr|Prof|St|Nr|vs|bzw|ca|No|Fig|z\. ?B|d\. ?h|u\. ?a|e\.g|i\.e)\.$"
)

Span = tuple[int, int]  # characters [first, last)


class Segment(NamedTuple):
    """A span of a text that is translated by itself; never empty, no white space at its ends."""

    start: int
    end: int


def segments(text: str, whole: Callable[[str], bool], lines: bool = True) -> list[Segment]:
    """What of `text` is translated, in order.

    Args:
        whole: whether a line may stay in one piece.
        lines: white space that holds a line's end separates; not so in HTML, where it is a space.
    """
    found = []
    for line in _between(LINES, text, 0, len(text)) if lines else [(0, len(text))]:
        start, end = _stripped(text, *line)
        if start < end:
            spans = [(start, end)] if whole(text[start:end]) else _sentences(text, start, end)
            found += [Segment(*span) for span in spans]
    return found


def rejoined(text: str, cut: list[Segment], outputs: list[str]) -> str:
    """`text` with each of its segments replaced, and all between them as it is."""
    parts, done = [], 0
    for segment, output in zip(cut, outputs, strict=True):
        parts += [text[done : segment.start], output]
        done = segment.end
    return "".join([*parts, text[done:]])


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    """Neighbours stay together where the full stop is an abbreviation's or a number's."""
    begun = start
    for _, last in _between(SENTENCES, text, start, end):
        if last < end and _goes_on(text, begun, last):
            continue
        inner = _stripped(text, begun, last)
        if inner[0] < inner[1]:
            yield inner
        begun = last


def _goes_on(text: str, start: int, last: int) -> bool:
    following = text[last : last + 80].lstrip()[:1]
    return bool(ABBREVIATED.search(text[max(start, last - 16) : last])) or following.islower()


def _between(breaks: re.Pattern[str], text: str, start: int, end: int) -> Iterator[Span]:
    for match in breaks.finditer(text, start, end):
        yield start, match.start()
        start = match.end()
    yield start, end


def _stripped(text: str, start: int, end: int) -> Span:
    part = text[start:end]
    if not part.strip():
        return start, start
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())
