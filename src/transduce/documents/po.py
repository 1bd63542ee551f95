"""Catalogues of gettext (.po, .pot): every message without a translation gets one; translations that are there stay.

A fuzzy message counts as one without. Placeholders and tags are codes.
"""

from collections.abc import Iterator, Sequence

from transduce.core.errors import InputError
from transduce.data.gettext import ESCAPE, FUZZY, CatalogueEntry, character_of, entries_of, text_of
from transduce.documents.codes import with_codes
from transduce.documents.runs import Part, Run, RunBuilder, writes_escaped


def parts(source: str, name: str) -> list[Part]:
    """The catalogue as it is, runs of text in the place of translations that are missing.

    Raises:
        InputError: there are no messages, though there is text.
    """
    entries = list(entries_of(source))
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


def _missing(source: str, entry: CatalogueEntry, fuzzy: bool) -> Iterator[tuple[tuple[int, int], Run]]:
    """The places of translations that are missing, and what is to be translated there."""
    if not text_of(source, entry.strings.get("msgid")):
        return  # the header
    for key, spans in entry.strings.items():
        if key.startswith("msgstr") and (fuzzy or not text_of(source, spans)):
            plural = "msgid_plural" in entry.strings and key != "msgstr[0]"
            read = entry.strings["msgid_plural" if plural else "msgid"]
            yield (spans[0][0] + 1, spans[-1][1] - 1), _run(source, read)


def _run(source: str, spans: Sequence[tuple[int, int]]) -> Run:
    """What stands between the first quotation mark and the last."""
    building, done = RunBuilder(), spans[0][0] + 1
    for start, end in spans:
        building.add_raw(source[done : start + 1])
        done = start + 1
        for found in ESCAPE.finditer(source, start + 1, end - 1):
            building.add_text(source[done : found.start()])
            building.add_text(character_of(found[0][1:]), found[0])
            done = found.end()
        building.add_text(source[done : end - 1])
        done = end - 1
    return with_codes(building.run(WRITE, lines=True))


def _escaped(text: str) -> str:
    for character, escape in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t")):
        text = text.replace(character, escape)
    return text


WRITE = writes_escaped(_escaped)
