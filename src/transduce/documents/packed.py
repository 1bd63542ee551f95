"""The XML parts of an archive as texts of one file."""

from collections.abc import Callable, Sequence

from transduce.core.errors import InputError
from transduce.documents.inline import ParsedXml, XmlBlocks
from transduce.documents.office import OfficeNames, office_run
from transduce.documents.opened import OpenedFile
from transduce.documents.xml import Xml
from transduce.documents.zipped import Zipped


def opened_parts(archive: Zipped, names: Sequence[str], parse: Callable[[Xml], ParsedXml], what: str) -> OpenedFile:
    """Parts of an archive as one file.

    Args:
        names: of the parts with text.
        parse: takes one of them apart.
        what: such a file is, for messages.

    Raises:
        InputError: there are no such parts, or they are no XML.
    """
    if not names:
        raise InputError(f"{archive.name}: expected {what}; this archive has none of its parts.")
    parsed = [parse(Xml(archive.parts[each], f"{archive.name}, {each}")) for each in names]

    def write(texts: Sequence[str]) -> bytes:
        written = [each.xml.written(text) for each, text in zip(parsed, texts, strict=True)]
        return archive.with_parts(dict(zip(names, written, strict=True)))

    return OpenedFile(parsed, write)


def office_parts(
    content: bytes, name: str, parts: Callable[[str], object], names: OfficeNames, what: str
) -> OpenedFile:
    """A file of Office Open XML. parts: whether a part has text. Raises InputError as `opened_parts`."""
    archive = Zipped(content, name)

    def parse(xml: Xml) -> ParsedXml:
        return XmlBlocks(xml, names.paragraph, lambda blocks, each: office_run(names, blocks, each)).parsed()

    return opened_parts(archive, archive.names(parts), parse, what)
