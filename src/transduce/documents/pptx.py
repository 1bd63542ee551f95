"""PowerPoint (.pptx): the paragraphs of slides, tables and diagrams, and the notes."""

import re

from transduce.documents.office import OfficeNames
from transduce.documents.opened import OpenedFile
from transduce.documents.packed import office_parts

PARTS = re.compile(r"ppt/(?:slides/slide|notesSlides/notesSlide|diagrams/data|diagrams/drawing)\d*\.xml")
NAMES = OfficeNames(paragraph={"a:p"}, run="a:r", format="a:rPr", text="a:t", breaks={"a:br"})


def opened(content: bytes, name: str) -> OpenedFile:
    """The file as texts. Raises InputError if it is none of PowerPoint, or damaged."""
    return office_parts(content, name, PARTS.fullmatch, NAMES, "slides of PowerPoint (.pptx)")
