"""XLIFF 1.2 and 2: each unit with its translation. Units without one are no rows."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from xml.parsers import expat

from transduce.core.errors import InputError
from transduce.core.languages import closest, matching
from transduce.data.files import read_blocks
from transduce.data.formats.base import Format, Key, Row
from transduce.data.formats.tmx import CODES, Unit, UnitReader

EMPTY = frozenset({"x", "bx", "ex", "sc", "ec", "cp"})  # codes without content
UNITS = frozenset({"trans-unit", "segment"})
BESIDE = frozenset({"alt-trans", "matches", "glossary", "notes", "note"})  # which hold other sources and targets


class Xliff(Format):
    """Its columns are the languages that it names."""

    counted = False
    languages = True
    what = "languages"

    def columns(self, path: Path) -> list[str]:
        """The source's language and the target's. Raises InputError where it is no XLIFF."""
        found = next(iter(_units(path)), None)
        if found is None:
            raise InputError(f"{path}: expected units with a <source> and a <target>; found none.")
        return [*found[1]]

    def place(self, path: Path, key: Key, columns: Sequence[Key]) -> Key | None:
        """A language, whatever its region."""
        names = [*map(str, columns)]
        found = matching(str(key), names)
        return found if found in names else closest(found, names)

    def rows(self, path: Path, keys: Sequence[Key], optional: Collection[Key] = ()) -> Iterator[Row]:
        """The texts of each unit in these languages. Raises InputError where it has others, or is no XLIFF."""
        for line, texts in _units(path):
            chosen = [closest(str(key), texts) for key in keys]
            if None in chosen:
                raise InputError(
                    f"{path}, line {line}: expected {' and '.join(map(str, keys))}; it has {', '.join(texts)}."
                )
            yield line, [texts[str(each)] for each in chosen]

    def notes(self, path: Path) -> list[str]:
        """How many units have no translation."""
        left = sum(len(texts) < 2 for _, texts in _all(path))
        are = ("1 unit", "is") if left == 1 else (f"{left:,} units", "are")
        return [f"{path}: {are[0]} without a translation {are[1]} left out."] if left else []


def _units(path: Path) -> Iterator[Unit]:
    return (each for each in _all(path) if len(each[1]) == 2)


def _all(path: Path) -> Iterator[Unit]:
    reader = _XliffReader(path)
    try:
        for block in read_blocks(path):
            reader.parser.Parse(block, False)
            yield from reader.take_units()
        reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise InputError(f"{path}, line {error.lineno}: expected XLIFF; {expat.ErrorString(error.code)}.") from error
    yield from reader.take_units()


class _XliffReader(UnitReader):
    """Takes sources and targets; those of alternatives are left out."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._languages, self._beside = {"source": "", "target": ""}, 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        name = name.rpartition(":")[2]
        self._enter()
        self._beside += name in BESIDE
        if name in ("xliff", "file"):
            for side, keys in (("source", ("srcLang", "source-language")), ("target", ("trgLang", "target-language"))):
                self._languages[side] = next(
                    (attributes[key] for key in keys if key in attributes), self._languages[side]
                )
        elif name in UNITS:
            self.begin_unit()
        elif name in self._languages and not self._beside:
            self._text, self._codes = [], []
        elif self._text is not None and name in CODES | EMPTY:
            self.begin_code(name)
            self._code = next((attributes[key] for key in ("equiv-text", "equiv", "disp") if key in attributes), "")

    def _end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        self._depth -= 1
        self._beside -= name in BESIDE
        if name in self._languages and self._text is not None:
            text = self.taken_text()
            if text.strip():
                self._texts[self._languages[name] or name] = text
        elif name in UNITS:
            self.end_unit()
        elif self._text is not None and name in CODES | EMPTY:
            self.end_code(name)
