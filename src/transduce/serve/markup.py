"""HTML whose text is translated and whose markup stays, byte for byte and in its order.

Text between two block tags is one run, cut into segments as other text is. Inline tags (<b>, <a>, ..) at a segment's
ends stay there. Those inside are put where the words that they enclosed went, by the model's attention; without it,
opening tags go to the segment's beginning and closing ones to its end. Tags never change their order, so whatever was
well nested still is. Comments, <script>, <style>, <code>, translate="no" and class="notranslate" are left alone.
"""

import html
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from transduce.serve.html_parts import Run, Tag, parts_of
from transduce.serve.texts import Segment, Span, segments


class Link(NamedTuple):
    """A source word and an output word that belong together, as spans of characters."""

    source: Span
    output: Span


class Piece(NamedTuple):
    """One segment of a run, in single spaces, and the tags strictly inside it."""

    text: str
    tags: list[Tag]


class Document:
    """HTML as pieces to translate.

    whole: see `transduce.serve.texts.segments`.
    """

    def __init__(self, source: str, whole: Callable[[str], bool]) -> None:
        self._parts = parts_of(source)
        self._cut = [_segments(part, whole) if isinstance(part, Run) else [] for part in self._parts]
        self.pieces = [
            _piece(part, segment)
            for part, cut in zip(self._parts, self._cut, strict=True)
            if isinstance(part, Run)
            for segment in cut
        ]

    def rejoined(self, outputs: Sequence[tuple[str, Sequence[Link]]]) -> str:
        """The document with each of `pieces` replaced by its output; the links say where inner tags go."""
        placed = iter([_placed(piece, *output) for piece, output in zip(self.pieces, outputs, strict=True)])
        done: list[str] = []
        for part, cut in zip(self._parts, self._cut, strict=True):
            if isinstance(part, Run) and cut:
                done += _rebuilt(part, [(segment, next(placed)) for segment in cut])
            else:
                done.append(part.raw if isinstance(part, Run) else part)
        return "".join(done)


def escaped(text: str) -> str:
    """`text` as HTML that shows it."""
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")


def _segments(run: Run, whole: Callable[[str], bool]) -> list[Segment]:
    """Segments with a letter or a digit; others stay as they are."""
    cut = segments(run.text, whole, lines=False)
    return [each for each in cut if any(char.isalnum() for char in run.text[each.start : each.end])]


def _piece(run: Run, segment: Segment) -> Piece:
    text = run.text[segment.start : segment.end]
    first = bisect_right(run.tags, segment.start, key=lambda tag: tag.at)
    last = bisect_left(run.tags, segment.end, key=lambda tag: tag.at)
    kept = [not (one.isspace() and other.isspace()) for one, other in pairwise("." + text)]
    places = [0, *accumulate(kept)]
    return Piece(_spaced(text), [tag._replace(at=places[tag.at - segment.start]) for tag in run.tags[first:last]])


def _spaced(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _rebuilt(run: Run, outputs: list[tuple[Segment, str]]) -> list[str]:
    """A run with its segments replaced; tags between segments stay between them."""
    out: list[str] = []
    done = number = 0

    def keep(end: int) -> None:
        """Text and tags up to `end`, tags at `end` included."""
        nonlocal done, number
        while number < len(run.tags) and run.tags[number].at <= end:
            out.extend([escaped(run.text[done : run.tags[number].at]), run.tags[number].raw])
            done, number = run.tags[number].at, number + 1
        out.append(escaped(run.text[done:end]))
        done = end

    for segment, output in outputs:
        keep(segment.start)
        out.append(output)
        done = segment.end
        while number < len(run.tags) and run.tags[number].at < segment.end:
            number += 1  # these are in `output`
    keep(len(run.text))
    return out


def _placed(piece: Piece, output: str, links: Sequence[Link]) -> str:
    """`output`, escaped, with the piece's tags in it: in their order, each at the word that it belongs to."""
    out, done = [], 0
    enclosed = _enclosed(piece)
    wanted = [_place(tag, span, len(output), links) for tag, span in zip(piece.tags, enclosed, strict=True)]
    for tag, at in zip(piece.tags, accumulate(wanted, max), strict=True):
        out += [escaped(output[done:at]), tag.raw]
        done = at
    return "".join([*out, escaped(output[done:])])


def _place(tag: Tag, enclosed: Span, length: int, links: Sequence[Link]) -> int:
    """The character of the output that a tag wants to stand before."""
    first, last = enclosed
    if tag.kind == "alone":
        following = min((link.source for link in links if link.source[0] >= first), default=None)
        return min((link.output[0] for link in links if link.source == following), default=length)
    spans = [link.output for link in links if link.source[0] < last and link.source[1] > first]
    if tag.kind == "open":
        return min((start for start, _ in spans), default=0)
    return max((end for _, end in spans), default=length)


def _enclosed(piece: Piece) -> list[Span]:
    """For each tag the characters between it and its partner; up to the piece's end where the partner is elsewhere."""
    waiting: dict[str, list[int]] = defaultdict(list)
    spans = [(0, tag.at) if tag.kind == "close" else (tag.at, len(piece.text)) for tag in piece.tags]
    for number, tag in enumerate(piece.tags):
        if tag.kind == "open":
            waiting[tag.name].append(number)
        elif tag.kind == "close" and waiting[tag.name]:
            partner = waiting[tag.name].pop()
            spans[partner] = spans[number] = (piece.tags[partner].at, tag.at)
    return spans
