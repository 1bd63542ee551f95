"""Translate the text of HTML and keep its markup, byte for byte and in order.

Text between two block tags is one run, cut into segments as other text is. Inline tags (<b>, <a>, ..) at a segment's
ends stay there. Those inside, and their partners, go where the words that they enclose went, by the model's attention;
without it, opening tags go to the segment's beginning and closing ones to its end. Tags never change their order, so
what was well nested still is. Comments, <script>, <style>, <code>, translate="no" and class="notranslate" stay as they
are.
"""

import html
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from html.parser import HTMLParser
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

from transduce.inference.sentences import Segment, Span, has_letters, segments

INLINE = {
    *("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del", "dfn", "em", "font", "i", "img", "ins"),
    *("label", "mark", "nobr", "q", "rp", "rt", "ruby", "s", "small", "span", "strike", "strong", "sub", "sup", "time"),
    *("tt", "u", "wbr"),
}
VOID = {
    *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"),
}
QUIET_WORDS = {"code", "kbd", "samp", "var", "svg", "math"}
LEFT_ALONE = QUIET_WORDS | {"script", "style", "textarea", "template"}
BESIDE_TEXT = INLINE | QUIET_WORDS | {""}  # "" is a comment, or malformed
UNFINISHED = re.compile("<[A-Za-z/!?]")
COMMENT_ENDS = re.compile(r"--!?\s*>")
ZEROS = re.compile(r"&#0+(?=[0-9])")  # in front of a reference's number
TOO_LARGE = re.compile(r"&#[0-9]{8,}")  # numbers of no character
Kind = Literal["open", "close", "alone"]


class Tag(NamedTuple):
    """An inline tag, or a comment, inside a run of text; it stands before the character `at`."""

    at: int
    raw: str
    kind: Kind
    name: str


class Run(NamedTuple):
    """Text without a block tag inside, its entities resolved; `raw` is what stood there."""

    text: str
    tags: list[Tag]
    raw: str


class _Event(NamedTuple):
    """Something that begins at `start` of the source and goes on to the next, or, if it is text, to `end` at most."""

    start: int
    kind: Kind | Literal["text"]
    name: str = ""
    end: int = 0
    quiet: bool = False  # asks not to be translated


def parts_of(source: str) -> list[str | Run]:
    """Markup as it is, runs of text between."""
    return list(_joined(source, _without_quiet(_Events(source).found)))


class _Events(HTMLParser):
    """Where each thing begins. Malformed markup is markup that nobody named: it lies between two events."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=False)
        self.source = source
        self.line_starts = [0, *accumulate(len(line) + 1 for line in source.split("\n"))]
        self.found: list[_Event] = []
        tail = source.rfind(">") + 1  # no tag ends after it; the library would look for one behind every "<"
        self.fed = tail
        self.last_comment_ends = max((found.start() for found in COMMENT_ENDS.finditer(source)), default=-1)
        self.feed(source[:tail])
        self.close()
        if tail < len(source):
            self._text(tail, source[tail:])

    def _here(self) -> int:
        line, column = self.getpos()
        return self.line_starts[line - 1] + column

    def handle_data(self, data: str) -> None:
        self._text(self._here(), data)

    def _text(self, start: int, data: str) -> None:
        """Text up to what looks like a tag or comment that never ended."""
        begun = UNFINISHED.search(data)
        self.found.append(_Event(start, "text", end=start + (begun.start() if begun else len(data))))

    def handle_entityref(self, name: str) -> None:
        self._reference(f"&{name}")

    def handle_charref(self, name: str) -> None:
        self._reference(f"&#{name}")

    def _reference(self, raw: str) -> None:
        start = self._here()
        end = start + len(raw)
        self.found.append(_Event(start, "text", end=end + self.source.startswith(";", end)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        quiet = values.get("translate") == "no" or "notranslate" in (values.get("class") or "").split()
        self.found.append(_Event(self._here(), "alone" if tag in VOID else "open", tag, quiet=quiet))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(_Event(self._here(), "alone", tag))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(_Event(self._here(), "close", tag))

    def handle_comment(self, data: str) -> None:
        self.found.append(_Event(self._here(), "alone"))

    def handle_decl(self, decl: str) -> None:
        self.found.append(_Event(self._here(), "alone", "!"))

    def handle_pi(self, data: str) -> None:
        self.found.append(_Event(self._here(), "alone", "?"))

    def unknown_decl(self, data: str) -> None:
        self.found.append(_Event(self._here(), "alone", "!"))

    def parse_comment(self, i: int, report: int = 1) -> int:
        """One that nothing ends is not looked for an end of: the library would do so from each of them."""
        start = self.fed - len(self.rawdata) + i
        return -1 if start + 2 > self.last_comment_ends else int(super().parse_comment(i, bool(report)))

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """<![CDATA[ and the like: a comment up to the next ">", as in HTML 5 (the library raises for unknown ones)."""
        return int(self.parse_bogus_comment(i, bool(report)))


def _without_quiet(events: list[_Event]) -> Iterator[_Event]:
    """Elements that are left alone as one event each, which goes on to what follows their end."""
    inside, depth = "", 0
    for event in events:
        if depth:
            if event.name == inside and event.kind in ("open", "close"):
                depth += 1 if event.kind == "open" else -1
        elif event.kind == "open" and (event.name in LEFT_ALONE or event.quiet):
            inside, depth = event.name, 1
            yield event._replace(kind="alone")
        else:
            yield event


def _unescaped(text: str) -> str:
    """References as the characters that they name; Python would read no number of more than 4,300 digits."""
    return html.unescape(TOO_LARGE.sub("&#9999999999", ZEROS.sub("&#", text)))


def _joined(source: str, events: Iterator[_Event]) -> Iterator[str | Run]:
    begun, text, tags = 0, "", list[Tag]()
    for event, following in pairwise([*events, _Event(len(source), "alone", "end")]):
        start, end = event.start, following.start
        if event.kind == "text":
            text += _unescaped(source[start : event.end])
            if event.end < end:
                tags.append(Tag(len(text), source[event.end : end], "alone", ""))
        elif event.name in BESIDE_TEXT:
            tags.append(Tag(len(text), source[start:end], event.kind, event.name))
        else:
            if begun < start:
                yield Run(text, tags, source[begun:start])
            yield source[start:end]
            begun, text, tags = end, "", []
    if begun < len(source):
        yield Run(text, tags, source[begun:])


class Link(NamedTuple):
    """A source word and an output word that belong together, as spans of characters."""

    source: Span
    output: Span


class Piece(NamedTuple):
    """One segment of a run, in single spaces, and the tags that are its own."""

    text: str
    tags: list[Tag]


class Cut(NamedTuple):
    """A segment of a run, and which of the run's tags are its own: run.tags[first:last]."""

    segment: Segment
    first: int
    last: int


class Document:
    """HTML as pieces to translate.

    whole, language: see `transduce.inference.sentences.segments`.
    """

    def __init__(self, source: str, fits: Callable[[str], bool], language: str = "") -> None:
        self._parts = parts_of(source)
        self._cuts = [_cuts(part, fits, language) if isinstance(part, Run) else [] for part in self._parts]
        self.pieces = [
            _piece(part, cut)
            for part, cuts in zip(self._parts, self._cuts, strict=True)
            if isinstance(part, Run)
            for cut in cuts
        ]

    def rejoined(self, outputs: Sequence[tuple[str, Sequence[Link]]]) -> str:
        """The document with each of `pieces` replaced by its output; the links say where inner tags go."""
        placed = iter([_placed(piece, *output) for piece, output in zip(self.pieces, outputs, strict=True)])
        done: list[str] = []
        for part, cuts in zip(self._parts, self._cuts, strict=True):
            if isinstance(part, Run) and cuts:
                done += _rebuilt(part, [(cut, next(placed)) for cut in cuts])
            else:
                done.append(part.raw if isinstance(part, Run) else part)
        return "".join(done)


def escaped(text: str) -> str:
    """`text` as HTML that shows it."""
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")


def _cuts(run: Run, fits: Callable[[str], bool], language: str) -> list[Cut]:
    """Segments with a letter; a number, a time or a dash stays as it is, as a model would make a sentence of it."""
    partners = _partners(run.tags)
    cuts: list[Cut] = []
    for segment in segments(run.text, fits, lines=False, language=language):
        if has_letters(run.text[segment.start : segment.end]):
            cuts.append(_own_tags(run, segment, partners, cuts[-1].last if cuts else 0))
    return cuts


def _own_tags(run: Run, segment: Segment, partners: list[int | None], tags_before: int) -> Cut:
    """The tags inside a segment, and those at its ends whose partners are inside.

    tags_before: so many of the run's tags belong to segments before.
    """
    edges = [bisect(run.tags, at, key=_at) for at in segment for bisect in (bisect_left, bisect_right)]
    before, first, last, behind = (max(edge, tags_before) for edge in edges)

    def inside(number: int) -> bool:
        partner = partners[number]
        return partner is not None and first <= partner < last

    begins = next(filter(inside, range(before, first)), first)
    ends = next(filter(inside, reversed(range(last, behind))), last - 1) + 1
    return Cut(segment, begins, ends)


def _at(tag: Tag) -> int:
    return tag.at


def _piece(run: Run, cut: Cut) -> Piece:
    (start, end), first, last = cut
    text = run.text[start:end]
    kept = [not (one.isspace() and other.isspace()) for one, other in pairwise("." + text)]
    places = [0, *accumulate(kept)]
    return Piece(re.sub(r"\s+", " ", text), [tag._replace(at=places[tag.at - start]) for tag in run.tags[first:last]])


def _rebuilt(run: Run, outputs: list[tuple[Cut, str]]) -> list[str]:
    """A run with its segments replaced; tags between segments stay between them."""
    out: list[str] = []
    done = number = 0
    for cut, output in outputs:
        out += [*_kept(run, done, cut.segment.start, number, cut.first), output]
        done, number = cut.segment.end, cut.last
    return [*out, *_kept(run, done, len(run.text), number, len(run.tags))]


def _kept(run: Run, start: int, end: int, first: int, last: int) -> list[str]:
    """The text from `start` to `end` with run.tags[first:last] in it."""
    parts = []
    for tag in run.tags[first:last]:
        parts += [escaped(run.text[start : tag.at]), tag.raw]
        start = tag.at
    return [*parts, escaped(run.text[start:end])]


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
    """The character of the output that a tag wants to stand before; what encloses no word goes before the next one."""
    first, last = enclosed
    spans = [link.output for link in links if first < last and link.source[0] < last and link.source[1] > first]
    if tag.kind == "alone" or first == last or (links and not spans):
        following = min((link.source for link in links if link.source[0] >= first), default=None)
        return min((link.output[0] for link in links if link.source == following), default=length)
    if tag.kind == "open":
        return min((start for start, _ in spans), default=0)
    return max((end for _, end in spans), default=length)


def _enclosed(piece: Piece) -> list[Span]:
    """For each tag the characters between it and its partner; up to the piece's end where the partner is elsewhere.

    White space alone is nothing.
    """
    spans = []
    for tag, partner in zip(piece.tags, _partners(piece.tags), strict=True):
        other = None if partner is None else piece.tags[partner].at
        if tag.kind == "close":
            spans.append((other or 0, tag.at))
        else:
            spans.append((tag.at, len(piece.text) if other is None else other))
    return [(first, last if piece.text[first:last].strip() else first) for first, last in spans]


def _partners(tags: Sequence[Tag]) -> list[int | None]:
    """For each tag the place of the one that closes or opened it."""
    waiting: dict[str, list[int]] = defaultdict(list)
    partners: list[int | None] = [None] * len(tags)
    for number, tag in enumerate(tags):
        if tag.kind == "open":
            waiting[tag.name].append(number)
        elif tag.kind == "close" and waiting[tag.name]:
            opened = waiting[tag.name].pop()
            partners[opened], partners[number] = number, opened
    return partners
