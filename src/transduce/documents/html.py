"""HTML: the text between its tags, which stay byte for byte and in order.

Text between two block tags is one run. Comments, <script>, <style>, <code>, translate="no" and class="notranslate"
stay as they are.
"""

import html
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

from transduce.documents.runs import Document, Fits, Kind, Part, RunBuilder, Write, writes_escaped

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
REFERENCE = re.compile(r"&[#\w]+;?")


class _Event(NamedTuple):
    """Something that begins at `start` of the source and goes on to the next, or, if it is text, to `end` at most."""

    start: int
    kind: Kind | Literal["text"]
    name: str = ""
    end: int = 0
    quiet: bool = False  # asks not to be translated


class HtmlDocument(Document):
    """HTML as pieces to translate. fits, language: see `transduce.inference.sentences.segments`."""

    def __init__(self, source: str, fits: Fits, language: str = "") -> None:
        super().__init__(parts_of(source), fits, language)


def parts_of(source: str, escape: Callable[[str], str] | None = None) -> list[Part]:
    """Markup as it is, runs of text between. escape: how outputs are written; None = as `escaped`."""
    write = writes_escaped(escape or escaped)
    return list(_joined(source, _without_quiet(_Events(source).found), write))


def escaped(text: str) -> str:
    """`text` as HTML that shows it."""
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")


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


def _joined(source: str, events: Iterator[_Event], write: Write) -> Iterator[Part]:
    building, found = RunBuilder(), [*events, _Event(len(source), "alone", "end")]
    if found[0].start:
        building.add_tag(source[: found[0].start])  # malformed
    for event, following in pairwise(found):
        start, end = event.start, following.start
        if event.kind == "text":
            _add_text(building, source[start : event.end])
            if event.end < end:
                building.add_tag(source[event.end : end])
        elif event.name in BESIDE_TEXT:
            building.add_tag(source[start:end], event.kind, event.name)
        else:
            if building:
                yield building.run(write)
            yield source[start:end]
            building = RunBuilder()
    if building:
        yield building.run(write)


def _add_text(building: RunBuilder, raw: str) -> None:
    """Text with references in it; the library gives the text between them in one event."""
    done = 0
    for found in REFERENCE.finditer(raw):
        building.add_text(_unescaped(raw[done : found.start()]), raw[done : found.start()])
        building.add_text(_unescaped(found[0]), found[0])
        done = found.end()
    building.add_text(_unescaped(raw[done:]), raw[done:])
