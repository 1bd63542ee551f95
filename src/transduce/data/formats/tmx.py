"""Translation memories (TMX 1.4b, the exchange format of translators' tools): a text in several languages a unit."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from html.entities import html5
from pathlib import Path
from xml.parsers import expat

from transduce.core.errors import InputError
from transduce.core.languages import closest, matching
from transduce.data.files import archive_of, existing_file, read_blocks
from transduce.data.formats.base import Format, Key, Row, named_lines
from transduce.data.limits import LINE, line_too_long

CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})  # hold codes of the original format, which are no text
PAIRED = frozenset({"bpt", "ept"})  # around text, within words, too
PLACEHOLDER = re.compile(r"%(?:\d+\$)?[-+ #0]*[\d.*]*[a-zA-Z@]|%\(\w+\)[a-z]|\$?\{[\w.,:# -]*\}|\{\{[\w. -]*\}\}|%\w+%")
GAP = "\0"  # where a code stood; XML cannot have it
GAP_IN_WORD = re.compile(rf"(?<=\w){GAP}+(?=\w)")
UNIT_END = b"</tu>"
DECLARED = re.compile(rb"<\?xml[^>]*\?>")
LONGEST_CODE = 200  # characters of a code that are looked at
DEEPEST = 1000  # elements in elements
Unit = tuple[int, dict[str, str]]  # its line, from 1, and its texts by language, as the file calls it


class Tmx(Format):
    """Its columns are languages. A unit may lack one, which gives ""."""

    counted = False
    sparse = True
    languages = True
    what = "languages"

    def columns(self, path: Path) -> list[str]:
        """The languages of its units, that of most of their sources first. Raises InputError as `tmx_languages`."""
        return [*tmx_languages(path)]

    def place(self, path: Path, key: Key, columns: Sequence[Key]) -> Key | None:
        """A language as `transduce.core.languages.matching` finds it: en is EN-US where there is no other English.

        Where there are several, it is all of them.
        """
        names = [*map(str, columns)]
        found = matching(str(key), names)
        return found if found in names or closest(found, names) is not None else None

    def rows(self, path: Path, keys: Sequence[Key], optional: Collection[Key] = ()) -> Iterator[Row]:
        """The texts of each unit in these languages, en-US and EN where en is asked for; "" where it has none.

        Damaged units are left out; see `notes`.

        Raises:
            InputError: no unit has one of the languages; what `tmx_languages` refuses.
        """
        found = tmx_languages(path)
        chosen = [matching(str(key), found) for key in keys]
        if missing := [language for language in chosen if closest(language, found) is None]:
            raise InputError(f"{path}: expected units in {' and '.join(missing)}; it has {', '.join(found)}.")
        return ((line, [_in_language(texts, each) for each in chosen]) for line, texts in tmx_units(path))

    def notes(self, path: Path) -> list[str]:
        """How many units are damaged, and where."""
        lines = list[int]()
        for _ in tmx_units(path, lines.append):
            pass
        are = ("1 damaged unit", "is") if len(lines) == 1 else (f"{len(lines):,} damaged units", "are")
        return [f"{path}: {are[0]} {are[1]} left out ({named_lines(lines)})."] if lines else []


def _in_language(texts: Mapping[str, str], language: str) -> str:
    found = closest(language, texts)
    return "" if found is None else texts[found]


def tmx_languages(path: Path) -> dict[str, int]:
    """How many units are in each language; that of most of their sources first.

    Raises:
        InputError: as `tmx_units`; no unit has a text.
    """
    path = existing_file(path)
    return _counted(path, (status := (archive_of(path) or path).stat()).st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)
def _counted(path: Path, *stamp: int) -> dict[str, int]:
    """Of the file with this size and time: it is read whole for them once, not before each reading."""
    counts, firsts = Counter[str](), Counter[str]()
    for _, texts in tmx_units(path):
        counts.update([*texts])
        firsts.update([*texts][:1])
    if not counts:
        wanted = "units (<tu>) with texts (<tuv xml:lang=..><seg>..</seg></tuv>)"
        raise InputError(f"{path}: expected {wanted}; found none.")
    return {language: counts[language] for language in sorted(counts, key=lambda each: -firsts[each])}


def tmx_units(path: Path, damaged: Callable[[int], None] | None = None) -> Iterator[Unit]:
    """The units of a file, read block by block.

    Codes of the original format are left out, but for placeholders such as %d and {0}; the text within them is kept. A
    code between two words, such as a line break, leaves a space. Entities of HTML such as &nbsp; are their characters.
    A unit that is no XML, as of characters that XML cannot have, is left out.

    Args:
        damaged: told the line of each unit that is left out.

    Raises:
        InputError: it is no XML, or has entities of its own; a unit, or a tag, is longer than a line may be.
    """
    parser = _Units(path)
    for block in read_blocks(path):
        yield from parser.units(block)
        for line in parser.take_damaged():
            if damaged:
                damaged(line)
    yield from parser.units(b"", last=True)
    for line in parser.take_damaged():
        if damaged:
            damaged(line)


class _Units:
    """Gives bytes to a reader; behind a unit that is no XML, a new reader goes on."""

    def __init__(self, path: Path) -> None:
        self._path, self._reader = path, UnitReader(path)
        self._given = 0  # bytes of this reader
        self._held, self._start = b"", 0  # what came since the last unit's end, which is at this place
        self._head, self._damaged = b"", list[int]()
        self._skips = False  # to the end of a damaged unit
        self._refused = InputError(f"{path}: expected a translation memory.")

    def take_damaged(self) -> list[int]:
        """Lines of damaged units since the last call."""
        lines, self._damaged = self._damaged, []
        return lines

    def units(self, block: bytes, last: bool = False) -> Iterator[Unit]:
        """The units that are complete with these bytes. last: no more come."""
        self._head = self._head or block[:200]
        while True:
            if self._skips:
                block = self._behind_unit(block)
                if self._skips and last:
                    raise self._refused
                if self._skips:
                    return
            self._hold(block)
            try:
                self._reader.parser.Parse(block, last)
            except expat.ExpatError as error:
                yield from self._reader.take_units()
                block = self._recovered(error, last)
                continue
            self._given += len(block)
            self._reader.check_held(self._given)
            yield from self._reader.take_units()
            return

    def _hold(self, block: bytes) -> None:
        ended = self._reader.ended - self._start
        self._held, self._start = self._held[ended:] + block, self._reader.ended

    def _recovered(self, error: expat.ExpatError, last: bool) -> bytes:
        """What is to be read behind the damaged unit. Raises InputError where none began, or the file ends in it."""
        held = self._held[self._reader.ended - self._start :]
        place = self._reader.parser.ErrorByteIndex - self._reader.ended
        self._refused = InputError(
            f"{self._path}, line {self._reader.lines + error.lineno}: expected the XML of a translation memory; "
            f"{expat.ErrorString(error.code)}."
        )
        if last or b"<tu" not in held[:place] or b"\0" in self._head:
            raise self._refused from error
        self._damaged.append(self._reader.line)
        lines, self._skips = self._reader.lines + error.lineno - 1, True
        declared = DECLARED.match(self._head)
        head = (declared[0] if declared else b"") + b'<!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx><body>'
        self._reader = UnitReader(self._path, lines)
        self._reader.parser.Parse(head, False)
        self._given = self._start = self._reader.ended = len(head)
        self._held = b""
        return held[place:]

    def _behind_unit(self, block: bytes) -> bytes:
        """What is behind the end of the damaged unit, if it is here."""
        found = (self._held + block).find(UNIT_END)
        if found < 0:
            self._reader.lines += (self._held + block).count(b"\n") - self._held.count(b"\n")
            self._held = (self._held + block)[-len(UNIT_END) :]
            return b""
        text = self._held + block
        self._reader.lines += text[len(self._held) : found].count(b"\n")
        self._held, self._skips = b"", False
        return text[found + len(UNIT_END) :]


class UnitReader:
    """Takes the elements of a file as they come; `units` are those that are complete.

    lines: how many are behind where this reader began. ended: where the last unit did. line: of the unit.
    """

    def __init__(self, path: Path, lines: int = 0) -> None:
        self.path, self.lines, self.ended = path, lines, 0
        self.units = list[Unit]()
        self._texts: dict[str, str] = {}
        self.line, self._language = 0, ""
        self._text: list[str] | None = None  # of the <seg> that is open
        self._codes = list[str]()  # elements of CODES that are open
        self._code = ""  # what the outermost one holds
        self._depth, self._held, self._most = 0, 0, LINE.bytes()
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._refuse
        self.parser.SkippedEntityHandler = self._entity

    def _at(self) -> int:
        """The line, from 1."""
        return self.lines + self.parser.CurrentLineNumber

    def take_units(self) -> list[Unit]:
        """The units since the last call."""
        units, self.units = self.units, []
        return units

    def check_held(self, given: int) -> None:
        """Raises InputError where the parser holds a tag that does not end. given: how many bytes it was given."""
        self._check(given - self.parser.CurrentByteIndex)

    def _check(self, held: int) -> None:
        if held > self._most or self._depth > DEEPEST:
            line = f"{self.path}, line {self._at()}"
            if self._depth > DEEPEST:
                raise InputError(f"{line}: has {DEEPEST:,} elements within one another; no translation memory has.")
            raise InputError(f"{line}: {line_too_long(self._most)}")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._enter()
        if name == "tu":
            self.begin_unit()
        elif name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "seg":
            self._text, self._codes = [], []
        elif self._text is not None and name in CODES:
            self.begin_code(name)

    def _enter(self) -> None:
        self._depth += 1
        self._check(0)

    def begin_unit(self) -> None:
        """A unit begins here."""
        self._texts, self.line, self._held = {}, self._at(), 0

    def end_unit(self) -> None:
        """It is complete."""
        self.units.append((self.line, self._texts))
        self.ended = self.parser.CurrentByteIndex

    def begin_code(self, name: str) -> None:
        """An element that holds a code, and no text."""
        self._codes.append(name)
        self._code = "" if len(self._codes) == 1 else self._code

    def end_code(self, name: str) -> None:
        """The code is a placeholder, or leaves a gap."""
        self._codes.pop()
        if not self._codes and name not in PAIRED and self._text is not None:
            self._text.append(self._code if PLACEHOLDER.fullmatch(self._code) else GAP)

    def taken_text(self) -> str:
        """The text that was open."""
        text = _without_gaps("".join(self._text or []))
        self._text = None
        return text

    def _end(self, name: str) -> None:
        self._depth -= 1
        if name == "seg" and self._text is not None:
            text = self.taken_text()
            if self._language:
                self._texts.setdefault(self._language, text)
        elif name == "tu":
            self.end_unit()
        elif self._text is not None and name in CODES:
            self.end_code(name)

    def _characters(self, text: str) -> None:
        if self._text is None:
            return
        self._held += len(text)
        self._check(self._held)
        if not self._codes:
            self._text.append(text)
        elif len(self._code) < LONGEST_CODE:
            self._code += text

    def _entity(self, name: str, is_parameter: bool) -> None:
        """One that only a document type declares, which is not read."""
        if not is_parameter:
            self._characters(html5.get(f"{name};", f"&{name};"))

    def _refuse(self, name: str, *_: object) -> None:
        raise InputError(
            f"{self.path}, line {self._at()}: declares the entity {name[:40]}, which could unpack "
            "to more than fits in memory. Expected a translation memory without entities of its own."
        )


def _without_gaps(text: str) -> str:
    return GAP_IN_WORD.sub(" ", text).replace(GAP, "")
