"""The formats of documents, by the endings of their names."""

from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath
from typing import NamedTuple

from transduce.core.errors import InputError
from transduce.core.foreign_files import told_of_foreign
from transduce.data.gettext import declared_charset
from transduce.documents import docx, epub, json, markdown, odt, po, pptx, tmx, xliff, xlsx
from transduce.documents.bilingual import FileLanguages
from transduce.documents.encoding import decoded
from transduce.documents.html import HtmlDocument
from transduce.documents.inline import ParsedXml
from transduce.documents.opened import OpenedFile, PartsText, WholeText
from transduce.documents.plain import PlainText
from transduce.documents.runs import Parse, Part
from transduce.documents.subtitles import Subtitles

Open = Callable[[bytes, str, FileLanguages], OpenedFile]  # the content, its name for messages, the model's languages


class FileFormat(NamedTuple):
    """binary: it is no text, and cannot be written to a terminal. bilingual: it holds sources and targets."""

    media_type: str
    open: Open
    binary: bool = False
    bilingual: bool = False


def _whole(parse: Parse) -> Open:
    """Text that a class takes apart."""

    def opened(content: bytes, name: str, languages: FileLanguages) -> OpenedFile:
        text, encoding = decoded(content, name)
        return OpenedFile([WholeText(text, parse)], lambda texts: encoding.written(texts[0]))

    return opened


def _parts(parse: Callable[[str, str], list[Part]], declared: Callable[[bytes], str] = lambda content: "utf-8") -> Open:
    """Text as parts. declared: the encoding that a file names."""

    def opened(content: bytes, name: str, languages: FileLanguages) -> OpenedFile:
        text, encoding = decoded(content, name, declared(content))
        return OpenedFile([PartsText(parse(text, name))], lambda texts: encoding.written(texts[0]))

    return opened


def _xml(parse: Callable[[bytes, str, FileLanguages], ParsedXml]) -> Open:
    def opened(content: bytes, name: str, languages: FileLanguages) -> OpenedFile:
        parsed = parse(content, name, languages)
        return OpenedFile([parsed], lambda texts: parsed.xml.written(texts[0]))

    return opened


def _packed(parse: Callable[[bytes, str], OpenedFile]) -> Open:
    return lambda content, name, languages: parse(content, name)


OFFICE = "application/vnd.openxmlformats-officedocument"
HTML = FileFormat("text/html", _whole(HtmlDocument))
MARKDOWN = FileFormat("text/markdown", _parts(lambda text, name: markdown.parts(text)))
CATALOGUE = FileFormat("text/x-gettext-translation", _parts(po.parts, declared_charset), bilingual=True)
XLIFF = FileFormat("application/xliff+xml", _xml(xliff.parsed), bilingual=True)

FORMATS: dict[str, FileFormat] = {
    ".txt": FileFormat("text/plain", _whole(PlainText)),
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".html": HTML,
    ".htm": HTML,
    ".srt": FileFormat("application/x-subrip", _whole(partial(Subtitles, escapes=False))),
    ".vtt": FileFormat("text/vtt", _whole(Subtitles)),
    ".docx": FileFormat(f"{OFFICE}.wordprocessingml.document", _packed(docx.opened), binary=True),
    ".odt": FileFormat("application/vnd.oasis.opendocument.text", _packed(odt.opened), binary=True),
    ".pptx": FileFormat(f"{OFFICE}.presentationml.presentation", _packed(pptx.opened), binary=True),
    ".xlsx": FileFormat(f"{OFFICE}.spreadsheetml.sheet", _packed(xlsx.opened), binary=True),
    ".epub": FileFormat("application/epub+zip", _packed(epub.opened), binary=True),
    ".po": CATALOGUE,
    ".pot": CATALOGUE,
    ".xlf": XLIFF,
    ".xliff": XLIFF,
    ".tmx": FileFormat("application/x-tmx+xml", _xml(tmx.parsed), bilingual=True),
    ".json": FileFormat("application/json", _parts(json.parts)),
}
"""By the ending of a file's name. A further format is a further line."""


def format_of(name: str) -> FileFormat:
    """The format of a file of this name. Raises InputError for other endings."""
    ending = PurePosixPath(name).suffix.lower()
    if ending not in FORMATS:
        known = ", ".join(FORMATS)
        raise InputError(f'file: "{name[:80]}": expected a name that ends in {known}.{told_of_foreign(name)}')
    return FORMATS[ending]


def opened(name: str, content: bytes, languages: FileLanguages = FileLanguages()) -> OpenedFile:  # noqa: B008
    """A file, taken apart.

    Args:
        name: says the format, and is what messages call it.
        languages: what the model reads and writes, for formats that hold both.

    Raises:
        InputError: there is no such format; the file is damaged, another kind of file, or too large.
    """
    form = format_of(name)
    if content and (told := told_of_foreign(name, content)):
        raise InputError(f'file: "{name[:80]}":{told}')
    if not content:
        return OpenedFile([], lambda texts: b"")
    return form.open(content, name, languages)


def translated_name(name: str, target: str) -> str:
    """letter.txt -> letter.fr.txt"""
    path = PurePosixPath(name.replace("\\", "/"))
    return f"{path.stem}.{target}{path.suffix}"
