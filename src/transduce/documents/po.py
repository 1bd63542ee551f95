"""Catalogues of gettext (.po, .pot): every message without a translation gets one; translations that are there stay.

A fuzzy message counts as one without. Placeholders and tags are codes.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from transduce.core.errors import InputError
from transduce.documents.codes import with_codes
from transduce.documents.runs import Part, Run, RunBuilder, writes_escaped

LINE = re.compile(
    r"(?m)^[ \t]*(?:(?P<key>msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)[ \t]*)?(?P<text>\".*\")[ \t]*\r?$"
)
FUZZY = re.compile(r"(?m)^#,.*\bfuzzy\b")
ESCAPE = re.compile(r"\\(?:[0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)")
CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
CHARSET = re.compile(rb"charset=([\w.-]+)")


@dataclass
class _Entry:
    """A message: its strings by their keys, as spans of lines with their quotation marks; [start, end) of the file."""

    start: int
    end: int = 0
    strings: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


def declared_charset(content: bytes) -> str:
    """The encoding that the header names."""
    found = CHARSET.search(content[:10_000])
    return found[1].decode("ascii") if found and found[1] != b"CHARSET" else "utf-8"


def parts(source: str, name: str) -> list[Part]:
    """The catalogue as it is, runs of text in the place of translations that are missing.

    Raises:
        InputError: there are no messages, though there is text.
    """
    entries = list(_entries(source))
    if not entries and source.strip():
        raise InputError(f"{name}: expected a catalogue of gettext; it has no line that begins with msgid.")
    found, done, behind = list[Part](), 0, 0
    for each in entries:
        fuzzy = FUZZY.search(source, behind, each.start) is not None
        for (start, end), run in _missing(source, each, fuzzy):
            found += [source[done:start], run]
            done = end
        behind = each.end
    return [*found, source[done:]]


def _entries(source: str) -> Iterator[_Entry]:
    entry, key = None, ""
    for found in LINE.finditer(source):
        key = found["key"] or key
        if entry is None or (found["key"] in ("msgctxt", "msgid") and "msgid" in entry.strings):
            if entry:
                yield entry
            entry = _Entry(found.start())
        entry.strings.setdefault(key, []).append(found.span("text"))
        entry.end = found.end()
    if entry:
        yield entry


def _missing(source: str, entry: _Entry, fuzzy: bool) -> Iterator[tuple[tuple[int, int], Run]]:
    """The places of translations that are missing, and what is to be translated there."""
    if not _text(source, entry.strings.get("msgid", [])):
        return  # the header
    for key, spans in entry.strings.items():
        if key.startswith("msgstr") and (fuzzy or not _text(source, spans)):
            plural = "msgid_plural" in entry.strings and key != "msgstr[0]"
            read = entry.strings["msgid_plural" if plural else "msgid"]
            yield (spans[0][0] + 1, spans[-1][1] - 1), _run(source, read)


def _text(source: str, spans: Sequence[tuple[int, int]]) -> str:
    return "".join(source[start + 1 : end - 1] for start, end in spans)


def _run(source: str, spans: Sequence[tuple[int, int]]) -> Run:
    """What stands between the first quotation mark and the last."""
    building, done = RunBuilder(), spans[0][0] + 1
    for start, end in spans:
        building.add_raw(source[done : start + 1])
        done = start + 1
        for found in ESCAPE.finditer(source, start + 1, end - 1):
            building.add_text(source[done : found.start()])
            building.add_text(_character(found[0][1:]), found[0])
            done = found.end()
        building.add_text(source[done : end - 1])
        done = end - 1
    return with_codes(building.run(WRITE, lines=True))


def _character(escape: str) -> str:
    if escape[0] == "x":
        return chr(int(escape[1:], 16))
    return chr(int(escape, 8)) if escape[0].isdigit() else CHARACTERS.get(escape, escape)


def _escaped(text: str) -> str:
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(character, escape)
    return text


WRITE = writes_escaped(_escaped)
