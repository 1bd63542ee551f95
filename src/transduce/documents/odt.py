"""OpenDocument text (.odt): paragraphs and headings, also those of notes, frames, headers and footers."""

from transduce.documents.inline import Inline, XmlBlocks, inline_run
from transduce.documents.opened import OpenedFile
from transduce.documents.packed import opened_parts
from transduce.documents.zipped import Zipped

PARTS = ("content.xml", "styles.xml")
PARAGRAPHS = frozenset({"text:p", "text:h"})
INLINE = Inline(
    paired={"text:span", "text:a", "text:ruby", "text:ruby-base", "text:meta"},
    spaces={"text:s"},
    breaks={"text:line-break", "text:tab"},
)


def opened(content: bytes, name: str) -> OpenedFile:
    """The file as texts. Raises InputError if it is none of OpenDocument, or damaged."""
    archive = Zipped(content, name)
    return opened_parts(
        archive,
        archive.names(lambda part: part in PARTS),
        lambda xml: XmlBlocks(xml, PARAGRAPHS, lambda blocks, each: inline_run(xml, each, INLINE, blocks)).parsed(),
        "a text of OpenDocument (.odt)",
    )
