"""Whether a file holds words with labels, where nobody says it: by its name, or by its first 2,000 rows."""

from collections.abc import Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from transduce.core.printable import quoted
from transduce.data.files import suffix_of, text_lines
from transduce.data.formats import format_of
from transduce.data.formats.json import Json
from transduce.data.formats.jsonl import Jsonl
from transduce.data.labelled_columns import LONGEST_LABEL, LOOKED_AT, SHOWN, are_few
from transduce.data.structures.label_schemes import scheme_of
from transduce.data.structures.tagged_rows import DOCUMENT, LABELS, SPANS
from transduce.data.structures.tagged_tables import listed, tagged_columns
from transduce.data.tagged import FORMATS, SUFFIXES

OBJECTS = tuple(suffix for suffix, name in FORMATS.items() if name in ("jsonl", "json"))
TABLES = (*(suffix for suffix, name in FORMATS.items() if name == "table"), ".tsv", ".tab")
TEXTS = (".txt", ".tsv", ".tab", "")
TOKENS = ("tokens", "words")
MOST = 0.9  # of the objects have words with labels, from which the others are mistakes
WORDS_A_TEXT = 2  # at least, on average
CONLLU = 10  # columns of CoNLL-U, tabs between


class TaggedShape(NamedTuple):
    """How a file holds words with labels.

    why: what says so. format: of the file where its name does not say it. raw: labels are of characters of raw text.
    named: columns for words, labels and sentences say it, which no other table has.
    """

    why: str
    format: str | None = None
    raw: bool = False
    named: bool = False


def looked_at(path: Path) -> TaggedShape | None:
    """How a file holds words with labels; None: it holds something else. Raises InputError where it cannot be read."""
    suffix = suffix_of(path)
    if suffix in SUFFIXES:
        return TaggedShape(f"its name ends in {suffix}")
    if suffix in OBJECTS:
        objects = (Json() if FORMATS[suffix] == "json" else Jsonl()).objects(path)
        return _of_objects([each.value for each in islice(objects, LOOKED_AT)])
    if suffix in TABLES and (found := _of_table(path)):
        return found
    return _of_lines(list(islice(text_lines(path), LOOKED_AT))) if suffix in TEXTS else None


def _of_table(path: Path) -> TaggedShape | None:
    """By the names of its columns, and where a row is a text, by its words being as many as its labels."""
    format = format_of(path)
    if not format.header(path) and not format.keyed():
        return None
    names = [str(each) for each in format.columns(path)]
    columns = tagged_columns(names)
    if columns is None:
        return None
    rows = islice(format.rows(path, [columns.word, columns.label]), LOOKED_AT)
    cells = [(listed(words), listed(labels, labels=True)) for _, (words, labels) in rows]
    alike = sum(len(words) == len(labels) for words, labels in cells)
    several = sum(len(words) > 1 for words, _ in cells)
    if alike < MOST * len(cells) or (several == 0) != (columns.sentence is not None):
        return None
    if not _are_labels([label for _, labels in cells for label in labels]):
        return None
    named = [each for each in columns if each]
    format_name = "table" if suffix_of(path) in TEXTS else None
    why = f"it has the columns {quoted(named, len(named))}"
    return TaggedShape(why, format_name, named=columns.sentence is not None)


def _of_objects(objects: Sequence[Any]) -> TaggedShape | None:
    tables = [each for each in objects if isinstance(each, dict)]
    for keys, raw in ((_tokens, False), (_spans, True)):
        found = [key for key in map(keys, tables) if key]
        if found and len(found) >= MOST * len(objects):
            return TaggedShape(f"its objects have {' and '.join(quoted([each], 1) for each in found[0])}", raw=raw)
    return None


def _tokens(table: Mapping[str, Any]) -> tuple[str, str] | None:
    """The keys of words and their labels, which are lists."""
    words, labels = (next((key for key in keys if _is_list(table.get(key))), "") for keys in (TOKENS, LABELS))
    return (words, labels) if words and labels else None


def _is_list(found: Any) -> bool:
    return isinstance(found, list) and all(isinstance(each, str) for each in found)


def _spans(table: Mapping[str, Any]) -> tuple[str, str] | None:
    """The keys of a text and its spans of characters."""
    key = next((key for key in SPANS if isinstance(table.get(key), list)), None)
    if key is None or not isinstance(table.get("text"), str):
        return None
    return ("text", key) if all(map(_is_span, table[key])) else None


def _is_span(found: Any) -> bool:
    if isinstance(found, dict):
        return {"start", "end", "label"} <= found.keys()
    return isinstance(found, list) and len(found) >= 3 and all(str(each).isdecimal() for each in found[:2])


def _of_lines(lines: Sequence[str]) -> TaggedShape | None:
    rows = [_cells(line) for line in lines if not line.startswith((DOCUMENT, "# "))]
    texts = [list(group) for filled, group in groupby(rows, key=bool) if filled]
    words = [cells for text in texts for cells in text]
    if len(texts) < 2 or len(words) < WORDS_A_TEXT * len(texts) or len({*map(len, words)}) > 1 or len(words[0]) < 2:
        return None
    if len(words[0]) == CONLLU and all(cells[0][:1].isdecimal() for cells in words):
        return TaggedShape("its lines have the ten columns of CoNLL-U", "conllu")
    return _of_columns([cells[0] for cells in words], [cells[-1] for cells in words])


def _are_labels(found: Sequence[str]) -> bool:
    return scheme_of(set(found)) != "none" or are_few(found)


def _cells(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else line.split()


def _of_columns(words: Sequence[str], labels: Sequence[str]) -> TaggedShape | None:
    different = sorted(set(labels))
    letters = sum(any(map(str.isalpha, each)) for each in words)
    if any(len(each.split()) != 1 for each in (*words, *different)) or letters <= len(words) / 2:
        return None
    if not _are_labels(labels):
        return None
    why = f"its lines are words, and {len(different):,} labels ({quoted(different, SHOWN, LONGEST_LABEL)})"
    return TaggedShape(f"{why}, with empty lines between texts")
