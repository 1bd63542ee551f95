"""Word (.docx): the paragraphs of the text, its headers, footers, notes and comments."""

import re

from transduce.documents.office import OfficeNames
from transduce.documents.opened import OpenedFile
from transduce.documents.packed import office_parts

PARTS = re.compile(r"word/(?:document|header|footer|footnotes|endnotes|comments)\d*\.xml")
NAMES = OfficeNames(
    paragraph={"w:p"},
    run="w:r",
    format="w:rPr",
    text="w:t",
    containers={
        *("w:hyperlink", "w:ins", "w:moveTo", "w:smartTag", "w:sdt", "w:sdtContent", "w:customXml", "w:fldSimple"),
        *("w:dir", "w:bdo"),
    },
    attribute=' xml:space="preserve"',
    breaks={"w:br", "w:cr", "w:tab", "w:ptab"},
)


def opened(content: bytes, name: str) -> OpenedFile:
    """The file as texts. Raises InputError if it is none of Word, or damaged."""
    return office_parts(content, name, PARTS.fullmatch, NAMES, "a document of Word (.docx)")
