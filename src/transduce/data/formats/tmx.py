"""Translation memories (TMX 1.4b, the exchange format of translators' tools): a text in several languages a unit."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from html.entities import html5
from pathlib import Path
from xml.parsers import expat

from transduce.core.errors import InputError
from transduce.core.languages import matching
from transduce.data.files import archive_of, existing_file, read_blocks
from transduce.data.formats.base import Format, Key, Row
from transduce.data.limits import LINE, line_too_long

CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})  # hold codes of the original format, which are no text
PAIRED = frozenset({"bpt", "ept"})  # around text, within words, too
PLACEHOLDER = re.compile(r"%(?:\d+\$)?[-+ #0]*[\d.*]*[a-zA-Z@]|%\(\w+\)[a-z]|\$?\{[\w.,:# -]*\}|\{\{[\w. -]*\}\}|%\w+%")
GAP = "\0"  # where a code stood; XML cannot have it
GAP_IN_WORD = re.compile(rf"(?<=\w){GAP}+(?=\w)")
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
        """A language as `transduce.core.languages.matching` finds it: en is EN-US where there is no other English."""
        found = matching(str(key), map(str, columns))
        return found if found in columns else None

    def rows(self, path: Path, keys: Sequence[Key], optional: Collection[Key] = ()) -> Iterator[Row]:
        """The texts of each unit in these languages; "" where it has none.

        Raises:
            InputError: no unit has one of the languages; what `tmx_languages` refuses.
        """
        found = tmx_languages(path)
        chosen = [matching(str(key), found) for key in keys]
        if missing := [language for language in chosen if language not in found]:
            raise InputError(f"{path}: expected units in {' and '.join(missing)}; it has {', '.join(found)}.")
        return ((line, [texts.get(language, "") for language in chosen]) for line, texts in tmx_units(path))


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


def tmx_units(path: Path) -> Iterator[Unit]:
    """The units of a file, read block by block.

    Codes of the original format are left out, but for placeholders such as %d and {0}; the text within them is kept. A
    code between two words, such as a line break, leaves a space. Entities of HTML such as &nbsp; are their characters.

    Raises:
        InputError: it is no XML, or has entities of its own; a unit, or a tag, is longer than a line may be.
    """
    reader, given = _Reader(path), 0
    try:
        for block in read_blocks(path):
            reader.parser.Parse(block, False)
            given += len(block)
            reader.check_held(given)
            yield from reader.take_units()
        reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise InputError(
            f"{path}, line {error.lineno}: expected the XML of a translation memory; {expat.ErrorString(error.code)}."
        ) from error
    yield from reader.take_units()


class _Reader:
    """Takes the elements of a file as they come; `units` are those that are complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.units = list[Unit]()
        self._texts: dict[str, str] = {}
        self._line, self._language = 0, ""
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

    def take_units(self) -> list[Unit]:
        """The units since the last call."""
        units, self.units = self.units, []
        return units

    def check_held(self, given: int) -> None:
        """Raises InputError where the parser holds a tag that does not end. given: how many bytes it was given."""
        self._check(given - self.parser.CurrentByteIndex)

    def _check(self, held: int) -> None:
        if held > self._most or self._depth > DEEPEST:
            line = f"{self.path}, line {self.parser.CurrentLineNumber}"
            if self._depth > DEEPEST:
                raise InputError(f"{line}: has {DEEPEST:,} elements within one another; no translation memory has.")
            raise InputError(f"{line}: {line_too_long(self._most)}")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        self._check(0)
        if name == "tu":
            self._texts, self._line, self._held = {}, self.parser.CurrentLineNumber, 0
        elif name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "seg":
            self._text, self._codes = [], []
        elif self._text is not None and name in CODES:
            self._codes.append(name)
            self._code = "" if len(self._codes) == 1 else self._code

    def _end(self, name: str) -> None:
        self._depth -= 1
        if name == "seg" and self._text is not None:
            if self._language:
                self._texts.setdefault(self._language, _without_gaps("".join(self._text)))
            self._text = None
        elif name == "tu":
            self.units.append((self._line, self._texts))
        elif self._text is not None and name in CODES:
            self._codes.pop()
            if not self._codes and name not in PAIRED:
                self._text.append(self._code if PLACEHOLDER.fullmatch(self._code) else GAP)

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
            f"{self.path}, line {self.parser.CurrentLineNumber}: declares the entity {name[:40]}, which could unpack "
            "to more than fits in memory. Expected a translation memory without entities of its own."
        )


def _without_gaps(text: str) -> str:
    return GAP_IN_WORD.sub(" ", text).replace(GAP, "")
