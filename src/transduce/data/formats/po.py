"""Catalogues of gettext: each message with its translation, plural forms by themselves.

Messages without a translation, fuzzy ones and the header are no rows.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from transduce.core.errors import InputError
from transduce.data.files import read_whole
from transduce.data.formats.base import Format, Key, Row
from transduce.data.gettext import FUZZY, CatalogueEntry, declared_charset, entries_of, text_of

SIDES = ("source", "target")


class Po(Format):
    """Its columns are "source" and "target"."""

    counted = False

    def columns(self, path: Path) -> list[str]:
        """The two."""
        return [*SIDES]

    def rows(self, path: Path, keys: Sequence[Key], optional: Collection[Key] = ()) -> Iterator[Row]:
        """As `Format.rows`. Raises InputError where the file is no catalogue."""
        if wrong := [key for key in keys if key not in SIDES]:
            raise InputError(f"{path}: expected columns source and target; got {wrong[0]}.")
        for line, source, target in _pairs(path):
            yield line, [source if key == "source" else target for key in keys]

    def about(self, path: Path) -> int:
        """The number of pairs."""
        return sum(1 for _ in _pairs(path))

    def notes(self, path: Path) -> list[str]:
        """How many messages are no rows."""
        text = _text(path)
        left = sum(not pairs for _, pairs in _messages(text))
        are = ("1 message", "is") if left == 1 else (f"{left:,} messages", "are")
        return [f"{path}: {are[0]} without a final translation {are[1]} left out."] if left else []


def _text(path: Path) -> str:
    content = read_whole(path)
    try:
        text = content.decode(declared_charset(content)).removeprefix("\ufeff")
    except (UnicodeDecodeError, LookupError) as error:
        raise InputError(f"{path}: is not in the encoding that its header names: {error}.") from None
    if not any(True for _ in entries_of(text)):
        raise InputError(f"{path}: expected a catalogue of gettext; it has no line that begins with msgid.")
    return text


def _pairs(path: Path) -> Iterator[tuple[int, str, str]]:
    text, line, done = _text(path), 1, 0
    for entry, pairs in _messages(text):
        line, done = line + text.count("\n", done, entry.start), entry.start
        yield from ((line, source, target) for source, target in pairs)


def _messages(text: str) -> Iterator[tuple[CatalogueEntry, list[tuple[str, str]]]]:
    """Each message with its pairs."""
    behind = 0
    for entry in entries_of(text):
        fuzzy, behind = FUZZY.search(text, behind, entry.start) is not None, entry.end
        singular, plural = (text_of(text, entry.strings.get(key)) for key in ("msgid", "msgid_plural"))
        if singular:
            written = {key: text_of(text, spans) for key, spans in entry.strings.items() if key.startswith("msgstr")}
            pairs = [(singular if key in ("msgstr", "msgstr[0]") else plural, each) for key, each in written.items()]
            yield entry, [pair for pair in pairs if pair[1] and not fuzzy]
