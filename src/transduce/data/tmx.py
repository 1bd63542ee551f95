"""Translation memories (TMX 1.4b, the exchange format of translators' tools): a text in several languages a unit."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from xml.parsers import expat

from transduce.core.errors import InputError
from transduce.core.languages import matching
from transduce.data.files import archive_of, existing_file, read_blocks

CODES = frozenset({"bpt", "ept", "it", "ph", "ut"})  # hold codes of the original format, which are no text
Unit = tuple[int, dict[str, str]]  # its line, from 1, and its texts by language, as the file calls it


def tmx_rows(path: Path, languages: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The texts of each unit in these languages; "" where it has none.

    A language is found as `transduce.core.languages.matching` does: en is EN-US where there is no other English.

    Raises:
        InputError: no unit has one of the languages; what `tmx_languages` refuses.
    """
    found = tmx_languages(path)
    chosen = [matching(language, found) for language in languages]
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
    """The units of a file, read block by block. Codes of the original format are left out, their texts kept.

    Raises:
        InputError: it is no XML, or has entities of its own.
    """
    reader = _Reader(path)
    try:
        for block in read_blocks(path):
            reader.parser.Parse(block, False)
            yield from reader.taken()
        reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise InputError(
            f"{path}, line {error.lineno}: expected the XML of a translation memory; {expat.ErrorString(error.code)}."
        ) from error
    yield from reader.taken()


class _Reader:
    """Takes the elements of a file as they come; `units` are those that are complete."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.units = list[Unit]()
        self._texts: dict[str, str] = {}
        self._line, self._language = 0, ""
        self._text: list[str] | None = None  # of the <seg> that is open
        self._codes = 0  # elements of CODES that are open
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._refuse

    def taken(self) -> list[Unit]:
        """The units since the last call."""
        units, self.units = self.units, []
        return units

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tu":
            self._texts, self._line = {}, self.parser.CurrentLineNumber
        elif name == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
        elif name == "seg":
            self._text, self._codes = [], 0
        elif self._text is not None and name in CODES:
            self._codes += 1

    def _end(self, name: str) -> None:
        if name == "seg" and self._text is not None:
            if self._language:
                self._texts.setdefault(self._language, "".join(self._text))
            self._text = None
        elif name == "tu":
            self.units.append((self._line, self._texts))
        elif self._text is not None and name in CODES:
            self._codes -= 1

    def _characters(self, text: str) -> None:
        if self._text is not None and not self._codes:
            self._text.append(text)

    def _refuse(self, name: str, *_: object) -> None:
        raise InputError(
            f"{self.path}, line {self.parser.CurrentLineNumber}: declares the entity {name[:40]}, which could unpack "
            "to more than fits in memory. Expected a translation memory without entities of its own."
        )
