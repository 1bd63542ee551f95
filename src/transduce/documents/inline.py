"""Runs of XML whose inline elements enclose text: OpenDocument, XLIFF, TMX."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from transduce.documents.opened import PartsText
from transduce.documents.runs import Kind, Part, Run, RunBuilder, Write, island, writes_escaped
from transduce.documents.xml import Characters, Element, Xml, escaped

Replacement = tuple[int, int, Sequence[Part]]  # what takes the place of [start, end) of the source
WRITE = writes_escaped(escaped)


class Inline(NamedTuple):
    """Which elements stand inside a sentence.

    paired: those around text. All others are codes of their own, with all that they hold.
    halves: of a pair that is written as two elements, by their names: whether it opens, and the attributes that hold
        what both have in common.
    spaces: those that are a space.
    breaks: those that end a line, or a cell of one.
    """

    paired: Collection[str] = ()
    halves: Mapping[str, tuple[Kind, tuple[str, ...]]] = MappingProxyType({})
    spaces: Collection[str] = ()
    breaks: Collection[str] = ()


class ParsedXml(PartsText):
    """Parts of an XML file."""

    def __init__(self, xml: Xml, parts: Iterable[Part], islands: Sequence[Sequence[Part]] = ()) -> None:
        super().__init__(list(parts), islands)
        self.xml = xml


def spliced(xml: Xml, replacements: Sequence[Replacement]) -> Iterator[Part]:
    """The file with replacements, which are in the order of their places."""
    at = 0
    for start, end, parts in replacements:
        yield xml.raw(at, start)
        yield from parts
        at = end
    yield xml.raw(at, len(xml.source))


Make = Callable[["XmlBlocks", Element], Run]  # the run of a block


class XmlBlocks:
    """The runs of a file's blocks, also of those inside other runs.

    islands: parts of blocks inside of runs.
    """

    def __init__(self, xml: Xml, names: Collection[str], make: Make) -> None:
        self.xml, self.names, self._make = xml, names, make
        self.islands: list[list[Part]] = []

    def parsed(self) -> ParsedXml:
        """The whole file."""
        parts = list(spliced(self.xml, self._within(self.xml.root)))
        return ParsedXml(self.xml, parts, self.islands)

    def holds_block(self, element: Element) -> bool:
        """Whether a block is inside."""
        return any(each.name in self.names for each in element.walk())

    def as_island(self, element: Element) -> str:
        """What stands for an element with blocks inside."""
        number = len(self.islands)
        self.islands.append([])
        done, parts = element.start, list[Part]()
        for start, end, inner in self._within(element):
            parts += [self.xml.raw(done, start), *inner]
            done = end
        self.islands[number] = [*parts, self.xml.raw(done, element.end)]
        return island(number)

    def _within(self, element: Element) -> list[Replacement]:
        if element.name in self.names:
            return [(element.inside, element.outside, [self._make(self, element)])] if element.children else []
        return [each for child in element.elements for each in self._within(child)]


def inline_run(
    xml: Xml, element: Element, inline: Inline, blocks: XmlBlocks | None = None, write: Write = WRITE
) -> Run:
    """What an element holds, as one run."""
    building = RunBuilder()
    _add_inline(building, xml, element, inline, blocks)
    return building.run(write, lines=True)


def _add_inline(building: RunBuilder, xml: Xml, element: Element, inline: Inline, blocks: XmlBlocks | None) -> None:
    for each in xml.gaps(element):
        if isinstance(each, str):
            building.add_tag(each)
        elif isinstance(each, Characters):
            building.add_text(each.text.replace("\n", " "), xml.raw(each.start, each.end))
        else:
            _add_element(building, xml, each, inline, blocks)


def _add_element(building: RunBuilder, xml: Xml, element: Element, inline: Inline, blocks: XmlBlocks | None) -> None:
    raw = xml.raw(element.start, element.end)
    if element.name in inline.spaces:
        building.add_tag(raw)
        building.add_text(" " if building.ends_in_word else "", "")
    elif element.name in inline.breaks:
        building.add_text("\n", raw)
    elif element.name in inline.halves:
        kind, keys = inline.halves[element.name]
        key = next((element.attributes[each] for each in keys if each in element.attributes), "")
        building.add_tag(raw, kind, f"half {key}")
    elif blocks and blocks.holds_block(element):
        building.add_tag(blocks.as_island(element))
    elif element.name in inline.paired and element.children and not _is_quiet(element):
        building.add_tag(xml.raw(element.start, element.inside), "open", element.name)
        _add_inline(building, xml, element, inline, blocks)
        building.add_tag(xml.raw(element.outside, element.end), "close", element.name)
    else:
        building.add_tag(raw)


def _is_quiet(element: Element) -> bool:
    """Whether it asks not to be translated (XLIFF)."""
    return element.attributes.get("translate") == "no" or element.attributes.get("mtype") == "protected"
