"""Books (.epub): the text of their pages, and the entries of the table of contents."""

import re
from collections.abc import Sequence

from transduce.core.errors import InputError
from transduce.documents.encoding import decoded
from transduce.documents.html import parts_of
from transduce.documents.inline import Inline, ParsedXml, XmlBlocks, inline_run
from transduce.documents.opened import OpenedFile, PartsText
from transduce.documents.xml import Xml, declared_encoding, escaped
from transduce.documents.zipped import Zipped

PAGES = re.compile(r".*\.x?html?", re.IGNORECASE)
LOCK = "META-INF/encryption.xml"


def opened(content: bytes, name: str) -> OpenedFile:
    """The file as texts.

    Raises:
        InputError: it is no book, or damaged; its pages are encrypted.
    """
    archive = Zipped(content, name)
    pages, contents = archive.names(PAGES.fullmatch), archive.names(lambda part: part.lower().endswith(".ncx"))
    if not pages or "META-INF/container.xml" not in archive.parts:
        raise InputError(f"{name}: expected a book (.epub); this archive has no pages, or no META-INF/container.xml.")
    if any(page.encode() in archive.parts.get(LOCK, b"") for page in pages):
        raise InputError(f"{name}: its pages are encrypted (DRM), and cannot be read.")
    texts = [decoded(archive.parts[each], each, declared_encoding(archive.parts[each])) for each in pages]
    parsed = [_contents(Xml(archive.parts[each], f"{name}, {each}")) for each in contents]

    def write(made: Sequence[str]) -> bytes:
        written = [encoding.written(text) for (_, encoding), text in zip(texts, made[: len(pages)], strict=True)]
        written += [each.xml.written(text) for each, text in zip(parsed, made[len(pages) :], strict=True)]
        return archive.with_parts(dict(zip([*pages, *contents], written, strict=True)))

    return OpenedFile([*(PartsText(parts_of(text, escaped)) for text, _ in texts), *parsed], write)


def _contents(xml: Xml) -> ParsedXml:
    return XmlBlocks(xml, {"text"}, lambda blocks, each: inline_run(xml, each, Inline())).parsed()
