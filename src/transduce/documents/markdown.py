"""Markdown (CommonMark with tables, footnotes, task lists, math, front matter): paragraphs, headings and cells.

pyromark tells where everything stands. Emphasis and links are inline tags; code, math, pictures and addresses stay as
they are. HTML blocks are read as HTML.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from transduce.core.extras import library
from transduce.documents.html import VOID, parts_of
from transduce.documents.runs import Kind, Part, Run, RunBuilder, Token, writes_escaped

OPTIONS = (
    "TABLES",
    "FOOTNOTES",
    "STRIKETHROUGH",
    "TASKLISTS",
    "YAML_STYLE_METADATA_BLOCKS",
    "HEADING_ATTRIBUTES",
    "MATH",
)
PAIRED = {"Emphasis", "Strong", "Strikethrough", "Superscript", "Subscript", "Link"}
ALONE = {"Code", "FootnoteReference", "InlineMath", "DisplayMath"}
QUIET = {"CodeBlock", "MetadataBlock", "HtmlBlock"}  # which hold no inline text
ACTIVE = re.compile(r"[\\`*\[\]]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|~(?=~)|(?<!\w)_|_(?!\w)")
BEGINS = re.compile(r"(?:#{1,6}|[-+]|\d+(?=[.)]))(?=[.)]?(?:\s|$))|>|={2,}|-{2,}")


def escaped(text: str) -> str:
    """Text as Markdown that shows it."""
    return ACTIVE.sub(r"\\\g<0>", text)


def escaped_cell(text: str) -> str:
    """The same in a table."""
    return escaped(text).replace("|", r"\|")


def _writes(escape: Callable[[str], str]) -> Callable[[Run, Sequence[Token]], str]:
    inline = writes_escaped(escape)

    def write(run: Run, tokens: Sequence[Token]) -> str:
        """No output may begin as a list or a heading does."""
        text = inline(run, tokens)
        begins = BEGINS.match(text)
        if not begins or run.raw.startswith(begins[0]):
            return text
        place = begins.end() if text[0].isdigit() else 0
        return f"{text[:place]}\\{text[place:]}"

    return write


WRITE, WRITE_CELL = _writes(escaped), _writes(escaped_cell)


class _Event(NamedTuple):
    """begin: "start", "end" or "" for what is alone; [start, end) in bytes."""

    begin: str
    name: str
    value: Any
    start: int
    end: int


def parts(source: str) -> list[Part]:
    """Markdown as it is, runs of text between.

    Raises:
        InputError: pyromark is not installed.
    """
    return _Reader(source).read()


class _Reader:
    """Goes through the events of a text, and collects its parts."""

    def __init__(self, source: str) -> None:
        self._source, self._events = source.encode("utf-8"), list(_events(source))
        self._parts = list[Part]()
        self._done = self._at = 0  # the end of the parts; of what is in the run that is built
        self._building, self._cells = RunBuilder(), False

    def read(self) -> list[Part]:
        number = 0
        while number < len(self._events):
            each = self._events[number]
            if _is_inline(each):
                number = self._add(number)
                continue
            self._flush()
            behind = self._behind(number) if each.begin == "start" and each.name in QUIET else number + 1
            if each.name == "HtmlBlock" and each.begin == "start":
                self._add_html(self._events[number + 1 : behind - 1])
            if each.name == "Table":
                self._cells = each.begin == "start"
            number = behind
        self._flush()
        return [*self._parts, self._raw(self._done, len(self._source))]

    def _raw(self, start: int, end: int) -> str:
        return self._source[start:end].decode("utf-8")

    def _behind(self, number: int) -> int:
        """The number of the event behind the end of what begins here."""
        depth = 0
        for place in range(number, len(self._events)):
            each = self._events[place]
            if each.name == self._events[number].name:
                depth += {"start": 1, "end": -1}.get(each.begin, 0)
                if not depth:
                    return place + 1
        return len(self._events)

    def _flush(self) -> None:
        """The run that is built becomes a part, if there is one."""
        if self._building:
            self._parts.append(self._building.run(WRITE_CELL if self._cells else WRITE))
            self._done = self._at
        self._building = RunBuilder()

    def _add_html(self, events: Sequence[_Event]) -> None:
        """A block of HTML; one with marks of a quotation between its lines stays."""
        if events and all(one.end == other.start for one, other in pairwise(events)):
            start, end = events[0].start, events[-1].end
            self._parts += [self._raw(self._done, start), *parts_of(self._raw(start, end))]
            self._done = end

    def _add(self, number: int) -> int:
        """An inline event; the number of the next."""
        each = self._events[number]
        empty = each.begin == "start" and self._events[number + 1].begin == "end"
        if each.begin == "start" and (each.name == "Image" or _is_address(each) or empty):
            self._add_tag(each.start, each.end)
            return self._behind(number)
        if each.begin == "start":
            self._add_tag(each.start, self._next(number, each.start), "open", each.name)
        elif each.begin == "end":
            self._add_tag(self._at, each.end, "close", each.name, self._reference(number))
        elif each.name == "Text":
            self._add_text(each)
        elif each.name == "SoftBreak":
            self._go_to(each.start)
            self._building.add_text(" ", self._raw(each.start, each.end))
            self._at = each.end
        else:
            kind, name = _html_kind(self._raw(each.start, each.end)) if each.name == "InlineHtml" else ("alone", "")
            self._add_tag(each.start, each.end, kind, name)
        return number + 1

    def _next(self, number: int, least: int) -> int:
        """Where the next inline event begins, but for the backslash in front of its text."""
        following = self._events[number + 1] if number + 1 < len(self._events) else None
        if following is None or not _is_inline(following) or following.begin == "end":
            return least
        escape = following.name == "Text" and self._source[following.start - 1 : following.start] == b"\\"
        return max(least, following.start - escape)

    def _reference(self, number: int) -> str | None:
        """The end of a link that is named by its text, [text] or [text][], once the text is another."""
        end = self._events[number]
        if end.name != "Link":
            return None
        for each in reversed(self._events[:number]):
            if each.begin == "start" and each.name == "Link" and (each.start, each.end) == (end.start, end.end):
                named = each.value["link_type"] in ("Shortcut", "Collapsed")
                return f"][{each.value['id']}]" if named else None
        return None

    def _go_to(self, start: int) -> None:
        """Begin a run here, or take what stands between two events, such as the mark of a quotation, into it."""
        if not self._building:
            self._parts.append(self._raw(self._done, start))
            self._done = start
        elif self._at < start:
            self._building.add_raw(self._raw(self._at, start))

    def _add_tag(self, start: int, end: int, kind: Kind = "alone", name: str = "", written: str | None = None) -> None:
        self._go_to(start)
        self._building.add_tag(self._raw(start, end), kind, name, written)
        self._at = end

    def _add_text(self, event: _Event) -> None:
        """Text; a backslash in front belongs to its first character."""
        escape = self._at < event.start and self._source[event.start - 1 : event.start] == b"\\"
        start, text = event.start - escape, str(event.value)
        self._go_to(start)
        raw = self._raw(start, event.end)
        if escape:
            self._building.add_text(text[:1], raw[:2])
            text, raw = text[1:], raw[2:]
        self._building.add_text(text, raw)
        self._at = event.end


def _events(source: str) -> Iterator[_Event]:
    pyromark = library("pyromark", "reading Markdown", "files")
    options = pyromark.Options(0)
    for name in OPTIONS:
        options |= getattr(pyromark.Options, f"ENABLE_{name}")
    for event, span in pyromark.events_with_range(source, options=options):
        kind, value = _named(event)
        begins = kind in ("Start", "End")
        name, value = _named(value) if begins else (kind, value)
        yield _Event(kind.lower() if begins else "", name, value, span["start"], span["end"])


def _named(event: Any) -> tuple[str, Any]:
    """A name, and what is said of it: {"Text": "a"}, "SoftBreak"."""
    return next(iter(event.items())) if isinstance(event, dict) else (event, None)


def _is_inline(event: _Event) -> bool:
    return event.name in PAIRED | ALONE | {"Text", "SoftBreak", "InlineHtml", "Image"}


def _is_address(event: _Event) -> bool:
    """A link that shows where it leads."""
    return event.name == "Link" and event.value["link_type"] in ("Autolink", "Email")


def _html_kind(raw: str) -> tuple[Kind, str]:
    found = re.match(r"</?([A-Za-z][\w-]*)", raw)
    if not found or raw.endswith("/>") or found[1].lower() in VOID:
        return "alone", ""
    return "close" if raw.startswith("</") else "open", found[1].lower()
