"""Runs of Office Open XML, whose text lies in elements side by side, each with its own format.

The format of most of a paragraph is the paragraph's; spans of other formats are moved with their words, as HTML's tags
are. Breaks, pictures, fields and bookmarks are codes between them, each of which stays once, in order. A paragraph that
changes is written anew from these; one that does not keeps its bytes.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from transduce.documents.inline import XmlBlocks
from transduce.documents.runs import Kept, Kind, Run, RunBuilder, Tag, Token
from transduce.documents.xml import Characters, Element, Xml, escaped, start_tag_name

NO_FORMAT = re.compile(  # differences between runs that nobody sees
    r"<\w+:(?:lang|noProof|proofErr)\b[^>]*/>"
    r'|\s(?:lang|altLang|dirty|err|smtClean|noProof|w:rsid\w*)="[^"]*"'
)
EMPTY = re.compile(r"<([\w:.-]+)\s*(?:/>|>\s*</\1>)")
BREAK = "\n"  # in the text of a run, behind the code that ends a line
IN, STYLE = "in:", "style:"  # names of tags: what stands inside a run; where another format begins and ends


class OfficeNames(NamedTuple):
    """Names of elements: the paragraph, a run in it, the run's format, its text; what encloses runs.

    attribute: of the text, so that spaces at its ends are kept.
    breaks: what ends a line, or a cell of one.
    """

    paragraph: Collection[str]
    run: str
    format: str
    text: str
    containers: Collection[str] = ()
    attribute: str = ""
    breaks: Collection[str] = ()


class _Style(NamedTuple):
    """How a run of a format begins and ends, up to its content; both are "" for text without a run."""

    start: str
    end: str


@dataclass
class _Item:
    """Something in a paragraph: text, or a code, of a style; or a code between runs, whose style is None.

    breaks: it ends a line.
    """

    raw: str
    style: str | None = None
    text: str | None = None
    tag: Tag | None = None
    breaks: bool = False


@dataclass
class _Paragraph:
    """What a paragraph holds, and how its runs and texts begin."""

    xml: Xml
    names: OfficeNames
    blocks: XmlBlocks
    items: list[_Item] = field(default_factory=list)
    styles: dict[str, _Style] = field(default_factory=dict)
    text_name: str = ""

    def add(self, element: Element) -> None:
        """All in an element, which is the paragraph or something around runs."""
        for each in self.xml.gaps(element):
            raw = each if isinstance(each, str) else self.xml.raw(each.start, each.end)
            if isinstance(each, str | Characters):
                self._add_between(raw)
            elif each.name == self.names.run:
                self._add_run(each)
            elif each.name == self.names.text:
                self.styles[""] = _Style("", "")
                self._add_text(each, "")
            elif each.name in self.names.containers:
                self.items.append(_Item("", tag=Tag(0, self.xml.raw(each.start, each.inside), "open", each.name)))
                self.add(each)
                self.items.append(_Item("", tag=Tag(0, self.xml.raw(each.outside, each.end), "close", each.name)))
            else:
                tag = Tag(0, self._whole(each), "alone", "")
                self.items.append(_Item("", tag=tag, breaks=each.name in self.names.breaks))

    def _add_between(self, raw: str) -> None:
        """White space and comments between elements."""
        self.items.append(_Item(raw) if raw.isspace() else _Item("", tag=Tag(0, raw, "alone", "")))

    def _whole(self, element: Element) -> str:
        if self.blocks.holds_block(element):
            return self.blocks.as_island(element)
        return self.xml.raw(element.start, element.end)

    def _add_run(self, run: Element) -> None:
        start, formats = self.xml.raw(run.start, run.inside), run.first(self.names.format)
        if not run.children:
            self.items.append(_Item("", tag=Tag(0, start, "alone", "")))
            return
        written = self.xml.raw(formats.start, formats.end) if formats else ""
        shown = NO_FORMAT.sub("", written)
        style = "-" if EMPTY.fullmatch(shown) or not shown else shown
        self.styles.setdefault(style, _Style(start + written, self.xml.raw(run.outside, run.end)))
        self.items.append(_Item(start))
        for each in self.xml.gaps(run):
            if isinstance(each, Element) and each.name == self.names.text:
                self._add_text(each, style)
            elif isinstance(each, Element) and each is not formats:
                self.items.append(_Item(self._whole(each), style, breaks=each.name in self.names.breaks))
            else:
                self.items.append(_Item(each if isinstance(each, str) else self.xml.raw(each.start, each.end)))
        self.items.append(_Item(self.xml.raw(run.outside, run.end)))

    def _add_text(self, element: Element, style: str) -> None:
        start = self.xml.raw(element.start, element.inside)
        self.text_name = self.text_name or start_tag_name(start)
        self.items.append(_Item(start))
        for each in self.xml.gaps(element):
            raw = each if isinstance(each, str) else self.xml.raw(each.start, each.end)
            self.items.append(_Item(raw, style, each.text) if isinstance(each, Characters) else _Item(raw))
        self.items.append(_Item(self.xml.raw(element.outside, element.end)))

    @property
    def base(self) -> str:
        """The style of most of its text."""
        sizes = Counter[str]()
        for each in self.items:
            if each.text is not None and each.style is not None:
                sizes[each.style] += len(each.text)
        return sizes.most_common(1)[0][0] if sizes else ""


def office_run(names: OfficeNames, blocks: XmlBlocks, element: Element) -> Run:
    """The run of a paragraph."""
    paragraph = _Paragraph(blocks.xml, names, blocks)
    paragraph.add(element)
    building, current, base = RunBuilder(), paragraph.base, paragraph.base
    for each in paragraph.items:
        if each.text is not None and each.style is not None:
            for kind, style in _switches(current, each.style, base):
                building.add_tag("", kind, f"{STYLE}{style}")
            current = each.style
            building.add_text(each.text.replace(BREAK, " "), each.raw)
            continue
        if each.breaks:
            for kind, style in _switches(current, base, base):
                building.add_tag("", kind, f"{STYLE}{style}")
            current = base
        if each.style is not None:
            building.add_tag(each.raw, "alone", f"{IN}{each.style}")
        elif each.tag is not None:
            building.add_tag(each.tag.raw, each.tag.kind, each.tag.name)
        else:
            building.add_raw(each.raw)
        if each.breaks:
            building.add_text(BREAK, "")
    for kind, style in _switches(current, base, base):
        building.add_tag("", kind, f"{STYLE}{style}")
    return building.run(_Writer(paragraph).write, lines=True)


def _switches(current: str, wanted: str, base: str) -> Iterator[tuple[Kind, str]]:
    if current != wanted:
        if current != base:
            yield "close", current
        if wanted != base:
            yield "open", wanted


class _Writer:
    """Writes a paragraph anew."""

    def __init__(self, paragraph: _Paragraph) -> None:
        self._styles, self._base = paragraph.styles, paragraph.base
        self._text = paragraph.text_name
        self._attribute = paragraph.names.attribute

    def write(self, run: Run, tokens: Sequence[Token]) -> str:
        """As `transduce.documents.runs.Run.write`."""
        out, state, wanted = list[str](), _State(), [self._base]
        for token in tokens:
            for each in run.items(token) if isinstance(token, Kept) else [token]:
                if isinstance(each, str):
                    if text := each.replace(BREAK, ""):
                        out += [*self._in_text(state, wanted[-1]), escaped(text)]
                elif each.name.startswith(STYLE):
                    _turn(wanted, each)
                elif each.name.startswith(IN):
                    out += [*self._in_run(state, each.name.removeprefix(IN)), each.raw]
                else:
                    out += [*self._closed(state), each.raw]
        return "".join([*out, *self._closed(state)])

    def _in_text(self, state: "_State", style: str) -> Iterator[str]:
        if state.style != style or not state.in_text:
            yield from self._in_run(state, style)
            yield f"<{self._text}{self._attribute}>"
            state.in_text = True

    def _in_run(self, state: "_State", style: str) -> Iterator[str]:
        if state.in_text:
            yield f"</{self._text}>"
            state.in_text = False
        if state.style != style:
            yield from self._closed(state)
            yield self._styles[style].start
            state.style = style

    def _closed(self, state: "_State") -> Iterator[str]:
        if state.in_text:
            yield f"</{self._text}>"
        if state.style is not None:
            yield self._styles[state.style].end
        state.style, state.in_text = None, False


@dataclass
class _State:
    """Where the writer is: in a run of a style, and in a text of it."""

    style: str | None = None
    in_text: bool = False


def _turn(wanted: list[str], tag: Tag) -> None:
    """The styles that are open, the innermost last."""
    style = tag.name.removeprefix(STYLE)
    if tag.kind == "open":
        wanted.append(style)
    elif style in wanted[1:]:
        del wanted[len(wanted) - 1 - wanted[::-1].index(style)]
