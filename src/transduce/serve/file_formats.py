"""The formats of files that are translated: what of a file is text, and what stays as it is.

In SubRip and WebVTT the lines of a subtitle are translated together, and broken again where they are too wide; two
speakers, each behind a dash, keep their lines. Numbers, times, names, notes and styles stay.
"""

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, islice
from pathlib import PurePosixPath
from typing import NamedTuple, Protocol

from transduce.core.errors import InputError
from transduce.inference.sentences import joined_lines
from transduce.serve.markup import Document, Link, Piece
from transduce.serve.subtitles import WIDTH, width

BLANK, TIMES = r"[ \t]*(?:\r?\n|\Z)", r"(?:\d+[ \t]*\r?\n)?[^\r\n]*-->"
# The line of its times, then its text: up to an empty line, or to the next number and times.
CUE = re.compile(rf"(?m)^(?:(?!-->)[^\r\n])*-->[^\r\n]*\r?\n((?:(?!{BLANK})(?!{TIMES})[^\r\n]+(?:\r?\n|\Z))+)")
SPEAKER = re.compile(r"\s*[-‐–—]\s*\S")
TAG = re.compile(r"<[^<>]*>")
ESCAPES = {"&lt;": "<", "&gt;": ">", "&nbsp;": "\xa0", "&amp;": "&"}  # "&" is the last to come back
MARKS = {codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF32_BE: "utf-32"}  # before UTF-16, whose mark begins so, too
MARKS |= {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}

Fits = Callable[[str], bool]  # whether a text is read in one piece


class Translatable(Protocol):
    """A text as pieces to translate, and what stands between them."""

    @property
    def pieces(self) -> Sequence[Piece]: ...

    def rejoined(self, outputs: Sequence[tuple[str, Sequence[Link]]]) -> str:
        """The text with each piece replaced by its output; the links say where tags inside a piece go."""
        ...


Parse = Callable[[str, Fits, str], Translatable]  # a text, and as `transduce.serve.markup.Document` takes them


class FileFormat(NamedTuple):
    """parse: what takes a file apart; None = all of it is text."""

    media_type: str
    parse: Parse | None


class Subtitles:
    """SubRip or WebVTT as pieces to translate. escapes: whether & and < are written as entities, as in WebVTT."""

    def __init__(self, source: str, fits: Fits, language: str = "", escapes: bool = True) -> None:
        if "\r" in source.replace("\r\n", ""):
            raise InputError("file: its lines end in a bare carriage return; save it with line feeds.")
        self._source, self._escapes = source, escapes
        self._cues = [
            _Cue(*each.span(1), [Document(line, fits, language) for line in _spoken(each[1])])
            for each in CUE.finditer(source)
        ]
        self.pieces = [piece for cue in self._cues for line in cue.lines for piece in line.pieces]

    def rejoined(self, outputs: Sequence[tuple[str, Sequence[Link]]]) -> str:
        """The file with each of `pieces` replaced by its output."""
        waiting, done, parts = iter(outputs), 0, list[str]()
        for cue in self._cues:
            if any(line.pieces for line in cue.lines):
                parts += [self._source[done : cue.start], self._written(cue, waiting)]
                done = cue.end
        return "".join([*parts, self._source[done:]])

    def _written(self, cue: "_Cue", waiting: Iterator[tuple[str, Sequence[Link]]]) -> str:
        text = self._source[cue.start : cue.end]
        newline = "\r\n" if "\r\n" in text else "\n"
        told = [line.rejoined(list(islice(waiting, len(line.pieces)))) for line in cue.lines]
        lines = [part for each in told for part in broken(each if self._escapes else _unescaped(each))]
        return newline.join(lines) + text[len(text.rstrip("\r\n")) :]


@dataclass(frozen=True)
class _Cue:
    """The text of a subtitle, [start, end) of the file, by lines that belong together."""

    start: int
    end: int
    lines: list[Document]


def _spoken(text: str) -> list[str]:
    """The lines of a subtitle that are translated by themselves: one, or one for each of several speakers."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and all(map(SPEAKER.match, lines)):
        return lines
    return [joined_lines(lines)]


def _wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in "WF"


def broken(text: str) -> list[str]:
    """A subtitle in one line, or in two of about the same width if it is too wide for one. Tags have no width."""
    tags = [each.span() for each in TAG.finditer(text)]
    inside = {place for start, end in tags for place in range(start, end)}
    widths = [0, *accumulate(0 if place in inside else width(each) for place, each in enumerate(text))]
    if widths[-1] <= WIDTH:
        return [text]
    places = [place for place in range(1, len(text)) if place not in inside and _breaks(text[place - 1], text[place])]
    if not places:
        return [text]
    place = min(places, key=lambda each: max(widths[each], widths[-1] - widths[each]))
    return [text[:place].rstrip(), text[place:].lstrip()]


def _breaks(before: str, behind: str) -> bool:
    """Whether a line may end between two characters."""
    between_wide = _wide(before) and _wide(behind)
    return behind == " " or (between_wide and unicodedata.category(behind)[0] == "L")


def _unescaped(text: str) -> str:
    for entity, character in ESCAPES.items():
        text = text.replace(entity, character)
    return text


FORMATS: dict[str, FileFormat] = {
    ".txt": FileFormat("text/plain", None),
    ".html": FileFormat("text/html", Document),
    ".htm": FileFormat("text/html", Document),
    ".srt": FileFormat("application/x-subrip", partial(Subtitles, escapes=False)),
    ".vtt": FileFormat("text/vtt", Subtitles),
}
"""By the ending of a file's name. A further format is a further line."""


def format_of(name: str) -> FileFormat:
    """The format of a file of this name. Raises InputError for other endings."""
    ending = PurePosixPath(name).suffix.lower()
    if ending not in FORMATS:
        known = ", ".join(FORMATS)
        raise InputError(f'file: "{name[:80]}": expected a name that ends in {known}.')
    return FORMATS[ending]


def translated_name(name: str, target: str) -> str:
    """letter.txt -> letter.fr.txt"""
    path = PurePosixPath(name.replace("\\", "/"))
    return f"{path.stem}.{target}{path.suffix}"


def decoded(content: bytes, name: str) -> tuple[str, str]:
    """The text of a file, and its encoding. Raises InputError if it is not Unicode."""
    encoding = next((each for mark, each in MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding), encoding
    except UnicodeDecodeError as error:
        raise InputError(
            f'file: "{name[:80]}" is not text in UTF-8 (byte {error.start + 1}); save it in that encoding.'
        ) from None
