"""XML with the place of everything in it, so that what is changed is put in and all else keeps its bytes.

Python's own parser (expat) reads it. No entity of a file's own is read, and nothing outside of the file.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.entities import html5
from typing import NamedTuple
from xml.parsers import expat

from transduce.core.errors import InputError
from transduce.documents.encoding import decoded

DEEPEST = 200  # elements within one another
LARGEST, MOST = 50_000_000, 500_000  # bytes, and elements with lines of text, of one file
DECLARED = re.compile(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([A-Za-z0-9._-]+)[\"']")
IMPOSSIBLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")  # characters that XML cannot hold
NAMESPACES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w:",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w:",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a:",
    "http://purl.oclc.org/ooxml/drawingml/main": "a:",
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "x:",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "x:",
    "urn:oasis:names:tc:opendocument:xmlns:text:1.0": "text:",
    "urn:oasis:names:tc:opendocument:xmlns:office:1.0": "office:",
    "http://www.daisy.org/z3986/2005/ncx/": "",
    "urn:oasis:names:tc:xliff:document:1.1": "",
    "urn:oasis:names:tc:xliff:document:1.2": "",
    "urn:oasis:names:tc:xliff:document:2.0": "",
    "urn:oasis:names:tc:xliff:document:2.1": "",
    "http://www.lisa.org/tmx14": "",
    "http://www.w3.org/XML/1998/namespace": "xml:",
}
"""How names are called here, whatever prefixes a file has; those of other namespaces begin with "?"."""


class Characters(NamedTuple):
    """Text, [start, end) of the source; `text` is what it stands for."""

    start: int
    end: int
    text: str


@dataclass(slots=True)
class Element:
    """[start, end) of the source; what it holds is [inside, outside)."""

    name: str
    attributes: dict[str, str]
    start: int
    line: int
    inside: int = 0
    outside: int = 0
    end: int = 0
    children: "list[Element | Characters]" = field(default_factory=list)

    @property
    def elements(self) -> "list[Element]":
        """Those right inside."""
        return [each for each in self.children if isinstance(each, Element)]

    def walk(self) -> "Iterator[Element]":
        """Itself, and all within, in their order."""
        yield self
        for each in self.elements:
            yield from each.walk()

    def first(self, name: str) -> "Element | None":
        """The first one right inside that is called so."""
        return next((each for each in self.elements if each.name == name), None)

    @property
    def text(self) -> str:
        """All text within."""
        return "".join(each.text for each in self.children)


class Xml:
    """A file of XML.

    Args:
        content: the file.
        name: what messages call it.

    source: its text as UTF-8, of which places are counted in bytes.
    root: the outermost element.

    Raises:
        InputError: it is no XML, or too large; it declares entities; its encoding is unknown.
    """

    def __init__(self, content: bytes, name: str) -> None:
        if len(content) > LARGEST:
            raise InputError(f"{name}: has {len(content):,} bytes; at most {LARGEST:,} are read of one XML file.")
        text, encoding = decoded(content, name, declared_encoding(content))
        self.name, self._encoding = name, encoding._replace(errors="xmlcharrefreplace")
        self.source = text.encode("utf-8")
        self.root = _Reader(name).read(self.source)

    def raw(self, start: int, end: int) -> str:
        """A part as it is written."""
        return self.source[start:end].decode("utf-8")

    def written(self, text: str) -> bytes:
        """The file with other content, in its encoding; characters that this lacks as references."""
        return self._encoding.written(text)

    def gaps(self, element: Element) -> "Iterator[Element | Characters | str]":
        """What an element holds, with comments and the like as they are written."""
        at = element.inside
        for each in element.children:
            if at < each.start:
                yield self.raw(at, each.start)
            yield each
            at = each.end
        if at < element.outside:
            yield self.raw(at, element.outside)


def escaped(text: str) -> str:
    """Text as XML has it; what XML cannot hold is left out."""
    return IMPOSSIBLE.sub("", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def quoted(text: str) -> str:
    """Text as the value of an attribute between double quotes."""
    return escaped(text).replace('"', "&quot;")


def declared_encoding(content: bytes) -> str:
    """The encoding that the first line names."""
    found = DECLARED.match(content[:200])
    return found[1].decode("ascii") if found else "utf-8"


class _Reader:
    """Takes the tokens of a file as they come, each of which ends where the next begins."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: list[Element] = []
        self._root: Element | None = None
        self._ends: list[Callable[[int], None]] = []  # what is told where the next token begins
        self._count = 0
        self._cdata: tuple[int, list[str]] | None = None
        self.parser = parser = expat.ParserCreate("utf-8", " ")
        parser.buffer_text = False
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.StartCdataSectionHandler, parser.EndCdataSectionHandler = self._start_cdata, self._end_cdata
        parser.EntityDeclHandler, parser.SkippedEntityHandler = self._refuse, self._skipped
        parser.DefaultHandler = lambda data: self._next()

    def read(self, source: bytes) -> Element:
        try:
            self.parser.Parse(source, True)
        except expat.ExpatError as error:
            raise InputError(
                f"{self._name}, line {error.lineno}: expected XML; {expat.ErrorString(error.code)}."
            ) from None
        self._next(len(source))
        assert self._root is not None
        return self._root

    def _next(self, at: int | None = None) -> int:
        at = self.parser.CurrentByteIndex if at is None else at
        for end in self._ends:
            end(at)
        self._ends = []
        return at

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        at = self._next()
        if len(self._open) >= DEEPEST:
            raise InputError(
                f"{self._name}, line {self.parser.CurrentLineNumber}: has more than {DEEPEST} elements within one "
                "another."
            )
        self._counted()
        named = {_called(key): value for key, value in attributes.items()}
        element = Element(_called(name), named, at, self.parser.CurrentLineNumber)
        if self._open:
            self._open[-1].children.append(element)
        else:
            self._root = element
        self._open.append(element)

        def inside(end: int) -> None:
            element.inside = end

        self._ends.append(inside)

    def _end(self, name: str) -> None:
        at = self._next()
        element = self._open.pop()
        element.outside = at

        def behind(end: int) -> None:
            element.end = end

        self._ends.append(behind)

    def _counted(self) -> None:
        """One more element or line of text: a few bytes of the file, and some hundred here."""
        self._count += 1
        if self._count > MOST:
            raise InputError(f"{self._name}: has more than {MOST:,} elements and lines. Divide it into several files.")

    def _characters(self, data: str) -> None:
        self._counted()
        if self._cdata:
            self._cdata[1].append(data)
            return
        self._add(self._next(), data)

    def _add(self, at: int, data: str) -> None:
        children = self._open[-1].children

        def behind(end: int) -> None:
            children.append(Characters(at, end, data))

        self._ends.append(behind)

    def _start_cdata(self) -> None:
        self._cdata = (self._next(), [])

    def _end_cdata(self) -> None:
        assert self._cdata is not None
        at, texts = self._cdata
        self._cdata = None
        self._add(at, "".join(texts))

    def _skipped(self, name: str, is_parameter: bool) -> None:
        """An entity that only a document type declares, which is not read."""
        at = self._next()
        if not is_parameter and self._open:
            self._add(at, html5.get(f"{name};", f"&{name};"))

    def _refuse(self, name: str, *_: object) -> None:
        raise InputError(
            f"{self._name}, line {self.parser.CurrentLineNumber}: declares the entity {name[:40]}, which could unpack "
            "to more than fits in memory. Expected XML without entities of its own."
        )


def _called(name: str) -> str:
    namespace, space, local = name.rpartition(" ")
    if not space:
        return name
    prefix = NAMESPACES.get(namespace)
    return f"{prefix}{local}" if prefix is not None else f"?{local}"


def start_tag_name(raw: str) -> str:
    """The name of an element as its start tag has it, with the prefix."""
    found = re.match(r"<([^\s/>]+)", raw)
    assert found
    return found[1]
