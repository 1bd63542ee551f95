"""Excel (.xlsx): the texts of cells. Numbers, formulas, names of sheets and the headers of tables stay.

A table finds its columns by the texts of their headers, so these may not change alone.
"""

import re

from transduce.documents.identifiers import is_identifier
from transduce.documents.inline import ParsedXml, XmlBlocks
from transduce.documents.office import OfficeNames, office_run
from transduce.documents.opened import OpenedFile
from transduce.documents.packed import opened_parts
from transduce.documents.runs import Run, RunBuilder
from transduce.documents.xml import Element, Xml
from transduce.documents.zipped import Zipped

PARTS = re.compile(r"xl/(?:sharedStrings|worksheets/[^/]+)\.xml", re.IGNORECASE)
TABLES = re.compile(r"xl/tables/[^/]+\.xml", re.IGNORECASE)
NAMES = OfficeNames(
    paragraph={"x:si", "x:is"}, run="x:r", format="x:rPr", text="x:t", attribute=' xml:space="preserve"'
)


def opened(content: bytes, name: str) -> OpenedFile:
    """The file as texts. Raises InputError if it is none of Excel, or damaged."""
    archive = Zipped(content, name)
    tables = [Xml(archive.parts[each], f"{name}, {each}") for each in archive.names(TABLES.fullmatch)]
    headers = {
        " ".join(each.attributes.get("name", "").replace("_x000a_", " ").split())
        for table in tables
        for each in table.root.walk()
        if each.name == "x:tableColumn"
    }

    def parse(xml: Xml) -> ParsedXml:
        def make(blocks: XmlBlocks, element: Element) -> Run:
            run = office_run(NAMES, blocks, element)
            text = " ".join(run.text.split())
            return _left(xml, element) if text in headers or is_identifier(text) else run

        return XmlBlocks(xml, NAMES.paragraph, make).parsed()

    names = archive.names(PARTS.fullmatch)
    with_text = [each for each in names if "/sharedStrings" in each or b"inlineStr" in archive.parts[each]]
    return opened_parts(archive, with_text or names[:1], parse, "a workbook of Excel (.xlsx)")


def _left(xml: Xml, element: Element) -> Run:
    """A run without text."""
    building = RunBuilder()
    building.add_tag(xml.raw(element.inside, element.outside))
    return building.run(lambda run, tokens: run.raw)
