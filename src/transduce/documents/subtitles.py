"""Subtitles: SubRip and WebVTT.

The lines of a subtitle are translated together, and broken again where they are too wide; two speakers, each behind a
dash, keep their lines. A sentence that goes on in the next subtitle is translated as one, and its words are shared out
again by the widths of what they were. Numbers, times, names, notes and styles stay.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from transduce.core.errors import InputError
from transduce.documents.html import HtmlDocument
from transduce.documents.runs import Fits, Output
from transduce.inference.sentences import joined_lines

WIDTH, LINES = 42, 2  # of a line, in characters as wide as a Latin one; of a subtitle (Netflix, Timed Text Style Guide)
BLANK, TIMES = r"[ \t]*(?:\r?\n|\Z)", r"(?:\d+[ \t]*\r?\n)?[^\r\n]*-->"
# The line of its times, then its text: up to an empty line, or to the next number and times.
CUE = re.compile(rf"(?m)^(?:(?!-->)[^\r\n])*-->[^\r\n]*\r?\n((?:(?!{BLANK})(?!{TIMES})[^\r\n]+(?:\r?\n|\Z))+)")
SPEAKER = re.compile(r"\s*[-‐–—]\s*\S")
TAG = re.compile(r"<[^<>]*>")
ESCAPES = {"&lt;": "<", "&gt;": ">", "&nbsp;": "\xa0", "&amp;": "&"}  # "&" is the last to come back
COMMAS = ",;:，、；：،؛"  # behind which a sentence goes on
JOINED, APART = 4, 2.0  # the most subtitles that one sentence is looked for in; seconds between two of them
CLOCK = re.compile(r"(?:(\d+):)?(\d+):(\d+)(?:[.,](\d+))?")


class Subtitles:
    """SubRip or WebVTT as pieces to translate. escapes: whether & and < are written as entities, as in WebVTT.

    Raises:
        InputError: its lines end in a bare carriage return.
    """

    def __init__(self, source: str, fits: Fits, language: str = "", escapes: bool = True) -> None:
        if "\r" in source.replace("\r\n", ""):
            raise InputError("file: its lines end in a bare carriage return; save it with line feeds.")
        self._source, self._escapes = source, escapes
        self._groups = [
            _Group(cues, [HtmlDocument(line, fits, language) for line in _lines_of(cues)]) for cues in _grouped(source)
        ]
        self.pieces = [piece for group in self._groups for line in group.lines for piece in line.pieces]

    def rejoined(self, outputs: Sequence[Output]) -> str:
        """The file with each of `pieces` replaced by its output."""
        waiting, done, parts = iter(outputs), 0, list[str]()
        for group in self._groups:
            for cue, lines in zip(group.cues, self._translated(group, waiting), strict=True):
                parts += [self._source[done : cue.start], cue.written(lines)]
                done = cue.end
        return "".join([*parts, self._source[done:]])

    def _translated(self, group: "_Group", waiting: Iterator[Output]) -> list[list[str] | None]:
        """The lines of each of its subtitles; None = they stay."""
        outputs = [list(islice(waiting, len(line.pieces))) for line in group.lines]
        if group.unchanged(outputs):
            return [None] * len(group.cues)
        told = [line.rejoined(own) for line, own in zip(group.lines, outputs, strict=True)]
        told = told if self._escapes else [_unescaped(each) for each in told]
        if len(group.cues) > 1:
            told = shared(told[0], [width(each.line) for each in group.cues])
            return [broken(each) for each in told]
        return [[part for each in told for part in broken(each)]]


@dataclass(frozen=True)
class _Cue:
    """The text of a subtitle, [start, end) of the file, which is shown from `begins` to `ends`, in seconds."""

    start: int
    end: int
    text: str
    begins: float
    ends: float

    @property
    def line(self) -> str:
        return joined_lines([line.strip() for line in self.text.splitlines() if line.strip()])

    def written(self, lines: list[str] | None) -> str:
        """Its text as other lines; None = as it is."""
        newline = "\r\n" if "\r\n" in self.text else "\n"
        return self.text if lines is None else newline.join(lines) + self.text[len(self.text.rstrip("\r\n")) :]

    def goes_on(self, following: "_Cue") -> bool:
        """Whether its sentence goes on in the next subtitle, by their letters. Those with markup stand alone."""
        one, other = self.line, following.line
        plain = not any(mark in text for mark in "<&{" for text in (one, other)) and one != "" and other != ""
        if not plain or SPEAKER.match(self.text) or SPEAKER.match(following.text):
            return False
        unended = one[-1] in COMMAS or (one[-1].isalnum() and other[0].islower())
        return unended and 0 <= following.begins - self.ends <= APART


@dataclass(frozen=True)
class _Group:
    """Subtitles that are translated together, and their text by lines that belong together."""

    cues: list[_Cue]
    lines: list[HtmlDocument]

    def unchanged(self, outputs: Sequence[Sequence[Output]]) -> bool:
        """Whether the output of each piece is its text."""
        pieces = [piece for line in self.lines for piece in line.pieces]
        return [piece.text for piece in pieces] == [output for line in outputs for output, _ in line]


def _grouped(source: str) -> Iterator[list[_Cue]]:
    group = list[_Cue]()
    for found in CUE.finditer(source):
        times = [_seconds(each) for each in CLOCK.finditer(found[0].partition("\n")[0])]
        cue = _Cue(*found.span(1), found[1], *(times[:2] if len(times) > 1 else (0.0, 0.0)))
        if group and (len(group) == JOINED or not group[-1].goes_on(cue)):
            yield group
            group = []
        group.append(cue)
    if group:
        yield group


def _seconds(clock: re.Match[str]) -> float:
    hours, minutes, seconds, fraction = clock.groups("0")
    return int(hours) * 3600 + int(minutes) * 60 + float(f"{seconds}.{fraction}")


def _lines_of(cues: Sequence[_Cue]) -> list[str]:
    return _spoken(cues[0].text) if len(cues) == 1 else [joined_lines([each.line for each in cues])]


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
    widths, places = _widths(text)
    if widths[-1] <= WIDTH or not places:
        return [text]
    place = min(places, key=lambda each: max(widths[each], widths[-1] - widths[each]))
    return [text[:place].rstrip(), text[place:].lstrip()]


def shared(text: str, shares: Sequence[int]) -> list[str]:
    """A text in as many parts as there are shares, as wide as these are; the last are empty in a short one."""
    widths, places = _widths(text)
    parts, done, behind = list[str](), 0, 0
    for number, share in enumerate(shares[:-1], 1):
        behind += share
        left = [each for each in places if each > done]
        left = left[: len(left) - (len(shares) - 1 - number)]  # each of the parts that follow needs one
        wanted = widths[-1] * behind / max(1, sum(shares))
        place = min(left, key=lambda each: abs(widths[each] - wanted)) if left else len(text)
        parts.append(text[done:place].strip())
        done = place
    return [*parts, text[done:].strip()]


def _widths(text: str) -> tuple[list[int], list[int]]:
    """The width of what is before each character, and where a line may be broken."""
    tags = [each.span() for each in TAG.finditer(text)]
    inside = {place for start, end in tags for place in range(start, end)}
    widths = [0, *accumulate(0 if place in inside else width(each) for place, each in enumerate(text))]
    places = [place for place in range(1, len(text)) if place not in inside and _breaks(text[place - 1], text[place])]
    return widths, places


def width(text: str) -> int:
    """In characters as wide as a Latin one."""
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF") for each in text)


def _breaks(before: str, behind: str) -> bool:
    """Whether a line may end between two characters."""
    between_wide = _wide(before) and _wide(behind)
    return behind == " " or (between_wide and unicodedata.category(behind)[0] == "L")


def _unescaped(text: str) -> str:
    for entity, character in ESCAPES.items():
        text = text.replace(entity, character)
    return text
