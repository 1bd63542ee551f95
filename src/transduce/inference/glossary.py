"""Terms and how they are to be translated: files of them, and where they stand in a text. Nothing here imports torch.

glossary = read_glossary(Path("terms.tsv"))         # .tsv, .csv or .tbx: source term, target term
glossary.found("They sat on a street.")             # [Term(start=15, end=21, target="avenue")]
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

from transduce.core.errors import InputError
from transduce.data.words import SINGLE

MOST_TERMS, LONGEST = 100_000, 200  # of a glossary; characters of a term
MOST_BYTES = 50_000_000  # of a file
HEADERS = {"source", "target", "src", "tgt", "term", "translation", "original", "source term", "target term"}
UNIT = re.compile(rf"[{SINGLE}]|[^\W{SINGLE}]+|[^\w\s]")  # a word, a character of a script without spaces, a mark
TBX = (".tbx", ".xml")


class Term(NamedTuple):
    """Characters [start, end) of a text, and what they are to be translated by."""

    start: int
    end: int
    target: str


@dataclass(frozen=True)
class Glossary:
    """terms: source term -> its translation."""

    terms: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, terms: "Mapping[str, str] | Iterable[Sequence[str]] | None") -> Self:
        """From a table, or from pairs.

        Raises:
            InputError: what came are no pairs of texts; a term is empty, too long, or has two translations.
        """
        listed = [*terms.items()] if isinstance(terms, Mapping) else [*(terms or ())]
        problems, found = list[str](), dict[str, tuple[str, str]]()
        for number, each in enumerate(listed, 1):
            if isinstance(each, str) or len(each) != 2 or not all(isinstance(side, str) for side in each):
                problems.append(f"glossary, term {number}: expected a term and its translation; got {each!r:.80}.")
                continue
            source, target = (" ".join(side.split()) for side in each)
            if not source or not target or max(len(source), len(target)) > LONGEST:
                what = f"1 to {LONGEST} characters on each side"
                problems.append(f'glossary, term {number}: expected {what}; got "{source:.40}" and "{target:.40}".')
            elif (known := found.setdefault(source.lower(), (source, target)))[1] != target:
                problems.append(f'glossary: "{source}" has two translations, "{known[1]}" and "{target}": keep one.')
        if len(listed) > MOST_TERMS:
            problems = [f"glossary: {len(listed):,} terms; {MOST_TERMS:,} at most."]
        if problems:
            raise InputError(problems[:20])
        return cls(tuple(found.values()))

    def __bool__(self) -> bool:
        return bool(self.terms)

    def found(self, text: str) -> list[Term]:
        """Where its terms stand in a text, whole words only, in any case; of those that overlap, the longest."""
        units = [*UNIT.finditer(text)] if self.terms else []
        keys, found, place = [unit[0].casefold() for unit in units], list[Term](), 0
        while place < len(units):
            term = next((each for each in self._by_first.get(keys[place], ()) if _stands(each[0], keys, place)), None)
            if term is not None:
                last = place + len(term[0]) - 1
                found.append(Term(units[place].start(), units[last].end(), term[1]))
            place += len(term[0]) if term else 1
        return found

    @cached_property
    def _by_first(self) -> dict[str, list[tuple[list[str], str]]]:
        """By their first word the terms, as words in lower case, with their translations, the longest first."""
        found = dict[str, list[tuple[list[str], str]]]()
        for source, target in self.terms:
            if units := [unit.casefold() for unit in UNIT.findall(source)]:
                found.setdefault(units[0], []).append((units, target))
        return {first: sorted(terms, key=lambda each: -len(each[0])) for first, terms in found.items()}


def _stands(units: Sequence[str], keys: Sequence[str], place: int) -> bool:
    return keys[place : place + len(units)] == units


def read_glossary(path: Path, languages: tuple[str, str] = ("", "")) -> Glossary:
    """The terms of a file: .tsv and .csv with a source term and a target term a line, .tbx (ISO 30042).

    Args:
        languages: codes of source and target, by which the terms of a .tbx are chosen.

    Raises:
        InputError: no such file, too large, not UTF-8; a line without two terms; a .tbx without these languages.
    """
    text = _text(path)
    if path.suffix.lower() in TBX:
        return Glossary.of(_of_tbx(path, text, languages))
    delimiter = _delimiter(path, text)
    rows, problems = list[tuple[str, str]](), list[str]()
    for number, cells in enumerate(csv.reader(io.StringIO(text), delimiter=delimiter, strict=False), 1):
        kept = [cell.strip() for cell in cells]
        if not any(kept) or kept[0].startswith("#"):
            continue
        if len(kept) < 2 or not kept[0] or not kept[1]:
            name = {",": "comma", ";": "semicolon", "\t": "tab"}[delimiter]
            problems.append(f"{path}, line {number}: expected a term, a {name}, and its translation.")
        else:
            rows.append((kept[0], kept[1]))
    if not problems and not rows:
        problems = [f"{path}: there is no term in it."]
    if problems:
        raise InputError(problems[:20])
    return _named(path, rows[1:] if len(rows) > 1 and {cell.lower() for cell in rows[0]} <= HEADERS else rows)


def _delimiter(path: Path, text: str) -> str:
    """What stands between a term and its translation."""
    if path.suffix.lower() != ".csv":
        return "\t"
    first = text.split("\n", 1)[0]
    return ";" if first.count(";") > first.count(",") else ","


def _named(path: Path, rows: Iterable[tuple[str, str]]) -> Glossary:
    try:
        return Glossary.of(rows)
    except InputError as error:
        raise InputError(f"{path}: {problem}" for problem in error.problems) from None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            found = file.read(MOST_BYTES + 1)
        if len(found) > MOST_BYTES:
            raise InputError(f"{path}: a glossary has at most {MOST_BYTES // 1_000_000} MB.")
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8: {error.reason} at byte {error.start}.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from None


def _of_tbx(path: Path, text: str, languages: tuple[str, str]) -> list[tuple[str, str]]:
    """The first term of each language in each entry."""
    from xml.etree import ElementTree  # a DTD's entities are refused below; nothing is loaded from elsewhere

    if "<!ENTITY" in text:
        raise InputError(f"{path}: it declares entities, which are not read: write its characters as they are.")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise InputError(f"{path}: expected TBX, which is XML: {error}.") from None
    rows, seen = [], set[str]()
    for entry in root.iter():
        if _local(entry.tag) not in ("termEntry", "conceptEntry"):
            continue
        terms = [*_terms(entry)]
        seen.update(code for code, _ in terms)
        sides = [next((term for code, term in terms if _matches(code, wanted)), "") for wanted in languages]
        if all(languages) and all(sides):
            rows.append((sides[0], sides[1]))
        elif not all(languages) and len(terms) == 2:
            rows.append((terms[0][1], terms[1][1]))
    if not rows:
        known = ", ".join(sorted(seen)) or "none"
        raise InputError(f"{path}: no entry has a term in {' and '.join(languages)}; its languages: {known}.")
    return rows


def _terms(entry: "object") -> Iterable[tuple[str, str]]:
    """(language, term) of an entry, the first term of each language."""
    for section in entry.iter():  # type: ignore[attr-defined]
        if _local(section.tag) in ("langSet", "langSec"):
            code = section.get("{http://www.w3.org/XML/1998/namespace}lang", "")
            term = next(("".join(each.itertext()).strip() for each in section.iter() if _local(each.tag) == "term"), "")
            if term:
                yield code, term


def _local(tag: object) -> str:
    return str(tag).rpartition("}")[2]


def _matches(code: str, wanted: str) -> bool:
    return bool(wanted) and re.split("[-_]", code)[0].lower() == re.split("[-_]", wanted)[0].lower()
