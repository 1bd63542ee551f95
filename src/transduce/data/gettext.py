"""Catalogues of gettext (.po): messages with their strings, and where these stand."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

LINE = re.compile(
    r"(?m)^[ \t]*(?:(?P<key>msgctxt|msgid_plural|msgid|msgstr(?:\[\d+\])?)[ \t]*)?(?P<text>\".*\")[ \t]*\r?$"
)
FUZZY = re.compile(r"(?m)^#,.*\bfuzzy\b")
ESCAPE = re.compile(r"\\(?:[0-7]{1,3}|x[0-9a-fA-F]{1,2}|.)")
CHARACTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
CHARSET = re.compile(rb"charset=([\w.-]+)")


@dataclass
class CatalogueEntry:
    """A message: its strings by their keys, as spans of lines with their quotation marks; [start, end) of the file."""

    start: int
    end: int = 0
    strings: dict[str, list[tuple[int, int]]] = field(default_factory=dict)


def declared_charset(content: bytes) -> str:
    """The encoding that the header names."""
    found = CHARSET.search(content[:10_000])
    return found[1].decode("ascii") if found and found[1] != b"CHARSET" else "utf-8"


def entries_of(source: str) -> Iterator[CatalogueEntry]:
    """The messages of a catalogue, its header among them."""
    entry, key = None, ""
    for found in LINE.finditer(source):
        key = found["key"] or key
        if entry is None or (found["key"] in ("msgctxt", "msgid") and "msgid" in entry.strings):
            if entry:
                yield entry
            entry = CatalogueEntry(found.start())
        entry.strings.setdefault(key, []).append(found.span("text"))
        entry.end = found.end()
    if entry:
        yield entry


def character_of(escape: str) -> str:
    """What stands behind a backslash, as the character that it means."""
    if escape[0] == "x":
        return chr(int(escape[1:], 16))
    return chr(int(escape, 8)) if escape[0].isdigit() else CHARACTERS.get(escape, escape)


def text_of(source: str, spans: "list[tuple[int, int]] | None") -> str:
    """A string, without the quotation marks of its lines; "" where there is none."""
    raw = "".join(source[start + 1 : end - 1] for start, end in spans or [])
    return ESCAPE.sub(lambda found: character_of(found[0][1:]), raw)
